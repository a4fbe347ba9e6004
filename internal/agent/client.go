//go:build linux

package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/fault"
)

// Faults of the control plane's answers.
var (
	// ErrFenced occurs when the attachment is over: another one may hold the
	// volume, and nothing may be written any more.
	ErrFenced = fault.New(fault.Conflict, agentapi.CodeFenced, "This pod does not hold the volume any more.")
	// ErrRefused occurs when the control plane does not know the token, or the
	// instance behind it.
	ErrRefused = fault.New(fault.Unauthenticated, "agent_refused", "The control plane does not know this pod.")
	// ErrQuota occurs when the volume is too full for more uploads.
	ErrQuota = fault.New(fault.Conflict, agentapi.CodeQuota, "The volume is over its quota.")
	// ErrParent occurs when a commit builds on a head that is not the head.
	ErrParent = fault.New(fault.Conflict, agentapi.CodeParent, "The volume has a newer head.")
	// ErrAway occurs when the control plane cannot be reached or fails.
	ErrAway = fault.New(fault.Unavailable, "control_plane_away", "The control plane cannot be reached.")
)

// Times a call may take.
const (
	callTimeout   = 30 * time.Second
	commitTimeout = 5 * time.Minute // the server looks at every new object
	retryFirst    = 50 * time.Millisecond
	retryMost     = 2 * time.Second
)

const maxAnswer = 256 << 20 // a volume of 500 GB has some 10^4 indexes and packs

// client calls the control plane.
type client struct {
	http  *http.Client
	dial  func(ctx context.Context, network, addr string) (net.Conn, error) // nil: TCP
	base  string
	token string
}

func newClient(c Config) *client {
	transport := &http.Transport{
		DialContext:           c.Dial,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       30 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: 5 * time.Second,
		ForceAttemptHTTP2:     true,
	}
	if c.Dial == nil {
		dialer := &net.Dialer{Timeout: 10 * time.Second}
		transport.DialContext = dialer.DialContext
		transport.Proxy = http.ProxyFromEnvironment
	}
	return &client{http: &http.Client{Transport: transport, CheckRedirect: refuseRedirect}, dial: c.Dial, base: c.BaseURL, token: c.Token}
}

// refuseRedirect keeps the token, and what a grant allows, where they were sent.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// post makes one call. Whatever is not an answer of the control plane itself,
// such as a gateway's page, is ErrAway.
func (c *client) post(ctx context.Context, path string, limit time.Duration, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encode the call of %s: %w", path, err)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("call %s: %w", path, err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return ErrAway.Because(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return ErrAway.Because(err)
	}
	if res.StatusCode/100 != 2 {
		return refusal(path, res.StatusCode, answer)
	}
	if out == nil || len(answer) == 0 {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return ErrAway.Because(fmt.Errorf("answer of %s: %w", path, err))
	}
	return nil
}

// refusal reads what the control plane said no with.
func refusal(path string, status int, body []byte) error {
	var p agentapi.Problem
	if json.Unmarshal(body, &p) != nil || p.Code == "" {
		return ErrAway.Because(fmt.Errorf("%s answered %d", path, status))
	}
	cause := fmt.Errorf("%s answered %d %s", path, status, p.Code)
	switch {
	case status == http.StatusUnauthorized || status == http.StatusNotFound:
		return ErrRefused.Because(cause)
	case p.Code == agentapi.CodeFenced:
		return ErrFenced.Because(cause)
	case p.Code == agentapi.CodeQuota:
		return ErrQuota.Because(cause)
	case p.Code == agentapi.CodeParent:
		return ErrParent.Because(cause)
	case status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout:
		return ErrAway.Because(cause)
	default:
		return cause
	}
}

// persist makes a call again and again while the control plane is away: until
// it answers or ctx ends, whose cause is returned then.
func (c *client) persist(ctx context.Context, path string, limit time.Duration, in, out any) error {
	wait := newBackoff(retryFirst, retryMost, c.token+path)
	for {
		err := c.post(ctx, path, limit, in, out)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !errors.Is(err, ErrAway) {
			return err
		}
		if err := wait.sleep(ctx); err != nil {
			return err
		}
	}
}

// over reports whether the control plane said that this agent is to end.
func over(err error) bool { return errors.Is(err, ErrFenced) || errors.Is(err, ErrRefused) }
