package pod

import (
	"github.com/google/uuid"

	"homeport.dev/homeport/internal/seal"
)

const (
	sqlListHostKeys = `
select id::text, host_key_sealed from pod
where id > $1::uuid and host_key_sealed_by <> $2 order by id limit $3 for no key update`
	sqlKeepHostKey   = `update pod set host_key_sealed = $2 where id = $1::uuid`
	sqlCountHostKeys = `select host_key_sealed_by, count(*) from pod group by host_key_sealed_by`

	sqlListProbeKeys = `
select id::text, probe_key_sealed from pod
where id > $1::uuid and probe_key_sealed_by <> $2 order by id limit $3 for no key update`
	sqlKeepProbeKey   = `update pod set probe_key_sealed = $2 where id = $1::uuid`
	sqlCountProbeKeys = `select probe_key_sealed_by, count(*) from pod group by probe_key_sealed_by`
)

// Sealed lists where pods keep sealed values.
func Sealed() []seal.Column {
	return []seal.Column{
		{
			Name: "host keys", First: uuid.Nil.String(), List: sqlListHostKeys, Keep: sqlKeepHostKey, Count: sqlCountHostKeys,
			Purpose: func(row string) string { return hostKeyPurpose(uuid.MustParse(row)) },
		},
		{
			Name: "probe keys", First: uuid.Nil.String(), List: sqlListProbeKeys, Keep: sqlKeepProbeKey, Count: sqlCountProbeKeys,
			Purpose: func(row string) string { return probeKeyPurpose(uuid.MustParse(row)) },
		},
	}
}
