package prime_test

import (
	"crypto/ed25519"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"homeport.dev/homeport/internal/provider/bootstrap"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/prime"
	"homeport.dev/homeport/internal/provider/prime/primetest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

const (
	testKey = primetest.Key
	base    = primetest.Base
)

// fresh makes an empty double of Prime and an adapter that calls it.
func fresh(t *testing.T) (*prime.Cloud, *cloudtest.Cloud) {
	t.Helper()
	return freshOf(t, primetest.Dialect(t, primetest.GPUs(t)))
}

func freshOf(t *testing.T, d cloudtest.Dialect) (*prime.Cloud, *cloudtest.Cloud) {
	t.Helper()
	double := cloudtest.New(t, d)
	c, err := prime.New(prime.Config{
		Key: testKey, BaseURL: double.URL + base, Pusher: bootstrap.Pusher{Key: bootstrapKey(t), Every: 10 * time.Millisecond},
		Limiter: cloudapi.NewLocal(double.Clock), Clock: double.Clock, Logger: cloudtest.Logger(t, testKey),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, double
}

// bootstrapKey is one of no account.
func bootstrapKey(t *testing.T) ssh.Signer {
	t.Helper()
	key, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}
