package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/pg"
)

const (
	keyLife   = 90 * 24 * time.Hour   // a key signs this long
	keyLead   = time.Hour             // a key is published this long before it signs
	keyGrace  = AccessTTL + time.Hour // a key is published this long after it signed last
	keyReload = time.Minute           // a node looks for new keys this often
	keyRetry  = 5 * time.Second       // … and this often when it meets an unknown one
	keyLock   = 0x686f6d65_61757468   // advisory lock of whoever makes keys
)

// A JWK is the public half of a signing key, as published.
type JWK struct {
	KeyType string   `json:"kty"`
	Curve   string   `json:"crv"`
	Alg     string   `json:"alg"`
	Use     string   `json:"use"`
	KeyOps  []string `json:"key_ops"`
	KeyID   string   `json:"kid"`
	X       string   `json:"x"`
	Y       string   `json:"y"`
}

// A storedKey is a row of auth_signing_key.
type storedKey struct {
	KeyID         string     `db:"kid"`
	SealedPrivate []byte     `db:"sealed_private"`
	PublicDER     []byte     `db:"public_der"`
	ActivatesAt   time.Time  `db:"activates_at"`
	RetiresAt     *time.Time `db:"retires_at"`
}

// A keyring is what one node knows of the signing keys.
type keyring struct {
	mu       sync.Mutex
	loadedAt time.Time
	stored   []storedKey
	public   map[string]*ecdsa.PublicKey
	private  *ecdsa.PrivateKey // of signer
	signer   string
}

// RotateKeys makes the first signing key, or the next one when the newest is
// near the end of its time, and forgets those long retired. It is idempotent
// and safe on many nodes at once.
func (s *Service) RotateKeys(ctx context.Context) error {
	now := s.Clock.Wall()
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlLockKeys, int64(keyLock)); err != nil {
			return fmt.Errorf("lock the signing keys: %w", err)
		}
		stored, err := listKeys(ctx, tx, now)
		if err != nil {
			return err
		}
		activates, due := nextKey(stored, now)
		if !due {
			return nil
		}
		key, err := s.makeKey()
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlRetireKeys, activates.Add(keyGrace), now); err != nil {
			return fmt.Errorf("retire the signing keys: %w", err)
		}
		_, err = tx.Exec(ctx, sqlAddKey, pgx.NamedArgs{
			"kid": key.KeyID, "sealed": key.SealedPrivate, "public": key.PublicDER, "now": now, "activates": activates,
		})
		if err != nil {
			return fmt.Errorf("add a signing key: %w", err)
		}
		return nil
	})
}

// nextKey says whether a key is due, and from when it is to sign.
func nextKey(stored []storedKey, now time.Time) (activates time.Time, due bool) {
	var newest time.Time
	for _, k := range stored {
		if k.ActivatesAt.After(newest) {
			newest = k.ActivatesAt
		}
	}
	if newest.IsZero() {
		return now, true
	}
	if newest.Add(keyLife - keyLead).After(now) {
		return time.Time{}, false
	}
	return now.Add(keyLead), true
}

// makeKey draws a key pair and seals its private half.
func (s *Service) makeKey() (storedKey, error) {
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), id.Bytes(32))
	for tries := 0; err != nil && tries < 3; tries++ { // one draw in 2^32 is no scalar of the curve
		private, err = ecdsa.ParseRawPrivateKey(elliptic.P256(), id.Bytes(32))
	}
	if err != nil {
		return storedKey{}, fmt.Errorf("draw a signing key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		return storedKey{}, fmt.Errorf("write a public key: %w", err)
	}
	secret, err := private.Bytes()
	if err != nil {
		return storedKey{}, fmt.Errorf("write a private key: %w", err)
	}
	jwk, err := jwkOf(&private.PublicKey)
	if err != nil {
		return storedKey{}, err
	}
	return storedKey{KeyID: jwk.KeyID, SealedPrivate: s.Box.Seal(secret, keyPurpose(jwk.KeyID)), PublicDER: public}, nil
}

func keyPurpose(kid string) string { return "auth signing key " + kid }

// jwkOf describes a public key; its id is the thumbprint of RFC 7638.
func jwkOf(public *ecdsa.PublicKey) (JWK, error) {
	point, err := public.Bytes()
	if err != nil || len(point) != 65 {
		return JWK{}, fmt.Errorf("a signing key is not on P-256: %w", err)
	}
	x, y := base64.RawURLEncoding.EncodeToString(point[1:33]), base64.RawURLEncoding.EncodeToString(point[33:])
	sum := sha256.Sum256([]byte(`{"crv":"P-256","kty":"EC","x":"` + x + `","y":"` + y + `"}`))
	return JWK{
		KeyType: "EC", Curve: "P-256", Alg: "ES256", Use: "sig", KeyOps: []string{"verify"},
		KeyID: base64.RawURLEncoding.EncodeToString(sum[:]), X: x, Y: y,
	}, nil
}

