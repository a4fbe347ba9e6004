package testpay

import "homeport.dev/homeport/internal/seal"

const (
	sqlListSecrets = `
select single::text, sealed from testpay_secret
where single::text > $1 and sealed_by <> $2 order by single limit $3 for no key update`
	sqlKeepSecret   = `update testpay_secret set sealed = $2 where single::text = $1`
	sqlCountSecrets = `select sealed_by, count(*) from testpay_secret group by sealed_by`
)

// Sealed lists where the test checkout keeps sealed values.
func Sealed() []seal.Column {
	return []seal.Column{{
		Name: "test checkout secrets", List: sqlListSecrets, Keep: sqlKeepSecret, Count: sqlCountSecrets,
		Purpose: func(string) string { return secretPurpose },
	}}
}
