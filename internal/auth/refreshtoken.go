package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/google/uuid"
)

// A refresh token names its session and its generation, and proves both with
// a code made from the session's secret: 16 + 4 + 32 bytes in base64url.
// Because every generation can be made again, the one before the current can
// be answered with the current, and one still older is known to be stolen
// rather than invented.
type refreshToken struct {
	session    uuid.UUID
	generation uint32
	code       []byte
}

const refreshTokenSize = 16 + 4 + sha256.Size

func newRefreshToken(session uuid.UUID, generation uint32, secret []byte) string {
	b := append([]byte{}, session[:]...)
	b = binary.BigEndian.AppendUint32(b, generation)
	mac := hmac.New(sha256.New, secret)
	mac.Write(b)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(b))
}

func parseRefreshToken(token string) (refreshToken, bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) != refreshTokenSize {
		return refreshToken{}, false
	}
	return refreshToken{
		session: uuid.UUID(b[:16]), generation: binary.BigEndian.Uint32(b[16:20]), code: b[20:],
	}, true
}

// genuine says that the token was made with that secret.
func (t refreshToken) genuine(secret []byte) bool {
	b := binary.BigEndian.AppendUint32(append([]byte{}, t.session[:]...), t.generation)
	mac := hmac.New(sha256.New, secret)
	mac.Write(b)
	return hmac.Equal(mac.Sum(nil), t.code)
}

// A turn is what presenting a refresh token leads to.
type turn int

const (
	turnNone   turn = iota // it was never given out
	turnSame               // it is the one before the current: give the current again
	turnRotate             // it is the current: give the next
	turnReused             // it is older: somebody else has it
)

// decide says what a genuine token of one generation leads to in a session
// whose current generation is current.
func decide(presented, current uint32) turn {
	switch {
	case presented == current:
		return turnRotate
	case presented > current:
		return turnNone
	case presented+1 == current:
		return turnSame
	}
	return turnReused
}
