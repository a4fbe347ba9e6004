package gotrue_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/auth"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/gotrue"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/mail/mailbox"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/seal"
)

// A world is a server on a real database, its mails and its clock.
type world struct {
	t     *testing.T
	pool  *pgxpool.Pool
	clock *clock.Manual
	jobs  *job.Recorder
	box   *mailbox.Mailbox
	auth  *auth.Service
	url   string
	log   *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newWorld(t *testing.T, change ...func(*auth.Deps)) *world {
	t.Helper()
	w := &world{t: t, pool: pgtest.New(t), jobs: &job.Recorder{}, log: &syncBuffer{}}
	w.clock = clock.Fixed(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	w.box = mailbox.New(w.pool, w.clock.Clock)
	logger := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	sealer, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	var handler http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { handler.ServeHTTP(rw, r) }))
	t.Cleanup(server.Close)
	w.url = server.URL
	deps := auth.Deps{
		Pool: w.pool, Clock: w.clock.Clock, Queue: w.jobs, Box: sealer, Mail: w.box, Logger: logger, PublicURL: w.url,
	}
	for _, f := range change {
		f(&deps)
	}
	if w.auth, err = auth.New(deps); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.auth.Close)
	handler = gotrue.New(gotrue.Deps{
		Auth: w.auth, Clock: w.clock.Clock, Logger: logger, PublicURL: deps.PublicURL, Version: "test",
		ClientIP: func(r *http.Request) string {
			if ip := r.Header.Get("Test-IP"); ip != "" {
				return ip
			}
			return "192.0.2.1"
		},
	})
	return w
}

// An answer is a response, read.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("the answer is not a JSON object: %v\n%d %s", err, a.status, a.body)
	}
	return v
}

// client returns a browser: it keeps cookies and follows no redirect.
func (w *world) client() *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// send makes a request; headers come in pairs.
func (w *world) send(c *http.Client, method, path, body string, headers ...string) answer {
	w.t.Helper()
	target := path
	if strings.HasPrefix(path, "/") {
		target = w.url + "/auth/v1" + path
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json;charset=UTF-8")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		w.t.Error(err)
		return answer{}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Error(err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: string(b)}
}

// deliver runs the queued mail jobs, each twice as a queue may, and returns
// the newest letter.
func (w *world) deliver() mailbox.Letter {
	w.t.Helper()
	for _, args := range w.jobs.Take() {
		link, ok := args.(auth.SendLinkJob)
		if !ok {
			w.t.Fatalf("unexpected job %T", args)
		}
		for range 2 {
			if err := w.auth.SendLink(w.t.Context(), link); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	letters, err := w.box.List(w.t.Context())
	if err != nil || len(letters) == 0 {
		w.t.Fatalf("no mail came: %v", err)
	}
	return letters[0]
}

var urls = regexp.MustCompile(`https?://\S+`)

// askLink asks for a link and returns its address from the mail.
func (w *world) askLink(c *http.Client, email string, headers ...string) string {
	w.t.Helper()
	a := w.send(c, "POST", "/otp?redirect_to="+url.QueryEscape(w.url), `{"email":"`+email+`","data":{},"create_user":true,"gotrue_meta_security":{},"code_challenge":null,"code_challenge_method":null}`, headers...)
	if a.status != 200 || strings.TrimSpace(a.body) != "{}" {
		w.t.Fatalf("POST /otp = %d %s", a.status, a.body)
	}
	letter := w.deliver()
	found := urls.FindAllString(letter.Text, -1)
	if letter.To != email || len(found) != 1 {
		w.t.Fatalf("the letter to %s has the URLs %v", letter.To, found)
	}
	return found[0]
}

// tokenOf is the token in a link's address, or in the fragment it leads to.
func tokenOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	if u.Fragment != "" {
		values, _ := url.ParseQuery(u.Fragment)
		return values.Get("token_hash")
	}
	return u.Query().Get("token")
}

// signIn signs an address in and returns the session.
func (w *world) signIn(email string) map[string]any {
	w.t.Helper()
	token := tokenOf(w.askLink(w.client(), email))
	a := w.send(w.client(), "POST", "/verify", `{"type":"magiclink","token_hash":"`+token+`"}`)
	if a.status != 200 {
		w.t.Fatalf("POST /verify = %d %s", a.status, a.body)
	}
	return a.json(w.t)
}

func (w *world) count(sql string, args ...any) int {
	w.t.Helper()
	var n int
	if err := w.pool.QueryRow(w.t.Context(), sql, args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// wantProblem checks an error in all its shapes.
func wantProblem(t *testing.T, a answer, status int, code, message string) {
	t.Helper()
	if a.status != status {
		t.Errorf("status = %d, want %d: %s", a.status, status, a.body)
		return
	}
	b := a.json(t)
	for key, want := range map[string]any{
		"code": code, "error_code": code, "type": "urn:homeport:" + code, "status": float64(status),
	} {
		if b[key] != want {
			t.Errorf("%s = %v, want %v", key, b[key], want)
		}
	}
	if message != "" && b["message"] != message {
		t.Errorf("message = %q, want %q", b["message"], message)
	}
	if b["message"] == "" || b["message"] != b["msg"] || b["message"] != b["detail"] || b["title"] == "" {
		t.Errorf("the shapes differ: %v", b)
	}
	if a.header.Get("X-Sb-Error-Code") != code || !strings.HasPrefix(a.header.Get("Content-Type"), "application/problem+json") {
		t.Errorf("headers = %v", a.header)
	}
}
