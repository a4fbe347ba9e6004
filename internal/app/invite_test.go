package app

import (
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/gotrue"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/mail/mailbox"
	"homeport.dev/homeport/internal/team"
)

// calls serves the auth service and the API of a quay.
func (q *quay) calls() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/api/", http.StripPrefix("/api", q.apiHandler()))
	mux.Handle("/auth/v1/", gotrue.New(gotrue.Deps{
		Auth: q.auth, Clock: q.clock, Logger: q.logger, PublicURL: q.config.PublicURL, Version: Version,
	}))
	return mux
}

func (q *quay) send(h http.Handler, method, address, contentType, body string) *http.Response {
	q.t.Helper()
	r := httptest.NewRequestWithContext(q.t.Context(), method, strings.TrimPrefix(address, q.config.PublicURL), strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Result()
}

// letter waits for the newest mail to an address.
func (q *quay) letter(to string) mailbox.Letter {
	q.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		letters, err := q.mailbox.List(q.t.Context())
		q.must(err)
		for _, l := range letters {
			if l.To == to {
				return l
			}
		}
	}
	q.t.Fatalf("no mail came to %s", to)
	return mailbox.Letter{}
}

var (
	address = regexp.MustCompile(`https?://\S+`)
	hidden  = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`)
)

// join follows the link of an invitation's mail as any browser does, and
// returns the session's body, or what refused it.
func (q *quay) join(h http.Handler, to string) (status int, body string) {
	q.t.Helper()
	links := address.FindAllString(q.letter(to).Text, -1)
	if len(links) != 1 {
		q.t.Fatalf("the mail has the addresses %q", links)
	}
	page := q.send(h, "GET", links[0], "", "")
	text, err := io.ReadAll(page.Body)
	q.must(err)
	if page.StatusCode != http.StatusOK {
		return page.StatusCode, page.Header.Get("Location")
	}
	if !strings.Contains(string(text), "Somebody invited you to their team") || strings.Contains(string(text), "Requested from") {
		q.t.Errorf("the page says %s", text)
	}
	form := url.Values{}
	for _, in := range hidden.FindAllStringSubmatch(string(text), -1) {
		form.Set(in[1], html.UnescapeString(in[2]))
	}
	on := q.send(h, "POST", "/auth/v1/verify", "application/x-www-form-urlencoded", form.Encode())
	_, fragment, _ := strings.Cut(on.Header.Get("Location"), "#")
	redeem, err := url.ParseQuery(fragment)
	q.must(err)
	made := q.send(h, "POST", "/auth/v1/verify", "application/json",
		`{"type":"`+redeem.Get("type")+`","token_hash":"`+redeem.Get("token_hash")+`"}`)
	text, err = io.ReadAll(made.Body)
	q.must(err)
	return made.StatusCode, string(text)
}

// The whole way: invited by mail where only the invited may sign up, in with
// one click, and a member before the first call.
func TestAnInvitationByMail(t *testing.T) {
	t.Parallel()
	q := newQuay(t, "SIGNUP", "invited")
	q.must(q.queue.Start(t.Context()))
	h := q.calls()
	ada := q.sailor("ada")
	docks := q.crew(ada)
	for _, who := range []string{"eve", "late", "gone"} {
		status, err := q.teams.Invite(t.Context(), docks, who+"@example.org", idem.Request{})
		if status != team.Pending || err != nil {
			t.Fatalf("%s: %s, %v", who, status, err)
		}
		q.letter(who + "@example.org") // none is sent once its invitation is over
	}
	if status, body := q.join(h, "eve@example.org"); status != http.StatusOK || !strings.Contains(body, "access_token") {
		t.Fatalf("the invited got %d %s", status, body)
	}
	members, err := q.teams.Members(t.Context(), docks)
	if err != nil || len(members) != 2 || members[1].Email != "eve@example.org" || members[1].Role != team.Member {
		t.Errorf("members after the sign-in: %+v, %v", members, err)
	}
	if status, where := q.join(h, "eve@example.org"); status != http.StatusSeeOther || !strings.Contains(where, "otp_expired") {
		t.Errorf("the same link again: %d to %s", status, where)
	}
	waiting, err := q.teams.Invitations(t.Context(), docks)
	q.must(err)
	q.must(q.teams.CancelInvitation(t.Context(), docks, waiting[0].ID))
	if status, where := q.join(h, waiting[0].Email); status != http.StatusSeeOther || !strings.Contains(where, "otp_expired") {
		t.Errorf("a cancelled invitation: %d to %s", status, where)
	}
	q.clock.SetOffset(14 * 24 * time.Hour)
	if status, where := q.join(h, waiting[1].Email); status != http.StatusSeeOther || !strings.Contains(where, "otp_expired") {
		t.Errorf("after 14 days of business time: %d to %s", status, where)
	}
	if n := len(waiting); n != 2 {
		t.Errorf("%d were waiting", n)
	}
}
