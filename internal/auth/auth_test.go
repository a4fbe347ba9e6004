package auth

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/seal"
)

const testURL = "https://homeport.test"

// A postbox is a mail server that answers what it is told.
type postbox struct {
	mu     sync.Mutex
	answer error
	got    []mail.Message
}

func (p *postbox) Send(_ context.Context, m mail.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answer != nil {
		return p.answer
	}
	p.got = append(p.got, m)
	return nil
}

// A rig is a service and what surrounds it.
type rig struct {
	*Service
	t     *testing.T
	now   *clock.Manual
	jobs  *job.Recorder
	post  *postbox
	log   *bytes.Buffer
	agent int
}

func newRig(t *testing.T, pool *pgxpool.Pool, change ...func(*Deps)) *rig {
	t.Helper()
	box, err := seal.New(bytes.Repeat([]byte{9}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, jobs: &job.Recorder{}, post: &postbox{}, log: &bytes.Buffer{}}
	r.now = clock.Fixed(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	deps := Deps{
		Pool: pool, Clock: r.now.Clock, Queue: r.jobs, Box: box, Mail: r.post,
		Logger: slog.New(slog.NewTextHandler(r.log, nil)), PublicURL: testURL,
	}
	for _, f := range change {
		f(&deps)
	}
	if r.Service, err = New(deps); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// ask requests a link from a browser of its own and returns the mail's job.
func (r *rig) ask(email string) SendLinkJob {
	r.t.Helper()
	r.agent++
	_, err := r.RequestLink(r.t.Context(), Request{Email: email, IP: "192.0.2.1", UserAgent: strings.Repeat("x", r.agent)})
	if err != nil {
		r.t.Fatal(err)
	}
	jobs := r.jobs.Take()
	if len(jobs) != 1 {
		r.t.Fatalf("%d jobs, want 1", len(jobs))
	}
	link, ok := jobs[0].(SendLinkJob)
	if !ok {
		r.t.Fatalf("job %T", jobs[0])
	}
	return link
}

// token runs the mail's job and returns the token it brought.
func (r *rig) token(link SendLinkJob) string {
	r.t.Helper()
	if err := r.SendLink(r.t.Context(), link); err != nil {
		r.t.Fatal(err)
	}
	if len(r.post.got) == 0 {
		r.t.Fatal("no mail came")
	}
	_, rest, _ := strings.Cut(r.post.got[len(r.post.got)-1].Text, "token=")
	token, _, _ := strings.Cut(rest, "&")
	return token
}

func (r *rig) signIn(email string) Grant {
	r.t.Helper()
	grant, err := r.Verify(r.t.Context(), r.token(r.ask(email)), Client{IP: "192.0.2.1"})
	if err != nil {
		r.t.Fatal(err)
	}
	return grant
}

func (r *rig) count(sql string, args ...any) int {
	r.t.Helper()
	var n int
	if err := r.Pool.QueryRow(r.t.Context(), sql, args...).Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

func (r *rig) identity(g Grant) Identity {
	r.t.Helper()
	who, err := r.Authenticate(r.t.Context(), g.AccessToken)
	if err != nil {
		r.t.Fatal(err)
	}
	return who
}

func TestAddressesAreReadStrictly(t *testing.T) {
	t.Parallel()
	for email, ok := range map[string]bool{
		"ada@example.com": true, " ada@example.com\n": true, "a.b+tag@sub.example.co": true, "a@localhost": true, "a'b@x.io": true,
		"a@b": false, "ada": false, "@x.io": false, "a@": false, "a@@x.io": false, "a@x..io": false, "a@-x.io": false, "a@x.io.": false,
		"a b@x.io": false, "a,b@x.io": false, "<a@x.io>": false, "Ada <a@x.io>": false, "a@[127.0.0.1]": false, `"a"@x.io`: false,
		".a@x.io": false, "a.@x.io": false, "a..b@x.io": false, "ä@x.io": false, "a@ä.io": false, "a@x.io\x00": false, "a\u202e@x.io": false,
		strings.Repeat("a", 65) + "@x.io": false, "a@" + strings.Repeat("b", 64) + ".io": false,
	} {
		if _, err := CleanEmail(email); (err == nil) != ok {
			t.Errorf("CleanEmail(%q) = %v, want ok %v", email, err, ok)
		}
	}
}

func TestNetworksStandForCustomers(t *testing.T) {
	t.Parallel()
	for ip, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7", "2001:db8::1": "2001:db8::/64",
		"2001:db8:0:0:ffff::": "2001:db8::/64", "fe80::1%eth0": "fe80::/64", "": "unknown", "evil": "unknown",
	} {
		if got := network(ip); got != want {
			t.Errorf("network(%q) = %q, want %q", ip, got, want)
		}
	}
}

func TestRefreshTurns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		presented, current uint32
		want               turn
	}{{1, 1, turnRotate}, {1, 2, turnSame}, {1, 3, turnReused}, {2, 1, turnNone}, {7, 7, turnRotate}, {0, 1, turnSame}, {1 << 31, 1, turnNone}} {
		if got := decide(c.presented, c.current); got != c.want {
			t.Errorf("decide(%d, %d) = %v, want %v", c.presented, c.current, got, c.want)
		}
	}
}

func TestRefreshTokensProveThemselves(t *testing.T) {
	t.Parallel()
	session, secret := uuid.New(), []byte("secret")
	token := newRefreshToken(session, 5, secret)
	parsed, ok := parseRefreshToken(token)
	if !ok || parsed.session != session || parsed.generation != 5 || !parsed.genuine(secret) || parsed.genuine([]byte("other")) {
		t.Errorf("parsed %+v, %v", parsed, ok)
	}
	for _, bad := range []string{"", token[1:], token + "A", token[:69] + "=", strings.Repeat("!", len(token))} {
		if _, ok := parseRefreshToken(bad); ok {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestTheCacheIsBoundedAndKeepsWhatIsUsed(t *testing.T) {
	t.Parallel()
	c := newCache[int, int](10)
	for i := range 1000 {
		c.put(i, i)
		if _, ok := c.get(0); !ok {
			t.Fatalf("what is used was dropped at %d", i)
		}
		if n := len(c.now) + len(c.old); n > 21 {
			t.Fatalf("%d entries", n)
		}
	}
	if _, ok := c.get(5); ok {
		t.Error("what is not used was kept")
	}
	c.drop(0)
	if _, ok := c.get(0); ok {
		t.Error("a dropped entry was found")
	}
}

func TestAgentsAreNamedWithoutRepeatingThem(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{
		"": "a browser", "<script>": "a browser", "curl/8.0": "curl",
		"Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0": "Edge on Windows",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1":      "Safari on iPhone",
		"Mozilla/5.0 (Linux; Android 15) Chrome/140.0 Mobile Safari/537.36":                     "Chrome on Android",
	} {
		if got := DescribeAgent(agent); got != want {
			t.Errorf("DescribeAgent(%q) = %q, want %q", agent, got, want)
		}
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for name, deps := range map[string]Deps{
		"no public URL":        {},
		"relative public URL":  {PublicURL: "/"},
		"odd scheme":           {PublicURL: "ftp://homeport.test"},
		"plain redirect":       {PublicURL: testURL, RedirectOrigins: []string{"http://other.test"}},
		"redirect of no host":  {PublicURL: testURL, RedirectOrigins: []string{"https:"}},
		"unknown sign-up mode": {PublicURL: testURL, SignUp: "friends"},
	} {
		if _, err := New(deps); err == nil {
			t.Errorf("%s: New accepted %+v", name, deps)
		}
	}
	s, err := New(Deps{PublicURL: testURL + "/", RedirectOrigins: []string{"http://localhost:5173/"}})
	if err != nil || s.Redirect("http://localhost:5173/x") != "http://localhost:5173/x" || s.issuer != testURL+"/auth/v1" {
		t.Errorf("New = %+v, %v", s, err)
	}
}
