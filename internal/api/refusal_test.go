package api_test

import (
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/api"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
)

// An operation is one call of the published description.
type operation struct {
	method, path string
	op           *huma.Operation
}

func operations() []operation {
	_, doc := api.New(api.Deps{Clock: clock.New(), Logger: slog.New(slog.DiscardHandler)})
	var all []operation
	for path, item := range doc.Paths {
		for method, op := range map[string]*huma.Operation{
			"GET": item.Get, "POST": item.Post, "PUT": item.Put, "PATCH": item.Patch, "DELETE": item.Delete,
		} {
			if op != nil {
				all = append(all, operation{method, path, op})
			}
		}
	}
	return all
}

var inBraces = regexp.MustCompile(`\{[^}]+\}`)

// on names a call on something: its path parameters are ids, its team a query.
func (o operation) on(thing, teamID string) string {
	return inBraces.ReplaceAllString(o.path, thing) + "?team_id=" + teamID
}

// Every call refuses what HTTP allows and we do not, in one form.
func TestEveryCallRefusesAlike(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.move(money.Dollar)
	all := operations()
	if len(all) < 26 {
		t.Fatalf("%d calls are described", len(all))
	}
	for _, o := range all {
		path, thing := o.on(id.New().String(), p.team), o.method+" "+o.path
		if len(o.op.Security) > 0 {
			for _, header := range []string{"", " ", "Bearer ", "Bearer"} {
				got := w.call("", o.method, path, sane(o, p), "Authorization", header)
				if header == "Bearer" {
					w.problem(got, 401, "")
					continue
				}
				w.problem(got, 401, "no_session")
			}
			w.problem(w.call("no such", o.method, path, sane(o, p)), 401, "bad_jwt")
			if a := w.call("busy", o.method, path, sane(o, p)); a.Header().Get("Retry-After") != "17" {
				t.Errorf("%s: Retry-After is %q", thing, a.Header().Get("Retry-After"))
			} else {
				w.problem(a, 429, "busy")
			}
			if a := w.problem(w.call("broken", o.method, path, sane(o, p)), 500, "internal"); strings.Contains(a.Detail, "EOF") {
				t.Errorf("%s tells its inner trouble: %q", thing, a.Detail)
			}
		}
		if o.op.RequestBody == nil {
			continue
		}
		for _, broken := range []string{"{", `{"team_id":`, "no json", `{"team_id":"a"}}`, "\xff"} {
			if a := w.call(p.token, o.method, path, broken); a.Code != 400 {
				t.Errorf("%s with %q: %d %s", thing, broken, a.Code, a.Body)
			} else {
				w.problem(a, 400, "malformed")
			}
		}
		for _, other := range []string{"[]", "1", `"text"`, "{}", "null"} {
			w.problem(w.call(p.token, o.method, path, other), 422, "")
		}
		for _, ct := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/cbor"} {
			w.problem(w.call(p.token, o.method, path, sane(o, p), "Content-Type", ct), 415, "content_type")
		}
		large := `{"name":"` + strings.Repeat("a", 64<<10) + `"}`
		w.problem(w.call(p.token, o.method, path, large), 413, "body_too_large")
	}
}

// sane is a body that is JSON, for calls that take one.
func sane(o operation, p person) string {
	if o.op.RequestBody == nil {
		return ""
	}
	return `{"team_id":"` + p.team + `"}`
}

func TestUnknownCalls(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.move(0)
	for _, path := range []string{"/", "/pod", "/pods/a/b", "/teams", "/wallet", "/api/pods", "/volumes/", "/openapi.html", "/docs"} {
		for _, token := range []string{"", p.token} {
			w.problem(w.call(token, "GET", path, ""), 404, "no_such_path")
		}
	}
	methods := map[string][]string{}
	for _, o := range operations() {
		methods[o.path] = append(methods[o.path], o.method)
	}
	for path, have := range methods {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			if strings.Contains(strings.Join(have, " "), method) {
				continue
			}
			a := w.call(p.token, method, inBraces.ReplaceAllString(path, "x"), "")
			p := w.problem(a, http.StatusMethodNotAllowed, "method_not_allowed")
			slices.Sort(have)
			allowed := strings.Join(have, ", ")
			if got := a.Header().Get("Allow"); got != allowed {
				t.Errorf("%s %s allows %q", method, path, got)
			}
			if !strings.Contains(p.Detail, allowed) {
				t.Errorf("%s %s: %q does not name %s", method, path, p.Detail, allowed)
			}
		}
	}
}

