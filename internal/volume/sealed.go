package volume

import (
	"github.com/google/uuid"

	"homeport.dev/homeport/internal/seal"
)

//nolint:gosec // statements; the passwords are their arguments
const (
	sqlListVolumeKeys = `
select id::text, key_sealed from volume
where id > $1::uuid and key_sealed_by <> $2 order by id limit $3 for no key update`
	sqlKeepVolumeKey   = `update volume set key_sealed = $2 where id = $1::uuid`
	sqlCountVolumeKeys = `
select key_sealed_by, count(*) from volume where key_sealed is not null group by key_sealed_by`

	sqlListPasswords = `
select id::text, password_sealed from volume
where id > $1::uuid and password_sealed_by <> $2 order by id limit $3 for no key update`
	sqlKeepPassword   = `update volume set password_sealed = $2 where id = $1::uuid`
	sqlCountPasswords = `
select password_sealed_by, count(*) from volume where password_sealed is not null group by password_sealed_by`

	sqlListChunkerKeys = `
select id::text, chunker_key_sealed from volume
where id > $1::uuid and chunker_key_sealed_by <> $2 order by id limit $3 for no key update`
	sqlKeepChunkerKey   = `update volume set chunker_key_sealed = $2 where id = $1::uuid`
	sqlCountChunkerKeys = `
select chunker_key_sealed_by, count(*) from volume where chunker_key_sealed is not null group by chunker_key_sealed_by`
)

// Sealed lists where volumes keep sealed values.
func Sealed() []seal.Column {
	of := func(purpose func(uuid.UUID) string) func(string) string {
		return func(row string) string { return purpose(uuid.MustParse(row)) }
	}
	return []seal.Column{
		{
			Name: "volume keys", First: uuid.Nil.String(), List: sqlListVolumeKeys, Keep: sqlKeepVolumeKey, Count: sqlCountVolumeKeys,
			Purpose: of(purposeKey),
		},
		{
			Name: "volume passwords", First: uuid.Nil.String(), List: sqlListPasswords, Keep: sqlKeepPassword, Count: sqlCountPasswords,
			Purpose: of(purposePassword),
		},
		{
			Name: "chunker keys", First: uuid.Nil.String(), List: sqlListChunkerKeys, Keep: sqlKeepChunkerKey, Count: sqlCountChunkerKeys,
			Purpose: of(purposeChunker),
		},
	}
}
