// Package cloudapi is the HTTP client that the adapters of real clouds share.
// It bounds every call in time and size, waits for its turn by a Limiter,
// follows no redirect, respects the proxy of the environment, never shows a
// key, and says of every failure whether the cloud may have acted all the same.
// The words of each cloud stay in its adapter.
package cloudapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"homeport.dev/homeport/internal/provider"
)

// What a call may take by default.
const (
	readFor = 30 * time.Second // a call that changes nothing, or may be repeated
	makeFor = 60 * time.Second // a call that makes a machine
	maxBody = 32 << 20         // bytes of an answer
)

// Config of a client.
type Config struct {
	Name    string // of the adapter
	BaseURL string // without a slash at its end
	Key     string // the account's secret; in no error and no log
	// Authorize puts the key where this cloud looks for it.
	Authorize func(h http.Header, key string)
	// Rates are what the cloud allows, by class of call; a class without one
	// has the rate of "", and without that none.
	Rates map[string]Rate
	// Refused reads the cloud's words of a 4xx. Nil = the status alone says it;
	// see Failure. Rate limits are read before.
	Refused func(f *Failure) error
	Limiter Limiter
	Logger  *slog.Logger
	ReadFor time.Duration // 0 = 30 s
	MakeFor time.Duration // 0 = 60 s
	MaxBody int64         // 0 = 32 MiB
}

// A Client calls one account at one cloud. It is safe for concurrent use.
type Client struct {
	Config
	account string
	http    *http.Client
}

// New returns a client. It refuses a base URL that is not one.
func New(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("%s: %q is not the address of an API", cfg.Name, cfg.BaseURL)
	}
	if cfg.Key == "" || strings.ContainsAny(cfg.Key, "\r\n\x00") {
		return nil, fmt.Errorf("%s: the key is empty or not one line", cfg.Name)
	}
	cfg.BaseURL = strings.TrimRight(cfg.BaseURL, "/")
	if cfg.ReadFor == 0 {
		cfg.ReadFor = readFor
	}
	if cfg.MakeFor == 0 {
		cfg.MakeFor = makeFor
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = maxBody
	}
	sum := sha256.Sum256([]byte(cfg.Key))
	return &Client{
		Config: cfg, account: cfg.Name + "-" + hex.EncodeToString(sum[:4]),
		http: &http.Client{
			Transport: &http.Transport{
				Proxy:       http.ProxyFromEnvironment,
				DialContext: (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
				// HTTP/2 stays on with a dialer of our own.
				ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
				MaxIdleConnsPerHost: 8, IdleConnTimeout: 90 * time.Second,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Account names the account without telling its key: the same key, the same name.
func (c *Client) Account() string { return c.account }

// A Call is one request.
type Call struct {
	Method string
	Path   string // after the base URL; ids in it by url.PathEscape
	Query  url.Values
	Body   any      // sent as JSON; nil = none
	Class  string   // of calls that the cloud limits together
	Makes  bool     // a machine comes of it: it may take longer, and its end matters
	Hide   []string // parts of the request that no error may show
}

// An Answer takes what a cloud said as it came, where Do is given one: for
// bodies that are not always JSON, and statuses below 300 that differ in meaning.
type Answer struct {
	Status int
	Body   []byte
}

// Do makes a call and decodes the answer's JSON into out, unless that is nil or
// an *Answer.
//
// Its error is ErrRateLimited or ErrUnreachable when nothing was sent or done;
// what Refused made of a 4xx; or a plain error, after which the cloud may have
// acted: a timeout, a break after sending, a 5xx, a redirect, an answer too
// long, too slow or not as it should be. The chain holds the *Failure where the
// cloud answered with a status.
func (c *Client) Do(ctx context.Context, call Call, out any) error {
	patience := c.ReadFor
	if call.Makes {
		patience = c.MakeFor
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := c.wait(ctx, call); err != nil {
		return err
	}
	req, err := c.request(ctx, call)
	if err != nil {
		return provider.ErrUnreachable.Because(err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.broken(call, err)
	}
	defer res.Body.Close()
	c.Logger.DebugContext(ctx, "cloud answered", "cloud", c.account, "method", call.Method, "path", call.Path, "status", res.StatusCode)
	body, err := io.ReadAll(io.LimitReader(res.Body, c.MaxBody+1))
	if res.StatusCode >= 300 {
		return c.failed(ctx, call, res, body)
	}
	if err != nil {
		return fmt.Errorf("%s %s: read the answer: %w", call.Method, call.Path, err)
	}
	if int64(len(body)) > c.MaxBody {
		return fmt.Errorf("%s %s: the answer has more than %d bytes", call.Method, call.Path, c.MaxBody)
	}
	if out == nil {
		return nil
	}
	if a, ok := out.(*Answer); ok {
		a.Status, a.Body = res.StatusCode, body
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("%s %s: the answer is not as it should be: %w", call.Method, call.Path, err)
	}
	return nil
}

// Balance is the class of the question what is left of our money: a cloud that
// refuses it for a while is still asked everything else.
const Balance = "balance"

// rate is what the cloud allows of a class.
func (c *Client) rate(class string) (Rate, bool) {
	if class == Balance {
		return Rate{Every: 10 * time.Second, Burst: 2}, true
	}
	r, ok := c.Rates[class]
	if !ok {
		r, ok = c.Rates[""]
	}
	return r, ok
}

// wait waits for the call's turn. Nothing was sent when it fails.
func (c *Client) wait(ctx context.Context, call Call) error {
	rate, limited := c.rate(call.Class)
	if !limited {
		return nil
	}
	err := c.Limiter.Wait(ctx, Bucket{c.account, call.Class}, rate)
	if err == nil || errors.Is(err, provider.ErrRateLimited) || errors.Is(err, context.Canceled) {
		return err
	}
	return provider.ErrUnreachable.Because(fmt.Errorf("wait for the turn of %s: %w", call.Path, err))
}

func (c *Client) request(ctx context.Context, call Call) (*http.Request, error) {
	target := c.BaseURL + call.Path
	if len(call.Query) > 0 {
		target += "?" + call.Query.Encode()
	}
	var body io.Reader
	if call.Body != nil {
		b, err := json.Marshal(call.Body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, call.Method, target, body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "homeport")
	c.Authorize(req.Header, c.Key)
	return req, nil
}

// broken sorts a call without an answer: one whose connection was never made
// did nothing.
func (c *Client) broken(call Call, err error) error {
	var dial *net.OpError
	var name *net.DNSError
	err = fmt.Errorf("%s %s: %w", call.Method, call.Path, hush(err))
	if errors.As(err, &name) || errors.As(err, &dial) && dial.Op == "dial" {
		return provider.ErrUnreachable.Because(err)
	}
	return err
}

// hush takes the address out of a transport's error: a query may hold what is
// nobody's business.
func hush(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// redact removes the key, and what else must not be shown, from a cloud's text.
func (c *Client) redact(call Call, text string) string {
	for _, secret := range append([]string{c.Key}, call.Hide...) {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[hidden]")
		}
	}
	return text
}
