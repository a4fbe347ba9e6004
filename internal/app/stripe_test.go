package app

import (
	"strings"
	"testing"
)

// The guards of server rule 39: each half of a configuration, and a live key
// where it could leak, keep the server from starting.
func TestStripeIsWholeOrNotThere(t *testing.T) {
	t.Parallel()
	const local, public = "HOMEPORT_PUBLIC_URL=http://localhost:8080", "HOMEPORT_PUBLIC_URL=https://homeport.example"
	const smtp, cloud = "HOMEPORT_SMTP_URL=smtp://mail.example:25", "HOMEPORT_SHADEFORM_API_KEY=k"
	for name, one := range map[string]struct {
		env  []string
		want string // of the mistake; empty: it starts
	}{
		"nothing":                {[]string{local}, ""},
		"a test key here":        {[]string{local, "HOMEPORT_STRIPE_SECRET_KEY=sk_test_1", "HOMEPORT_STRIPE_WEBHOOK_SECRET=whsec_1"}, ""},
		"a live key in public":   {[]string{public, smtp, "HOMEPORT_STRIPE_SECRET_KEY=sk_live_1", "HOMEPORT_STRIPE_WEBHOOK_SECRET=whsec_1"}, ""},
		"a live key here":        {[]string{local, "HOMEPORT_STRIPE_SECRET_KEY=sk_live_1", "HOMEPORT_STRIPE_WEBHOOK_SECRET=whsec_1"}, "a live key needs a public address with https"},
		"a restricted live key":  {[]string{local, "HOMEPORT_STRIPE_SECRET_KEY=rk_live_1", "HOMEPORT_STRIPE_WEBHOOK_SECRET=whsec_1"}, "a live key needs a public address with https"},
		"a publishable key":      {[]string{local, "HOMEPORT_STRIPE_SECRET_KEY=pk_test_1", "HOMEPORT_STRIPE_WEBHOOK_SECRET=whsec_1"}, "not a secret key"},
		"no webhook secret":      {[]string{local, "HOMEPORT_STRIPE_SECRET_KEY=sk_test_1"}, "STRIPE_WEBHOOK_SECRET"},
		"only a webhook secret":  {[]string{local, "HOMEPORT_STRIPE_WEBHOOK_SECRET=whsec_1"}, "STRIPE_SECRET_KEY is not set"},
		"a base in the clear":    {[]string{local, "HOMEPORT_STRIPE_API_BASE=http://api.stripe.example"}, "STRIPE_API_BASE"},
		"a live key elsewhere":   {[]string{public, smtp, "HOMEPORT_STRIPE_SECRET_KEY=sk_live_1", "HOMEPORT_STRIPE_WEBHOOK_SECRET=whsec_1", "HOMEPORT_STRIPE_API_BASE=https://api.example"}, "own address"},
		"test money at a cloud":  {[]string{public, smtp, cloud, "HOMEPORT_STRIPE_SECRET_KEY=sk_test_1", "HOMEPORT_STRIPE_WEBHOOK_SECRET=whsec_1"}, "a test key's money must not pay for machines at shadeform"},
		"real money at a cloud":  {[]string{public, smtp, cloud, "HOMEPORT_STRIPE_SECRET_KEY=sk_live_1", "HOMEPORT_STRIPE_WEBHOOK_SECRET=whsec_1"}, ""},
		"test money at a double": {[]string{public, smtp, cloud, "HOMEPORT_SHADEFORM_BASE_URL=http://127.0.0.1:9/v1", "HOMEPORT_STRIPE_SECRET_KEY=sk_test_1", "HOMEPORT_STRIPE_WEBHOOK_SECRET=whsec_1"}, ""},
		"a stage that may":       {[]string{public, smtp, cloud, "HOMEPORT_STRIPE_TEST_RENTS=yes", "HOMEPORT_STRIPE_SECRET_KEY=sk_test_1", "HOMEPORT_STRIPE_WEBHOOK_SECRET=whsec_1"}, ""},
		"a stage of two minds":   {[]string{local, "HOMEPORT_STRIPE_TEST_RENTS=maybe"}, "STRIPE_TEST_RENTS"},
		"tax that nobody levies": {[]string{local, "HOMEPORT_STRIPE_TAX=some"}, "STRIPE_TAX"},
	} {
		_, err := Load(one.env, nil)
		if one.want == "" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if one.want != "" && (err == nil || !strings.Contains(err.Error(), one.want)) {
			t.Errorf("%s: the mistake is %v, want %q", name, err, one.want)
		}
	}
}
