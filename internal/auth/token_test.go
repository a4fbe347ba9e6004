package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/pg/pgtest"
)

func encode(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// TestForgedTokensAreRefused signs tokens in every way that has fooled
// somebody, with claims that would be good.
func TestForgedTokensAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, pgtest.New(t))
	grant := r.signIn("ada@example.com")
	who := r.identity(grant)
	key, kid, err := r.signingKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	strangerRSA, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	strangerJWK, err := jwkOf(&stranger.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	good := func() jwt.MapClaims {
		return jwt.MapClaims{
			"iss": testURL + "/auth/v1", "aud": "authenticated", "sub": who.UserID.String(), "email": who.Email,
			"session_id": who.SessionID.String(), "exp": r.now.Wall().Add(time.Minute).Unix(), "iat": r.now.Wall().Unix(),
		}
	}
	sign := func(method jwt.SigningMethod, key any, header map[string]any, change func(jwt.MapClaims)) string {
		t.Helper()
		claims := good()
		if change != nil {
			change(claims)
		}
		token := jwt.NewWithClaims(method, claims)
		token.Header["kid"] = kid
		for k, v := range header {
			if v == nil {
				delete(token.Header, k)
				continue
			}
			token.Header[k] = v
		}
		text, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	es := func(change func(jwt.MapClaims)) string { return sign(jwt.SigningMethodES256, key, nil, change) }
	if _, err := r.Authenticate(t.Context(), es(nil)); err != nil {
		t.Fatalf("the good token is refused: %v", err)
	}
	parts := strings.Split(es(nil), ".")
	for name, token := range map[string]string{
		"empty":                       "",
		"not a token":                 "x",
		"two parts":                   parts[0] + "." + parts[1],
		"four parts":                  es(nil) + ".x",
		"no signature":                parts[0] + "." + parts[1] + ".",
		"other signature":             parts[0] + "." + parts[1] + "." + encode(strings.Repeat("\x01", 64)),
		"zero signature":              parts[0] + "." + parts[1] + "." + encode(strings.Repeat("\x00", 64)),
		"signature of other claims":   parts[0] + "." + encode(`{"sub":"x"}`) + "." + parts[2],
		"alg none":                    sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, nil),
		"alg NoNe":                    encode(`{"alg":"NoNe","kid":"`+kid+`"}`) + "." + parts[1] + ".",
		"alg none with our signature": encode(`{"alg":"none","kid":"`+kid+`"}`) + "." + parts[1] + "." + parts[2],
		"HS256 with the public DER":   sign(jwt.SigningMethodHS256, public, nil, nil),
		"HS256 with the public PEM":   sign(jwt.SigningMethodHS256, pemKey, nil, nil),
		"HS256 with the key id":       sign(jwt.SigningMethodHS256, []byte(kid), nil, nil),
		"RS256 of a stranger":         sign(jwt.SigningMethodRS256, strangerRSA, nil, nil),
		"our kid, stranger's key":     sign(jwt.SigningMethodES256, stranger, nil, nil),
		"stranger's kid and key":      sign(jwt.SigningMethodES256, stranger, map[string]any{"kid": strangerJWK.KeyID}, nil),
		"key inside":                  sign(jwt.SigningMethodES256, stranger, map[string]any{"kid": strangerJWK.KeyID, "jwk": strangerJWK}, nil),
		"address of keys inside":      sign(jwt.SigningMethodES256, stranger, map[string]any{"jku": "https://evil.io/jwks.json"}, nil),
		"no kid":                      sign(jwt.SigningMethodES256, key, map[string]any{"kid": nil}, nil),
		"kid as SQL":                  sign(jwt.SigningMethodES256, key, map[string]any{"kid": "' or 1=1 --"}, nil),
		"kid as a number":             sign(jwt.SigningMethodES256, key, map[string]any{"kid": 1}, nil),
		"other issuer":                es(func(c jwt.MapClaims) { c["iss"] = "https://evil.io/auth/v1" }),
		"no issuer":                   es(func(c jwt.MapClaims) { delete(c, "iss") }),
		"other audience":              es(func(c jwt.MapClaims) { c["aud"] = "service_role" }),
		"no audience":                 es(func(c jwt.MapClaims) { delete(c, "aud") }),
		"expired":                     es(func(c jwt.MapClaims) { c["exp"] = r.now.Wall().Unix() }),
		"no expiry":                   es(func(c jwt.MapClaims) { delete(c, "exp") }),
		"expiry as text":              es(func(c jwt.MapClaims) { c["exp"] = "tomorrow" }),
		"not yet valid":               es(func(c jwt.MapClaims) { c["nbf"] = r.now.Wall().Add(time.Hour).Unix() }),
		"no user":                     es(func(c jwt.MapClaims) { delete(c, "sub") }),
		"user that is no id":          es(func(c jwt.MapClaims) { c["sub"] = "admin" }),
		"no session":                  es(func(c jwt.MapClaims) { delete(c, "session_id") }),
		"very long":                   es(func(c jwt.MapClaims) { c["email"] = strings.Repeat("a", maxToken) }),
	} {
		_, err := r.Authenticate(t.Context(), token)
		if f := fault.Of(err); !errors.Is(err, ErrBadToken) || f.Kind != fault.Unauthenticated {
			t.Errorf("%s: %v, want bad_jwt", name, err)
		}
	}
	for name, token := range map[string]string{
		"another user's session": es(func(c jwt.MapClaims) { c["sub"] = who.SessionID.String() }),
		"unknown session":        es(func(c jwt.MapClaims) { c["session_id"] = who.UserID.String() }),
	} {
		if _, err := r.Authenticate(t.Context(), token); !errors.Is(err, ErrNoSession) {
			t.Errorf("%s: %v, want session_not_found", name, err)
		}
	}
}

