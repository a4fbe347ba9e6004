package auth

import (
	"github.com/google/uuid"

	"homeport.dev/homeport/internal/seal"
)

//nolint:gosec // statements; the secrets are their arguments
const (
	sqlListLinkTokens = `
	select id::text, sealed_token from auth_link
	where id > $1::uuid and sealed_token_by <> $2 order by id limit $3 for no key update`
	sqlKeepLinkToken   = `update auth_link set sealed_token = $2 where id = $1::uuid`
	sqlCountLinkTokens = `
	select sealed_token_by, count(*) from auth_link where sealed_token is not null group by sealed_token_by`

	sqlListSessionSecrets = `
	select id::text, sealed_secret from auth_session
	where id > $1::uuid and sealed_secret_by <> $2 order by id limit $3 for no key update`
	sqlKeepSessionSecret   = `update auth_session set sealed_secret = $2 where id = $1::uuid`
	sqlCountSessionSecrets = `select sealed_secret_by, count(*) from auth_session group by sealed_secret_by`

	sqlListPrivateKeys = `
	select kid, sealed_private from auth_signing_key
	where kid > $1 and sealed_private_by <> $2 order by kid limit $3 for no key update`
	sqlKeepPrivateKey   = `update auth_signing_key set sealed_private = $2 where kid = $1`
	sqlCountPrivateKeys = `select sealed_private_by, count(*) from auth_signing_key group by sealed_private_by`
)

// Sealed lists where sign-in keeps sealed values.
func Sealed() []seal.Column {
	return []seal.Column{
		{
			Name: "signing keys", First: "", List: sqlListPrivateKeys, Keep: sqlKeepPrivateKey, Count: sqlCountPrivateKeys,
			Purpose: keyPurpose,
		},
		{
			Name: "sessions", First: uuid.Nil.String(), List: sqlListSessionSecrets, Keep: sqlKeepSessionSecret, Count: sqlCountSessionSecrets,
			Purpose: func(row string) string { return secretPurpose(uuid.MustParse(row)) },
		},
		{
			Name: "sign-in links", First: uuid.Nil.String(), List: sqlListLinkTokens, Keep: sqlKeepLinkToken, Count: sqlCountLinkTokens,
			Purpose: func(row string) string { return linkPurpose(uuid.MustParse(row)) },
		},
	}
}