// What is not yours answers as what is not there, byte for byte, and so does
// what is no id at all.
func TestForeignThingsLookLikeNone(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	mine, other := w.move(10*money.Dollar), w.move(10*money.Dollar)
	myVolume, myKey := w.make(mine, "/volumes", mine.volumeBody()), w.make(mine, "/ssh-keys", mine.keyBody())
	volume, key := w.make(other, "/volumes", other.volumeBody()), w.make(other, "/ssh-keys", other.keyBody())
	pod := w.make(other, "/pods", other.podBody(volume, key))
	crew := w.found(other)
	w.is(w.call(other.token, "POST", "/teams/"+crew+"/invite", `{"email":"ada@example.org"}`), 200)
	var invitations []struct{ ID string }
	w.is(w.call(other.token, "GET", "/teams/"+crew+"/pending-invitations", ""), 200).json(t, &invitations)
	waits := func(id string) string {
		return `{"team_id":"` + id + `","product":"batch-inference","interested":true}`
	}
	no := func() string { return id.New().String() }
	for name, tt := range map[string]struct {
		foreign      string
		method, path string
		body         func(thing string) string
	}{
		"pods":             {other.team, "GET", "/pods?team_id=*", nil},
		"volumes":          {other.team, "GET", "/volumes?team_id=*", nil},
		"trash":            {other.team, "GET", "/volumes?deleted=true&team_id=*", nil},
		"keys":             {other.team, "GET", "/ssh-keys?team_id=*", nil},
		"balance":          {other.team, "GET", "/wallet/balance?team_id=*", nil},
		"transactions":     {other.team, "GET", "/wallet/transactions?team_id=*", nil},
		"members":          {other.team, "GET", "/teams/*/members", nil},
		"offers":           {other.team, "GET", "/resources?team_id=*", nil},
		"a new volume":     {other.team, "POST", "/volumes", func(id string) string { return person{team: id}.volumeBody() }},
		"a new key":        {other.team, "POST", "/ssh-keys", func(id string) string { return person{team: id}.keyBody() }},
		"a top-up":         {other.team, "POST", "/wallet/credit/checkout?team_id=*", func(string) string { return `{"amount":5}` }},
		"a pod's team":     {other.team, "POST", "/pods", func(id string) string { return person{team: id}.podBody(volume, key) }},
		"a pod's volume":   {volume, "POST", "/pods", func(id string) string { return mine.podBody(id, myKey) }},
		"a pod's key":      {key, "POST", "/pods", func(id string) string { return mine.podBody(myVolume, id) }},
		"a pod":            {pod, "DELETE", "/pods/*?team_id=" + mine.team, nil},
		"a pod over there": {other.team, "DELETE", "/pods/" + pod + "?team_id=*", nil},
		"a volume":         {volume, "DELETE", "/volumes/*?team_id=" + mine.team, nil},
		"its rates":        {volume, "GET", "/volumes/*/segments?team_id=" + mine.team, nil},
		"its return":       {volume, "POST", "/volumes/*/restore?team_id=" + mine.team, nil},
		"its unlocking":    {volume, "POST", "/volumes/*/unlock?team_id=" + mine.team, func(string) string { return `{"key":"hpk_"}` }},
		"its locking":      {volume, "POST", "/volumes/*/lock?team_id=" + mine.team, nil},
		"its versions":     {volume, "GET", "/volumes/*/versions?team_id=" + mine.team, nil},
		"its files":        {volume, "GET", "/volumes/*/versions/latest/files?team_id=" + mine.team, nil},
		"a file of it":     {volume, "GET", "/volumes/*/versions/1/file?path=a&team_id=" + mine.team, nil},
		"its archive":      {volume, "GET", "/volumes/*/versions/1/tar?team_id=" + mine.team, nil},
		"its old version":  {volume, "POST", "/volumes/*/versions/1/restore?team_id=" + mine.team, nil},
		"files over there": {other.team, "GET", "/volumes/" + volume + "/versions/latest/files?team_id=*", nil},
		"a key":            {key, "DELETE", "/ssh-keys/*?team_id=" + mine.team, nil},
		"a team's name":    {crew, "PATCH", "/teams/*", func(string) string { return `{"name":"Mine"}` }},
		"a team's end":     {crew, "DELETE", "/teams/*", nil},
		"an invitation":    {crew, "POST", "/teams/*/invite", func(string) string { return `{"email":"bob@example.org"}` }},
		"the invited":      {crew, "GET", "/teams/*/pending-invitations", nil},
		"one invited":      {invitations[0].ID, "DELETE", "/teams/" + mine.team + "/pending-invitations/*", nil},
		"one over there":   {crew, "DELETE", "/teams/*/pending-invitations/" + invitations[0].ID, nil},
		"a member":         {other.token, "DELETE", "/teams/" + mine.team + "/members/*", nil},
		"one in there":     {crew, "DELETE", "/teams/*/members/" + other.token, nil},
		"a role":           {other.token, "PATCH", "/teams/" + mine.team + "/members/*", func(string) string { return `{"role":"viewer"}` }},
		"a role in there":  {crew, "PATCH", "/teams/*/members/" + other.token, func(string) string { return `{"role":"viewer"}` }},
		"interest":         {other.team, "GET", "/product-interest?product=batch-inference&team_id=*", nil},
		"new interest":     {other.team, "POST", "/product-interest", waits},
	} {
		ask := func(thing string) string {
			body := ""
			if tt.body != nil {
				body = tt.body(thing)
			}
			a := w.call(mine.token, tt.method, strings.ReplaceAll(tt.path, "*", thing), body)
			p := w.problem(a, 404, "")
			return strings.Replace(a.Body.String(), `"instance":"`+p.Instance+`"`, "", 1)
		}
		want := ask(tt.foreign)
		for _, none := range []string{no(), no(), "no-uuid", "1", strings.ToUpper(tt.foreign) + "0", "%00"} {
			if none == "%00" && tt.body != nil {
				none = `\u0000`
			}
			if diff := cmp.Diff(want, ask(none)); diff != "" {
				t.Errorf("%s: %q can be told from another team's:\n%s", name, none, diff)
			}
		}
	}
	var pods []struct{ Status string }
	w.is(w.call(other.token, "GET", "/pods?team_id="+other.team, ""), 200).json(t, &pods)
	if len(pods) != 1 || pods[0].Status != "pending" {
		t.Errorf("the other's pods: %+v", pods)
	}
}

// A private key is refused by name; its text is nowhere.
func TestPrivateKeyIsNotKept(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.move(0)
	const secret = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAAB"
	body := `{"team_id":"` + p.team + `","public_key":"-----BEGIN OPENSSH PRIVATE KEY-----\n` + secret + `\n-----END OPENSSH PRIVATE KEY-----"}`
	a := w.call(p.token, "POST", "/ssh-keys", body)
	if d := w.problem(a, 422, "ssh_key_private").Detail; !strings.Contains(d, "private key") {
		t.Errorf("it says %q", d)
	}
	if strings.Contains(a.Body.String(), secret) || strings.Contains(w.log.String(), secret) {
		t.Error("the private key is in the answer or the log")
	}
	a = w.call(p.token, "POST", "/ssh-keys", `{"team_id":1,"public_key":{"x":"`+secret+`"}}`)
	if w.problem(a, 422, ""); strings.Contains(a.Body.String(), secret) {
		t.Error("a refused body is in the answer")
	}
	if kept := w.call(p.token, "GET", "/ssh-keys?team_id="+p.team, "").Body.String(); strings.TrimSpace(kept) != "[]" {
		t.Errorf("kept: %s", kept)
	}
}