// PublicKeys returns the published keys, oldest first, making the first one if
// there is none yet.
func (s *Service) PublicKeys(ctx context.Context) ([]JWK, error) {
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	if err := s.loadKeys(ctx, keyReload); err != nil {
		return nil, err
	}
	jwks := make([]JWK, 0, len(s.keys.stored))
	for _, k := range s.keys.stored {
		jwk, err := jwkOf(s.keys.public[k.KeyID])
		if err != nil {
			return nil, err
		}
		jwks = append(jwks, jwk)
	}
	return jwks, nil
}

// signingKey returns the key that signs now.
func (s *Service) signingKey(ctx context.Context) (*ecdsa.PrivateKey, string, error) {
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	if err := s.loadKeys(ctx, keyReload); err != nil {
		return nil, "", err
	}
	now := s.Clock.Wall()
	var signer storedKey
	for _, k := range s.keys.stored {
		if !k.ActivatesAt.After(now) {
			signer = k
		}
	}
	if s.keys.private != nil && s.keys.signer == signer.KeyID {
		return s.keys.private, signer.KeyID, nil
	}
	secret, err := s.Box.Open(signer.SealedPrivate, keyPurpose(signer.KeyID))
	if err != nil {
		return nil, "", fmt.Errorf("open signing key %q: %w", signer.KeyID, err)
	}
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), secret)
	if err != nil {
		return nil, "", fmt.Errorf("read signing key %q: %w", signer.KeyID, err)
	}
	s.keys.private, s.keys.signer = private, signer.KeyID
	return private, signer.KeyID, nil
}

// publicKey returns the key of that id, looking once more in the database for
// one that this node has not seen, but not at every forged token.
func (s *Service) publicKey(ctx context.Context, kid string) (*ecdsa.PublicKey, error) {
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	if err := s.loadKeys(ctx, keyReload); err != nil {
		return nil, err
	}
	if key := s.keys.public[kid]; key != nil {
		return key, nil
	}
	if err := s.loadKeys(ctx, keyRetry); err != nil {
		return nil, err
	}
	if key := s.keys.public[kid]; key != nil {
		return key, nil
	}
	return nil, ErrBadToken
}

// loadKeys reads the keys unless that was done within maxAge. The caller holds
// the keyring's lock.
func (s *Service) loadKeys(ctx context.Context, maxAge time.Duration) error {
	now := s.Clock.Wall()
	if len(s.keys.stored) > 0 && now.Sub(s.keys.loadedAt) < maxAge {
		return nil
	}
	stored, err := listKeys(ctx, s.Pool, now)
	if err != nil {
		return err
	}
	if len(stored) == 0 {
		if err := s.RotateKeys(ctx); err != nil {
			return err
		}
		if stored, err = listKeys(ctx, s.Pool, s.Clock.Wall()); err != nil {
			return err
		}
	}
	public := make(map[string]*ecdsa.PublicKey, len(stored))
	for _, k := range stored {
		parsed, err := x509.ParsePKIXPublicKey(k.PublicDER)
		if err != nil {
			return fmt.Errorf("read public key %q: %w", k.KeyID, err)
		}
		key, ok := parsed.(*ecdsa.PublicKey)
		if !ok {
			return fmt.Errorf("public key %q is not an elliptic curve key", k.KeyID)
		}
		public[k.KeyID] = key
	}
	s.keys.stored, s.keys.public, s.keys.loadedAt = stored, public, now
	return nil
}

// listKeys returns the keys that are published at now, in the order in which
// they sign.
func listKeys(ctx context.Context, q pg.Querier, now time.Time) ([]storedKey, error) {
	rows, err := q.Query(ctx, sqlListKeys, now)
	if err != nil {
		return nil, fmt.Errorf("list signing keys: %w", err)
	}
	stored, err := pgx.CollectRows(rows, pgx.RowToStructByName[storedKey])
	if err != nil {
		return nil, fmt.Errorf("list signing keys: %w", err)
	}
	return stored, nil
}

const sqlLockKeys = `select pg_advisory_xact_lock($1)`

const sqlListKeys = `
	select kid, sealed_private, public_der, activates_at, retires_at
	from auth_signing_key
	where retires_at is null or retires_at > $1
	order by activates_at, kid`

const sqlRetireKeys = `
	with gone as (delete from auth_signing_key where retires_at <= $2)
	update auth_signing_key set retires_at = $1 where retires_at is null`

const sqlAddKey = `
	insert into auth_signing_key (kid, sealed_private, public_der, created_at, activates_at)
	values (@kid, @sealed, @public, @now, @activates)`
