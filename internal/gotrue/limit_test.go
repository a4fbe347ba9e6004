package gotrue_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/auth"
)

func (w *world) otp(c *http.Client, email string, headers ...string) answer {
	w.t.Helper()
	return w.send(c, "POST", "/otp", `{"email":"`+email+`"}`, headers...)
}

func TestTheSameBrowserWaitsAMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	browser := w.client()
	if a := w.otp(browser, "ada@example.com"); a.status != 200 {
		t.Fatalf("first = %d", a.status)
	}
	w.clock.Advance(20*time.Second + time.Millisecond)
	a := w.otp(browser, "somebody-else@example.com")
	wantProblem(t, a, 429, "over_email_send_rate_limit", "For security purposes, you can only request this after 40 seconds.")
	if a.header.Get("Retry-After") != "40" {
		t.Errorf("Retry-After = %q", a.header.Get("Retry-After"))
	}
	if a := w.otp(w.client(), "ada@example.com", "User-Agent", "another"); a.status != 200 {
		t.Errorf("another browser = %d %s", a.status, a.body)
	}
	wantProblem(t, w.otp(w.client(), "Ada@Example.com", "User-Agent", "another"), 429, "over_email_send_rate_limit",
		"For security purposes, you can only request this after 60 seconds.")
	w.clock.Advance(40 * time.Second)
	if a := w.otp(browser, "ada@example.com"); a.status != 200 {
		t.Errorf("after a minute = %d %s", a.status, a.body)
	}
}

func TestALinkEndsOlderOnesOfTheSameBrowserOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	browser, other := w.client(), w.client()
	first := w.askLink(browser, "ada@example.com")
	elsewhere := w.askLink(other, "ada@example.com", "User-Agent", "other")
	w.clock.Advance(time.Minute)
	second := w.askLink(browser, "ada@example.com")
	for link, want := range map[string]int{first: 403, elsewhere: 200, second: 200} {
		if a := w.send(w.client(), "POST", "/verify", `{"type":"magiclink","token_hash":"`+tokenOf(link)+`"}`); a.status != want {
			t.Errorf("verify = %d, want %d: %s", a.status, want, a.body)
		}
	}
}

func TestFivePerAddressAndIP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 5 {
		if a := w.otp(w.client(), "ada@example.com", "User-Agent", strconv.Itoa(i)); a.status != 200 {
			t.Fatalf("request %d = %d", i, a.status)
		}
	}
	a := w.otp(w.client(), "ADA@example.com", "User-Agent", "6")
	wantProblem(t, a, 429, "over_email_send_rate_limit", "")
	if a.header.Get("Retry-After") != "3600" {
		t.Errorf("Retry-After = %q", a.header.Get("Retry-After"))
	}
	if a := w.otp(w.client(), "ada@example.com", "Test-IP", "198.51.100.7"); a.status != 200 {
		t.Errorf("from elsewhere = %d", a.status)
	}
	w.clock.Advance(time.Hour)
	if a := w.otp(w.client(), "ada@example.com", "User-Agent", "7"); a.status != 200 {
		t.Errorf("an hour later = %d", a.status)
	}
}

func TestThirtyPerIPEvenAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	statuses := map[int]int{}
	var wait sync.WaitGroup
	for i := range 40 {
		wait.Go(func() {
			a := w.otp(w.client(), fmt.Sprintf("u%d@example.com", i), "Test-IP", fmt.Sprintf("2001:db8::%x", i+1))
			mu.Lock()
			defer mu.Unlock()
			statuses[a.status]++
		})
	}
	wait.Wait()
	if statuses[200] != 30 || statuses[429] != 10 {
		t.Fatalf("statuses = %v", statuses)
	}
	a := w.otp(w.client(), "late@example.com", "Test-IP", "2001:db8::ffff")
	wantProblem(t, a, 429, "over_request_rate_limit", "")
	if a.header.Get("Retry-After") != "300" {
		t.Errorf("Retry-After = %q", a.header.Get("Retry-After"))
	}
	if a := w.otp(w.client(), "late@example.com", "Test-IP", "2001:db8:1::1"); a.status != 200 {
		t.Errorf("another network = %d", a.status)
	}
	w.clock.Advance(5 * time.Minute)
	if a := w.otp(w.client(), "late@example.com", "Test-IP", "2001:db8::1"); a.status != 200 {
		t.Errorf("five minutes later = %d", a.status)
	}
}

func TestTwentyPerAddressThenSilence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 24 {
		a := w.otp(w.client(), "ada@example.com", "Test-IP", fmt.Sprintf("198.51.100.%d", i))
		if a.status != 200 || strings.TrimSpace(a.body) != "{}" || len(a.header.Values("Set-Cookie")) != 2 {
			t.Fatalf("request %d = %d %s", i, a.status, a.body)
		}
	}
	if n := len(w.jobs.Take()); n != 20 {
		t.Errorf("%d mails, want 20", n)
	}
}

func TestRefusalsAreTheSameForUnknownAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.signIn("known@example.com")
	shape := func(email string) []string {
		browser := w.client()
		first, second := w.otp(browser, email, "User-Agent", "a"), w.otp(browser, email, "User-Agent", "a")
		return []string{strconv.Itoa(first.status), first.body, strconv.Itoa(second.status), second.body}
	}
	if known, unknown := shape("known@example.com"), shape("nobody@example.com"); strings.Join(known, "|") != strings.Join(unknown, "|") {
		t.Errorf("known %v, unknown %v", known, unknown)
	}
	w.jobs.Take()
	for _, email := range []string{"known@example.com", "nobody2@example.com"} {
		a := w.send(w.client(), "POST", "/otp", `{"email":"`+email+`","create_user":false}`, "User-Agent", "b")
		if a.status != 200 || strings.TrimSpace(a.body) != "{}" {
			t.Errorf("create_user=false for %s = %d %s", email, a.status, a.body)
		}
	}
	before := w.count(`select count(*) from mailbox_message`)
	w.deliver()
	if after := w.count(`select count(*) from mailbox_message`); after != before+1 {
		t.Errorf("%d mails for one known and one unknown address without sign-up", after-before)
	}
}

func TestRedirectTargetsAreAllowedByOriginOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(d *auth.Deps) { d.RedirectOrigins = []string{"https://app.homeport.test"} })
	host := strings.TrimPrefix(w.url, "http://")
	corpus := map[string]string{
		"":                                  w.url,
		w.url:                               w.url,
		w.url + "/":                         w.url + "/",
		w.url + "/auth?redirect=/pods":      w.url + "/auth?redirect=/pods",
		w.url + "/pods#fragment":            w.url + "/pods",
		"https://app.homeport.test/x":       "https://app.homeport.test/x",
		"https://app.homeport.test:443/x":   "https://app.homeport.test/x",
		"HTTPS://APP.homeport.test/x":       "https://app.homeport.test/x",
		"http://app.homeport.test/x":        w.url,
		"https://app.homeport.test:444/x":   w.url,
		"https://app.homeport.test.evil.io": w.url,
		"https://evil.io/app.homeport.test": w.url,
	}
	for _, evil := range []string{
		"//evil.io", "///evil.io", "/\\evil.io", "\\\\evil.io", "https:evil.io", "https:/evil.io", "https:\\\\evil.io", "http:///evil.io",
		"https://evil.io", "http://evil.io", "HTTPS://EVIL.io", "ftp://" + host, "javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x",
		"vbscript:x", "file:///etc/passwd", "http://" + host + "@evil.io", "http://evil.io@" + host, "http://user:pass@" + host,
		"http://" + host + ".evil.io", "http://" + host + "%2eevil.io", "http://" + host + "\t.evil.io", "http://" + host + "\n", "\thttp://evil.io",
		"http://evil.io#" + host, "http://evil.io?" + host, "http://evil.io\\@" + host, "http://" + host + "\\.evil.io", "%2f%2fevil.io", "/%2f/evil.io",
		"http%3a%2f%2fevil.io", "http://2130706433/", "http://0177.0.0.1/", "http://0x7f.1/", "http://[::1]/", "http://xn--homeport-9za.test", "https://äpp.homeport.test",
		"http://127.0.0.1:1", "http://" + host + ":1", "http://:80", "http://", "http:", ":", "?x", "#x", "/pods", "pods", ".", "..", "\x00", "http://" + host + "\x00",
		"blob:" + w.url, "view-source:" + w.url, "intent://evil.io", "https://evil.io/" + w.url, "https://evil.io%23" + host, "https://evil.io%00" + host, " " + "https://evil.io",
		w.url + "/" + strings.Repeat("a", 3000),
	} {
		corpus[evil] = w.url
	}
	for raw, want := range corpus {
		if got := w.auth.Redirect(raw); got != want {
			t.Errorf("Redirect(%q) = %q, want %q", raw, got, want)
		}
	}
	a := w.send(w.client(), "POST", "/otp?redirect_to="+url.QueryEscape("https://evil.io/"), `{"email":"ada@example.com"}`, "Host", "evil.io", "X-Forwarded-Host", "evil.io")
	if letter := w.deliver(); a.status != 200 || strings.Contains(letter.Text, "evil") || strings.Contains(letter.HTML, "evil") {
		t.Errorf("the mail leads elsewhere: %s", letter.Text)
	}
}
