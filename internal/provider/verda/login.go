package verda

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/provider/cloudapi"
)

// tokenRequest is the body of POST /oauth2/token.
type tokenRequest struct {
	GrantType    string `json:"grant_type"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token,omitempty"`
}

type tokenAnswer struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	ExpiresIn    int    `json:"expires_in"` // seconds
}

// Tokens are renewed early, and those of which Verda does not say how long they
// are good are shown for a short time only.
const (
	early   = time.Minute
	unknown = 5 * time.Minute
)

// tokens holds the account's access token and gets another in time. It is safe
// for concurrent use; of many who need one, one asks.
type tokens struct {
	api        *cloudapi.Client
	clock      *clock.Clock
	id, secret string
	turn       chan struct{} // held while Verda is asked

	mu              sync.Mutex
	access, refresh string
	until           time.Time
}

func newTokens(api *cloudapi.Client, c *clock.Clock, key string) *tokens {
	id, secret, _ := strings.Cut(key, ":")
	return &tokens{api: api, clock: c, id: id, secret: secret, turn: make(chan struct{}, 1)}
}

// latest is the token that was got last, be it good or not.
func (t *tokens) latest() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.access
}

// good returns the token while it is good, and what may be given for another.
func (t *tokens) good() (access, refresh string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.access, t.refresh, t.access != "" && t.clock.Wall().Before(t.until)
}

// forget has the next caller get another token than this one, which was refused.
func (t *tokens) forget(access string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.access == access {
		t.refresh, t.until = "", time.Time{}
	}
}

// get returns a token that is good, asking for one if need be.
func (t *tokens) get(ctx context.Context) (string, error) {
	if access, _, ok := t.good(); ok {
		return access, nil
	}
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return "", fmt.Errorf("wait for a token: %w", ctx.Err())
	}
	access, refresh, ok := t.good() // another may have asked meanwhile
	if ok {
		return access, nil
	}
	if refresh != "" {
		access, err := t.ask(ctx, tokenRequest{GrantType: "refresh_token", ClientID: t.id, ClientSecret: t.secret, RefreshToken: refresh})
		var f *cloudapi.Failure
		if err == nil || !errors.As(err, &f) || f.Status >= 500 || f.Status == http.StatusTooManyRequests {
			return access, err
		}
	}
	return t.ask(ctx, tokenRequest{GrantType: "client_credentials", ClientID: t.id, ClientSecret: t.secret})
}

// ask gets a token and keeps it.
func (t *tokens) ask(ctx context.Context, body tokenRequest) (string, error) {
	asked := t.clock.Wall()
	var answer tokenAnswer
	err := t.api.Do(ctx, cloudapi.Call{
		Method: http.MethodPost, Path: "/oauth2/token", Body: body, Class: logins, Hide: []string{t.secret, body.RefreshToken},
	}, &answer)
	if err != nil {
		return "", err
	}
	if answer.AccessToken == "" || strings.ContainsFunc(answer.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("the answer has no token")
	}
	life := time.Duration(answer.ExpiresIn) * time.Second
	if life <= 0 {
		life = unknown
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.access, t.refresh, t.until = answer.AccessToken, answer.RefreshToken, asked.Add(life-min(early, life/2))
	return t.access, nil
}
