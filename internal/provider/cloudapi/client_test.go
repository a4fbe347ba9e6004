package cloudapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

const secret = "sk-very-secret-key"

func client(t *testing.T, base string, change func(c *cloudapi.Config)) *cloudapi.Client {
	t.Helper()
	cfg := cloudapi.Config{
		Name: "acme", BaseURL: base, Key: secret, Limiter: cloudapi.NewLocal(clock.New()), Logger: cloudtest.Logger(t, secret, "payload-with-token"),
		Authorize: func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) },
	}
	if change != nil {
		change(&cfg)
	}
	c, err := cloudapi.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does a server notice that its caller left
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

var create = cloudapi.Call{
	Method: http.MethodPost, Path: "/create", Body: map[string]string{"script": "payload-with-token"}, Class: "make", Makes: true,
	Hide: []string{"payload-with-token"},
}

// TestAnswerIsTakenAsItCame: some clouds answer bare words, and mean by a 207
// something else than by a 202.
func TestAnswerIsTakenAsItCame(t *testing.T) {
	t.Parallel()
	c := client(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusMultiStatus)
		_, _ = io.WriteString(w, "made-1")
	}), nil)
	var got cloudapi.Answer
	if err := c.Do(t.Context(), create, &got); err != nil || got.Status != http.StatusMultiStatus || string(got.Body) != "made-1" {
		t.Errorf("%d %s, %v", got.Status, got.Body, err)
	}
}

// TestFailuresSayWhetherAMachineMayExist: what is not known for certain is
// never "no machine".
func TestFailuresSayWhetherAMachineMayExist(t *testing.T) {
	t.Parallel()
	var followed bool
	for name, one := range map[string]struct {
		answer http.HandlerFunc
		want   error // nil = a machine may exist
	}{
		"a plain 400":  {status(400, "no"), provider.ErrRefused},
		"a plain 401":  {status(401, "key?"), provider.ErrRefused},
		"a plain 402":  {status(402, "pay"), provider.ErrFunds},
		"a plain 404":  {status(404, ""), provider.ErrRefused},
		"a plain 408":  {status(408, ""), nil},
		"a plain 409":  {status(409, "exists"), nil},
		"a plain 422":  {status(422, ""), provider.ErrRefused},
		"a plain 425":  {status(425, ""), nil},
		"a 429":        {status(429, ""), provider.ErrRateLimited},
		"a 500":        {status(500, "no"), nil},
		"a 503":        {status(503, "no"), nil},
		"broken JSON":  {status(200, `{"id":`), nil},
		"another JSON": {status(200, `{"id":[1]}`), nil},
		"nothing":      {status(200, ""), nil},
		"a long answer": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"id":"%s"}`, strings.Repeat("x", 2000))
		}, nil},
		"a slow answer": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, nil},
		"a slow body": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"id":`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, nil},
		"a break": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = conn.Close()
			}
		}, nil},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			followed = followed || r.URL.Path != "/create"
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, nil},
	} {
		c := client(t, serve(t, one.answer), func(c *cloudapi.Config) { c.MakeFor, c.MaxBody = 300*time.Millisecond, 1000 })
		var out struct{ ID string }
		err := c.Do(t.Context(), create, &out)
		if err == nil || provider.NoMachine(err) != (one.want != nil) || one.want != nil && !errors.Is(err, one.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if followed {
		t.Error("a redirect was followed, with the key")
	}
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "3")
		}
		http.Error(w, body, code)
	}
}

func TestACloudThatIsNotThereMadeNoMachine(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + l.Addr().String()
	_ = l.Close()
	for _, base := range []string{nobody, "http://no-such-host.invalid"} {
		if err := client(t, base, nil).Do(t.Context(), create, nil); !errors.Is(err, provider.ErrUnreachable) {
			t.Errorf("%s: %v", base, err)
		}
	}
}

