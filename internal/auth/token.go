package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
)

const (
	audience = "authenticated"
	// maxToken is the longest access token that is looked at, in bytes; ours have some 900.
	maxToken = 8 << 10
)

// claims are what an access token says, in the words of the auth client.
type claims struct {
	jwt.RegisteredClaims
	Audience     string         `json:"aud"` // one text, where the library would write a list
	Email        string         `json:"email"`
	Phone        string         `json:"phone"`
	AppMetadata  map[string]any `json:"app_metadata"`
	UserMetadata map[string]any `json:"user_metadata"`
	Role         string         `json:"role"`
	AAL          string         `json:"aal"`
	AMR          []method       `json:"amr"`
	SessionID    string         `json:"session_id"`
	IsAnonymous  bool           `json:"is_anonymous"`
}

// GetAudience gives the library the audience to check.
func (c claims) GetAudience() (jwt.ClaimStrings, error) { return jwt.ClaimStrings{c.Audience}, nil }

type method struct {
	Method    string `json:"method"`
	Timestamp int64  `json:"timestamp"`
}

// newAccessToken signs a token for a user and one of their sessions.
func (s *Service) newAccessToken(ctx context.Context, user User, session uuid.UUID, now time.Time) (token string, expires time.Time, err error) {
	key, kid, err := s.signingKey(ctx)
	if err != nil {
		return "", time.Time{}, err
	}
	expires = now.Add(AccessTTL).Truncate(time.Second)
	t := jwt.NewWithClaims(jwt.SigningMethodES256, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: s.issuer, Subject: user.ID.String(),
			IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(expires),
		},
		Audience: audience, Email: user.Email, Role: audience, AAL: "aal1",
		AppMetadata:  map[string]any{"provider": "email", "providers": []string{"email"}},
		UserMetadata: map[string]any{},
		AMR:          []method{{Method: "otp", Timestamp: user.LastSignInAt.Unix()}},
		SessionID:    session.String(),
	})
	t.Header["kid"] = kid
	token, err = t.SignedString(key)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("sign an access token: %w", err)
	}
	return token, expires, nil
}

// readToken returns what a token of ours says. What it answers is remembered
// until the token expires: checking a signature costs more than all the rest.
// The fault is ErrBadToken.
func (s *Service) readToken(ctx context.Context, token string) (claims, error) {
	if len(token) > maxToken {
		return claims{}, ErrBadToken.Because(errors.New("the token is too long"))
	}
	key, now := sha256.Sum256([]byte(token)), s.Clock.Wall()
	if c, ok := s.tokens.get(key); ok {
		if !now.Before(c.ExpiresAt.Time) {
			return claims{}, ErrBadToken.Because(jwt.ErrTokenExpired)
		}
		return c, nil
	}
	c, err := s.verifyToken(ctx, token, now)
	if err != nil {
		return claims{}, err
	}
	s.tokens.put(key, c)
	return c, nil
}

// verifyToken checks algorithm, key, signature, issuer, audience and expiry.
// Keys or addresses of keys inside the token are never looked at.
func (s *Service) verifyToken(ctx context.Context, token string, now time.Time) (claims, error) {
	var c claims
	var internal error
	_, err := jwt.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		kid, _ := t.Header["kid"].(string)
		key, err := s.publicKey(ctx, kid)
		if err != nil && fault.Of(err) == nil {
			internal = err
		}
		return key, err
	},
		jwt.WithValidMethods([]string{jwt.SigningMethodES256.Alg()}),
		jwt.WithIssuer(s.issuer), jwt.WithAudience(audience), jwt.WithExpirationRequired(),
		jwt.WithTimeFunc(func() time.Time { return now }),
	)
	if internal != nil {
		return claims{}, fmt.Errorf("find the key of a token: %w", internal)
	}
	if err != nil {
		return claims{}, ErrBadToken.Because(err)
	}
	if _, _, err := c.ids(); err != nil {
		return claims{}, ErrBadToken.Because(err)
	}
	return c, nil
}

func (c claims) ids() (user, session uuid.UUID, err error) {
	user, okUser := id.Parse(c.Subject)
	session, okSession := id.Parse(c.SessionID)
	if !okUser || !okSession {
		return uuid.Nil, uuid.Nil, errors.New("the token names no user or no session")
	}
	return user, session, nil
}
