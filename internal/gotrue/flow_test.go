package gotrue_test

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/auth"
)

func TestSignInInTheBrowserThatAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	browser := w.client()
	link := w.askLink(browser, "Ada.L@Example.com")
	if !strings.HasPrefix(link, w.url+"/auth/v1/verify?") {
		t.Fatalf("the link leads to %s", link)
	}
	a := w.send(browser, "GET", link, "")
	token := tokenOf(a.header.Get("Location"))
	if want := w.url + "#token_hash=" + token + "&type=magiclink"; a.status != 303 || a.header.Get("Location") != want || token == "" {
		t.Fatalf("GET link = %d to %q, want %q", a.status, a.header.Get("Location"), want)
	}
	if n := w.count(`select count(*) from auth_user`); n != 0 {
		t.Errorf("%d users before the link was redeemed", n)
	}
	a = w.send(browser, "POST", "/verify", `{"type":"magiclink","token_hash":"`+token+`"}`)
	session := a.json(t)
	user, _ := session["user"].(map[string]any)
	if a.status != 200 || session["token_type"] != "bearer" || session["expires_in"] != float64(900) || user["email"] != "Ada.L@Example.com" {
		t.Fatalf("session = %d %s", a.status, a.body)
	}
	if session["expires_at"] != float64(w.clock.Wall().Add(15*time.Minute).Unix()) {
		t.Errorf("expires_at = %v", session["expires_at"])
	}
	for _, member := range []string{
		"id", "aud", "role", "email", "phone", "email_confirmed_at", "confirmed_at", "last_sign_in_at", "app_metadata",
		"user_metadata", "identities", "created_at", "updated_at", "is_anonymous",
	} {
		if _, ok := user[member]; !ok {
			t.Errorf("the user lacks %s", member)
		}
	}
	access, _ := session["access_token"].(string)
	me := w.send(w.client(), "GET", "/user", "", "Authorization", "Bearer "+access)
	if b := me.json(t); me.status != 200 || b["id"] != user["id"] || b["email"] != "Ada.L@Example.com" {
		t.Errorf("GET /user = %d %s", me.status, me.body)
	}
	again := w.send(browser, "POST", "/verify", `{"type":"magiclink","token_hash":"`+token+`"}`)
	wantProblem(t, again, 403, "otp_expired", "Token has expired or is invalid")
}

var (
	formRe   = regexp.MustCompile(`<form method="post" action="([^"]*)">`)
	hiddenRe = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
	styleRe  = regexp.MustCompile(`(?s)<style>(.*)</style>`)
)

func TestSignInWithoutABrowser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link := w.askLink(w.client(), "ada@example.com", "User-Agent", "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0")
	w.clock.Advance(3 * time.Minute)
	page := w.send(w.client(), "GET", link, "")
	if page.status != 200 || !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") {
		t.Fatalf("GET link elsewhere = %d %v", page.status, page.header)
	}
	for _, want := range []string{"a***@example.com", "Firefox on Linux", "192.0.2.1", "3 minutes ago"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page.body, "ada@") || strings.Contains(page.body, "<script") {
		t.Errorf("the page shows the address or has a script:\n%s", page.body)
	}
	sum := sha256.Sum256([]byte(styleRe.FindStringSubmatch(page.body)[1]))
	policy := page.header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") || !strings.Contains(policy, "default-src 'none'") {
		t.Errorf("the policy %q does not fit the page", policy)
	}
	form := url.Values{}
	for _, input := range hiddenRe.FindAllStringSubmatch(page.body, -1) {
		form.Set(html.UnescapeString(input[1]), html.UnescapeString(input[2]))
	}
	action := formRe.FindAllStringSubmatch(page.body, -1)
	if len(action) != 1 || len(form) == 0 || strings.Count(page.body, "<button") != 1 {
		t.Fatalf("the page has %d forms with %v", len(action), form)
	}
	for range 2 { // pressing twice is no harm
		a := w.send(w.client(), "POST", w.url+action[0][1], form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
		if want := w.url + "#token_hash=" + tokenOf(link) + "&type=magiclink"; a.status != 303 || a.header.Get("Location") != want {
			t.Fatalf("POST of the form = %d to %q", a.status, a.header.Get("Location"))
		}
	}
	a := w.send(w.client(), "POST", "/verify", `{"type":"magiclink","token_hash":"`+tokenOf(link)+`"}`)
	if a.status != 200 {
		t.Fatalf("POST /verify = %d %s", a.status, a.body)
	}
	dead := w.send(w.client(), "POST", w.url+action[0][1], form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	if !strings.Contains(dead.header.Get("Location"), "error_code=otp_expired") {
		t.Errorf("the form after the link was used = %d to %q", dead.status, dead.header.Get("Location"))
	}
}

func TestScannersBurnNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link := w.askLink(w.client(), "ada@example.com")
	for _, method := range []string{"GET", "HEAD", "GET", "HEAD"} {
		if a := w.send(w.client(), method, link, ""); a.status != 200 {
			t.Errorf("%s = %d", method, a.status)
		}
	}
	for _, method := range []string{"OPTIONS", "PUT", "DELETE"} {
		if a := w.send(w.client(), method, link, ""); a.status != 405 {
			t.Errorf("%s = %d", method, a.status)
		}
	}
	if n := w.count(`select count(*) from auth_link where used_at is null and ended_at is null`); n != 1 {
		t.Errorf("%d links are left, want 1", n)
	}
	if a := w.send(w.client(), "POST", "/verify", `{"type":"email","token_hash":"`+tokenOf(link)+`"}`); a.status != 200 {
		t.Errorf("POST /verify after the scanners = %d %s", a.status, a.body)
	}
}

func TestADeadLinkLeadsHomeWithTheReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link := w.askLink(w.client(), "ada@example.com")
	w.clock.Advance(10 * time.Minute)
	want := "#error=access_denied&error_code=otp_expired&error_description=Email+link+is+invalid+or+has+expired&sb="
	for name, address := range map[string]string{
		"expired":         link,
		"unknown":         w.url + "/auth/v1/verify?token=" + strings.Repeat("a", 43) + "&type=magiclink",
		"no token":        w.url + "/auth/v1/verify",
		"unknown type":    w.url + "/auth/v1/verify?type=recovery&token=" + tokenOf(link),
		"foreign address": w.url + "/auth/v1/verify?token=x&type=magiclink&redirect_to=https://evil.example/",
	} {
		a := w.send(w.client(), "GET", address, "")
		if a.status != 303 || a.header.Get("Location") != w.url+want {
			t.Errorf("%s: %d to %q, want %q", name, a.status, a.header.Get("Location"), w.url+want)
		}
	}
	wantProblem(t, w.send(w.client(), "POST", "/verify", `{"type":"magiclink","token_hash":"`+tokenOf(link)+`"}`), 403, "otp_expired", "")
}

func TestOneLinkMakesOneSessionWhoeverRaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := tokenOf(w.askLink(w.client(), "ada@example.com"))
	var mu sync.Mutex
	statuses := map[int]int{}
	var wait sync.WaitGroup
	for range 64 {
		wait.Go(func() {
			a := w.send(w.client(), "POST", "/verify", `{"type":"magiclink","token_hash":"`+token+`"}`)
			mu.Lock()
			defer mu.Unlock()
			statuses[a.status]++
		})
	}
	wait.Wait()
	if statuses[200] != 1 || statuses[403] != 63 {
		t.Errorf("statuses = %v", statuses)
	}
	if users, sessions := w.count(`select count(*) from auth_user`), w.count(`select count(*) from auth_session`); users != 1 || sessions != 1 {
		t.Errorf("%d users, %d sessions", users, sessions)
	}
}

func TestTheSameAddressIsTheSameUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, _ := w.signIn("ada@example.com")["user"].(map[string]any)
	w.clock.Advance(2 * time.Minute)
	second, _ := w.signIn("ADA@Example.COM")["user"].(map[string]any)
	if first["id"] != second["id"] || second["email"] != "ada@example.com" || second["last_sign_in_at"] == first["last_sign_in_at"] {
		t.Errorf("first %v, second %v", first, second)
	}
}

func (w *world) refresh(token any) answer {
	w.t.Helper()
	text, _ := token.(string)
	return w.send(w.client(), "POST", "/token?grant_type=refresh_token", `{"refresh_token":"`+text+`"}`)
}

func TestRefreshRotatesAndForgivesOneStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.signIn("ada@example.com")
	var mu sync.Mutex
	var next []string
	var wait sync.WaitGroup
	for range 3 {
		wait.Go(func() {
			a := w.refresh(session["refresh_token"])
			token, _ := a.json(t)["refresh_token"].(string)
			mu.Lock()
			defer mu.Unlock()
			if a.status != 200 {
				t.Errorf("refresh = %d %s", a.status, a.body)
			}
			next = append(next, token)
		})
	}
	wait.Wait()
	slices.Sort(next)
	if next = slices.Compact(next); len(next) != 1 || next[0] == session["refresh_token"] || next[0] == "" {
		t.Fatalf("three tabs got the tokens %v", next)
	}
	third := w.refresh(next[0]).json(t)
	access, _ := third["access_token"].(string)
	wantProblem(t, w.refresh(session["refresh_token"]), 400, "refresh_token_already_used", "")
	wantProblem(t, w.refresh(third["refresh_token"]), 400, "refresh_token_not_found", "")
	wantProblem(t, w.send(w.client(), "GET", "/user", "", "Authorization", "Bearer "+access), 401, "session_not_found", "")
}

func TestAnInventedRefreshTokenEndsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.signIn("ada@example.com")
	genuine, _ := session["refresh_token"].(string)
	raw, err := base64.RawURLEncoding.DecodeString(genuine)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{16, 19, 20, 51} { // the generation, the code
		forged := slices.Clone(raw)
		forged[i] ^= 1
		wantProblem(t, w.refresh(base64.RawURLEncoding.EncodeToString(forged)), 400, "refresh_token_not_found", "")
	}
	if a := w.refresh(genuine); a.status != 200 {
		t.Errorf("the genuine token = %d %s", a.status, a.body)
	}
}

func TestSessionsEndInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	idle, busy := w.signIn("idle@example.com"), w.signIn("busy@example.com")
	token := busy["refresh_token"]
	for range 4 {
		w.clock.Advance(7*24*time.Hour - time.Minute)
		a := w.refresh(token)
		if a.status != 200 {
			t.Fatalf("refresh within a week = %d %s", a.status, a.body)
		}
		token = a.json(t)["refresh_token"]
	}
	wantProblem(t, w.refresh(idle["refresh_token"]), 400, "session_expired", "")
	w.clock.Advance(2*24*time.Hour + time.Hour)
	wantProblem(t, w.refresh(token), 400, "session_expired", "")
}

func TestSignOutScopes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var access []string
	for range 3 {
		token, _ := w.signIn("ada@example.com")["access_token"].(string)
		access = append(access, token)
		w.clock.Advance(2 * time.Minute)
	}
	other, _ := w.signIn("eve@example.com")["access_token"].(string)
	status := func(token string) int {
		return w.send(w.client(), "GET", "/user", "", "Authorization", "Bearer "+token).status
	}
	logout := func(token, query string, want int) {
		t.Helper()
		if a := w.send(w.client(), "POST", "/logout"+query, "", "Authorization", "Bearer "+token); a.status != want {
			t.Fatalf("logout%s = %d %s", query, a.status, a.body)
		}
	}
	logout(access[0], "?scope=everywhere", 400)
	logout(access[0], "?scope=local", 204)
	if status(access[0]) != 401 || status(access[1]) != 200 {
		t.Error("local ended too little or too much")
	}
	logout(access[1], "?scope=others", 204)
	if status(access[1]) != 200 || status(access[2]) != 401 {
		t.Error("others ended too little or too much")
	}
	logout(access[1], "", 204)
	if status(access[1]) != 401 || status(other) != 200 {
		t.Error("global ended too little or too much")
	}
	logout(access[1], "?scope=local", 401)
}

func TestCookiesAndHTTPS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.send(w.client(), "POST", "/otp", `{"email":"ada@example.com"}`)
	var names []string
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		names = append(names, c.Name+" "+c.Path)
		if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.MaxAge != 600 || c.Secure || len(c.Value) != 43 {
			t.Errorf("cookie = %+v", c)
		}
	}
	if !slices.Equal(names, []string{"hp_ml /auth/v1/verify", "hp_br /auth/v1/otp"}) {
		t.Errorf("cookies = %v", names)
	}
	w = newWorld(t, func(d *auth.Deps) { d.PublicURL = "https://homeport.test" })
	a = w.send(w.client(), "POST", "/otp", `{"email":"ada@example.com"}`, "Origin", "https://homeport.test")
	if cookies := (&http.Response{Header: a.header}).Cookies(); len(cookies) != 2 || !cookies[0].Secure {
		t.Errorf("cookies on https = %v", cookies)
	}
}

func TestNothingSecretIsLogged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	browser := w.client()
	link := w.askLink(browser, "canary@example.com")
	secrets := []string{tokenOf(link), "canary"}
	w.send(w.client(), "GET", link, "")
	a := w.send(browser, "POST", "/verify", `{"type":"magiclink","token_hash":"`+tokenOf(link)+`"}`)
	session := a.json(t)
	for _, key := range []string{"access_token", "refresh_token"} {
		token, _ := session[key].(string)
		secrets = append(secrets, token)
	}
	second := w.refresh(session["refresh_token"]).json(t)["refresh_token"]
	w.refresh(second)
	w.refresh(session["refresh_token"]) // reuse, which is logged
	w.send(w.client(), "POST", "/verify", `{"type":"magiclink","token_hash":"`+tokenOf(link)+`"}`)
	logged := w.log.String()
	if !strings.Contains(logged, "refresh token reused") {
		t.Errorf("the log does not tell of the reuse:\n%s", logged)
	}
	for _, secret := range secrets {
		if strings.Contains(logged, secret) {
			t.Errorf("the log holds %q", secret)
		}
		for _, table := range []string{"auth_link", "auth_session", "auth_request"} {
			if secret != "canary" && w.count(`select count(*) from `+table+` x where x::text like '%' || $1 || '%'`, secret) != 0 {
				t.Errorf("%s holds a token in the clear", table)
			}
		}
	}
}

// The auth client tries again after a 503; a plain 500 would sign the user out.
func TestARefreshWithoutADatabaseEndsNoSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.signIn("ada@example.com")
	w.pool.Close()
	wantProblem(t, w.refresh(session["refresh_token"]), 503, "unexpected_failure", "Something went wrong. Please try again.")
}