// TestNoErrorShowsASecret has a cloud echo everything it was sent.
func TestNoErrorShowsASecret(t *testing.T) {
	t.Parallel()
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, r.Header.Get("Authorization")+" payload-with-token "+strings.Repeat("é", 1000), http.StatusBadRequest)
	})
	err := client(t, base, nil).Do(t.Context(), create, nil)
	if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "payload-with-token") || len(err.Error()) > 500 {
		t.Errorf("the error is %v", err)
	}
	var f *cloudapi.Failure
	if !errors.As(err, &f) || f.Status != http.StatusBadRequest || !f.Says("PAYLOAD-with") {
		t.Errorf("the adapter cannot read what was said: %+v", f)
	}
	if name := client(t, base, nil).Account(); strings.Contains(name, secret) || !strings.HasPrefix(name, "acme-") {
		t.Errorf("the account is called %s", name)
	}
}

func TestAnAdapterReadsItsOwnWordsOfA4xxOnly(t *testing.T) {
	t.Parallel()
	words := func(c *cloudapi.Config) {
		c.Refused = func(f *cloudapi.Failure) error {
			if f.Says("sold out") {
				return provider.ErrNoCapacity
			}
			return nil
		}
	}
	for code, want := range map[int]error{400: provider.ErrNoCapacity, 500: nil, 429: provider.ErrRateLimited} {
		err := client(t, serve(t, status(code, "Sold Out")), words).Do(t.Context(), create, nil)
		if provider.NoMachine(err) != (want != nil) || want != nil && !errors.Is(err, want) {
			t.Errorf("%d: %v", code, err)
		}
	}
	if err := client(t, serve(t, status(400, "odd")), words).Do(t.Context(), create, nil); err == nil || provider.NoMachine(err) {
		t.Errorf("what the adapter does not know: %v", err)
	}
}

// TestA429HoldsTheNextCalls: whoever was told to wait does not ask again before.
func TestA429HoldsTheNextCalls(t *testing.T) {
	t.Parallel()
	calls := 0
	c := client(t, serve(t, func(w http.ResponseWriter, r *http.Request) { calls++; status(429, "")(w, r) }), func(c *cloudapi.Config) {
		c.Rates = map[string]cloudapi.Rate{"": {Every: time.Millisecond, Burst: 5}}
		c.MakeFor = time.Second
	})
	err := c.Do(t.Context(), create, nil)
	if f := fault.Of(err); f == nil || f.RetryAfter != 3 {
		t.Errorf("the first call: %v", err)
	}
	err = c.Do(t.Context(), create, nil)
	if f := fault.Of(err); !errors.Is(err, provider.ErrRateLimited) || f.RetryAfter < 2 || f.RetryAfter > 3 || calls != 1 {
		t.Errorf("the second call, after %d: %v", calls, err)
	}
	// Calls that the cloud counts apart go on, and the question for the balance
	// holds nobody but itself.
	other := create
	other.Class = cloudapi.Balance
	if _ = c.Do(t.Context(), other, nil); calls != 2 {
		t.Error("another class of calls was held, too")
	}
	other.Class = "read"
	if _ = c.Do(t.Context(), other, nil); calls != 3 {
		t.Error("a refused question for the balance held other calls")
	}
	other.Class = cloudapi.Balance
	if _ = c.Do(t.Context(), other, nil); calls != 3 {
		t.Error("the balance is asked for again before it may be")
	}
}

func TestCallsKeepToTheRate(t *testing.T) {
	t.Parallel()
	c := client(t, serve(t, func(http.ResponseWriter, *http.Request) {}), func(c *cloudapi.Config) {
		c.Rates = map[string]cloudapi.Rate{"": {Every: 100 * time.Millisecond, Burst: 2}}
	})
	wall := clock.New()
	began := wall.Wall()
	for range 4 {
		if err := c.Do(t.Context(), cloudapi.Call{Method: http.MethodGet, Path: "/"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if took := wall.Wall().Sub(began); took < 190*time.Millisecond {
		t.Errorf("two at once and two more took %s", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Do(ctx, cloudapi.Call{Method: http.MethodGet, Path: "/"}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who left: %v", err)
	}
}

func TestSettingsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]cloudapi.Config{
		"no address":     {Key: "k"},
		"a path":         {Key: "k", BaseURL: "/v1"},
		"another scheme": {Key: "k", BaseURL: "ftp://api.example"},
		"a query":        {Key: "k", BaseURL: "https://api.example?x=1"},
		"no key":         {BaseURL: "https://api.example"},
		"two lines":      {Key: "k\nX-Other: 1", BaseURL: "https://api.example"},
	} {
		if _, err := cloudapi.New(cfg); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