func TestATokenExpiresAlsoWhenItIsRemembered(t *testing.T) {
	t.Parallel()
	r := newRig(t, pgtest.New(t))
	grant := r.signIn("ada@example.com")
	for range 2 {
		if who := r.identity(grant); who.Email != "ada@example.com" || who.UserID != grant.User.ID {
			t.Errorf("identity = %+v", who)
		}
	}
	r.now.Advance(AccessTTL - time.Second)
	r.identity(grant)
	r.now.Advance(time.Second)
	if _, err := r.Authenticate(t.Context(), grant.AccessToken); !errors.Is(err, ErrBadToken) {
		t.Errorf("at its expiry = %v", err)
	}
}

func TestSigningKeysRotateWithoutASessionLost(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	r := newRig(t, pool)
	kid := func(token string) string {
		parsed, _, err := jwt.NewParser().ParseUnverified(token, jwt.MapClaims{})
		if err != nil {
			t.Fatal(err)
		}
		s, _ := parsed.Header["kid"].(string)
		return s
	}
	sweep := func() {
		t.Helper()
		if err := r.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first := kid(r.signIn("ada@example.com").AccessToken)
	r.now.Advance(keyLife - keyLead - time.Second)
	sweep()
	if n := r.count(`select count(*) from auth_signing_key`); n != 1 {
		t.Fatalf("%d keys before one is due", n)
	}
	r.now.Advance(time.Second)
	sweep()
	sweep()
	keys, err := r.PublicKeys(t.Context())
	if err != nil || len(keys) != 2 || keys[0].KeyID != first {
		t.Fatalf("published %v, %v; want the next key ahead of its use", keys, err)
	}
	before := r.signIn("ada@example.com")
	if kid(before.AccessToken) != first {
		t.Error("a key signs before its time")
	}
	r.now.Advance(keyLead - time.Minute)
	before, err = r.Refresh(t.Context(), before.RefreshToken)
	if err != nil || kid(before.AccessToken) != first {
		t.Fatal(err, "the old key stopped early")
	}
	r.now.Advance(time.Minute)
	if after := r.signIn("ada@example.com"); kid(after.AccessToken) != keys[1].KeyID {
		t.Error("the next key does not sign in its time")
	}
	r.now.Advance(13 * time.Minute)
	other := newRig(t, pool)
	other.now.Advance(r.now.Wall().Sub(other.now.Wall()))
	if _, err := other.Authenticate(t.Context(), before.AccessToken); err != nil {
		t.Errorf("a token of the old key is refused by a node that starts: %v", err)
	}
	r.now.Advance(keyGrace)
	if keys, err := r.PublicKeys(t.Context()); err != nil || len(keys) != 1 {
		t.Errorf("published %v, %v; want the new key only", keys, err)
	}
}

func TestNodesThatStartTogetherMakeOneKey(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	done := make(chan error)
	for range 8 {
		r := newRig(t, pool)
		go func() {
			_, err := r.PublicKeys(t.Context())
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := newRig(t, pool).count(`select count(*) from auth_signing_key`); n != 1 {
		t.Errorf("%d keys", n)
	}
}

func TestAnAccessTokenSaysWhatTheAuthClientReads(t *testing.T) {
	t.Parallel()
	r := newRig(t, pgtest.New(t))
	grant := r.signIn("ada@example.com")
	claims := jwt.MapClaims{}
	token, _, err := jwt.NewParser().ParseUnverified(grant.AccessToken, claims)
	if err != nil {
		t.Fatal(err)
	}
	if token.Header["alg"] != "ES256" || token.Header["typ"] != "JWT" || token.Header["kid"] == nil {
		t.Errorf("header = %v", token.Header)
	}
	for claim, want := range map[string]any{
		"iss": testURL + "/auth/v1", "sub": grant.User.ID.String(), "aud": "authenticated", "role": "authenticated", "email": "ada@example.com",
		"phone": "", "aal": "aal1", "is_anonymous": false, "exp": float64(grant.ExpiresAt.Unix()), "iat": float64(r.now.Wall().Unix()),
	} {
		if claims[claim] != want {
			t.Errorf("%s = %v, want %v", claim, claims[claim], want)
		}
	}
	for _, claim := range []string{"app_metadata", "user_metadata", "amr", "session_id"} {
		if claims[claim] == nil {
			t.Errorf("%s is missing", claim)
		}
	}
}
