package api_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
	"homeport.dev/homeport/internal/wallet"
)

// fields are the names of an object's members, and null for those that are.
func fields(t *testing.T, raw json.RawMessage) map[string]bool {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	out := map[string]bool{}
	for name, value := range members {
		out[name] = string(value) == "null"
	}
	return out
}

// names makes a set; a name with a star is null.
func names(list string) map[string]bool {
	out := map[string]bool{}
	for _, name := range strings.Fields(list) {
		bare, null := strings.CutSuffix(name, "*")
		out[bare] = null
	}
	return out
}

// Answers have the shapes of product.md: lists are arrays, never null; what is
// made is answered whole, as the list shows it; what is deleted answers nothing.
func TestShapes(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.move(10 * money.Dollar)
	in := "?team_id=" + p.team
	for _, path := range []string{"/pods", "/volumes", "/ssh-keys"} {
		if got := strings.TrimSpace(w.is(w.call(p.token, "GET", path+in, ""), 200).Body.String()); got != "[]" {
			t.Errorf("an empty %s is %s", path, got)
		}
	}
	w.is(w.call(p.token, "GET", "/volumes"+in+"&deleted=true", ""), 200)
	volume, key := w.make(p, "/volumes", p.volumeBody()), w.make(p, "/ssh-keys", p.keyBody())
	body := p.podBody(volume, key)
	made := w.is(w.call(p.token, "POST", "/pods", body[:len(body)-1]+`,"unheard_of":[1],"colour":"red"}`), 201)
	var pod struct {
		ID    string
		Price json.Number
	}
	made.json(t, &pod)
	if pod.Price != "2.6" || !strings.Contains(made.Body.String(), `"price":2.6,`) {
		t.Errorf("the pod costs %s", pod.Price)
	}
	for _, tt := range []struct{ path, want string }{
		{"/pods", `id team_id status status_reason status_detail progress created_at ready_at* delete_requested_at* synced_at*
			metered_until* ended_at* gpu_count gpu_type provider country price ssh_host ssh_port* host_key_fingerprint
			volume_id ssh_key_id created_by auto_relaunch relaunch_pending relaunch_of* relaunched_as*`},
		{"/volumes", `id team_id name size_gb price_per_hour currently_used deleted created_at deleted_at* purge_at* synced_at* created_by team_key locked`},
		{"/ssh-keys", `id team_id name public_key key_type fingerprint created_at created_by`},
	} {
		var list []json.RawMessage
		a := w.is(w.call(p.token, "GET", tt.path+in, ""), 200)
		a.json(t, &list)
		if ct := a.Header().Get("Content-Type"); ct != "application/json" || len(list) != 1 {
			t.Fatalf("%s: %s of type %s", tt.path, a.Body, ct)
		}
		if diff := cmp.Diff(names(tt.want), fields(t, list[0])); diff != "" {
			t.Errorf("%s: %s", tt.path, diff)
		}
		if tt.path == "/pods" && strings.TrimSpace(made.Body.String()) != string(list[0]) {
			t.Errorf("made %s, listed %s", made.Body, list[0])
		}
	}
	w.problem(w.call(p.token, "POST", "/pods", body), 409, "volume_in_use")
	w.problem(w.call(p.token, "DELETE", "/volumes/"+volume+in, ""), 409, "volume_in_use")
	for _, path := range []string{"/pods/" + pod.ID, "/pods/" + pod.ID, "/volumes/" + volume, "/ssh-keys/" + key} {
		a := w.is(w.call(p.token, "DELETE", path+in, ""), 204)
		if a.Body.Len() != 0 {
			t.Errorf("DELETE %s answers %q", path, a.Body)
		}
	}
	restored := w.is(w.call(p.token, "POST", "/volumes/"+volume+"/restore"+in, ""), 201)
	if diff := cmp.Diff(names("id team_id name size_gb price_per_hour currently_used deleted created_at deleted_at* purge_at* synced_at* created_by team_key locked"),
		fields(t, restored.Body.Bytes())); diff != "" {
		t.Error(diff)
	}
	segments := w.is(w.call(p.token, "GET", "/volumes/"+volume+"/segments"+in, ""), 200)
	if got := strings.TrimSpace(segments.Body.String()); got != "[]" {
		t.Errorf("the rates of an empty volume: %s", got)
	}
}

func TestWhoAmI(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.move(0)
	a := w.is(w.call(p.token, "GET", "/user/info", ""), 200)
	if diff := cmp.Diff(names("user_id email personal_team teams"), fields(t, a.Body.Bytes())); diff != "" {
		t.Error(diff)
	}
	var info struct{ Teams []json.RawMessage }
	a.json(t, &info)
	want := names("id name description plan is_personal role created_at")
	got := fields(t, info.Teams[0])
	delete(got, "max_members") // only where seats are paid for
	if diff := cmp.Diff(want, got); diff != "" || len(info.Teams) != 1 {
		t.Error(diff)
	}
	var members []struct{ Role, Email, UserID string }
	w.is(w.call(p.token, "GET", "/teams/"+p.team+"/members", ""), 200).json(t, &members)
	if len(members) != 1 || members[0].Role != "admin" || members[0].Email != w.people[p.token].Email {
		t.Errorf("members: %+v", members)
	}
}

// Money is written as its exact decimal, however small.
func TestMoneyIsExact(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.move(10*money.Dollar + 1)
	in := "?team_id=" + p.team
	volume := w.make(p, "/volumes", p.volumeBody())
	if _, err := w.pool.Exec(t.Context(), `update volume set size_bytes = 20000000 where id = $1`, volume); err != nil {
		t.Fatal(err)
	}
	w.must(pg.InTx(t.Context(), w.pool, func(tx pgx.Tx) error {
		return w.wallet.StartTx(t.Context(), tx, wallet.Start{
			TeamID: uuid.MustParse(p.team), ResourceID: uuid.MustParse(volume), Kind: wallet.VolumeStorage, Rate: 4, At: w.clock.Now(),
		})
	}))
	w.clock.Advance(90 * time.Minute)
	for path, want := range map[string][]string{
		"/volumes" + in:                                    {`"size_gb":0.02,`, `"price_per_hour":0.000004,`},
		"/volumes/" + volume + "/segments" + in:            {`"rate":0.000004}`},
		"/wallet/balance" + in:                             {`"balance":9.999995,`, `"spending_per_hour":0.000004,`},
		"/wallet/transactions" + in:                        {`"amount":-0.000006,`, `"amount":10.000001,`},
		"/wallet/balance" + in + "&include_estimates=true": {`"month_spent":0.000006`, `"month_limit":1000`, `"hours_remaining":2499998.75`},
	} {
		a := w.is(w.call(p.token, "GET", path, ""), 200)
		for _, text := range want {
			if !strings.Contains(a.Body.String(), text) {
				t.Errorf("%s has no %s: %s", path, text, a.Body)
			}
		}
		if exponent.MatchString(a.Body.String()) {
			t.Errorf("%s: a number with an exponent: %s", path, a.Body)
		}
	}
	w.must(w.offers.Refresh(t.Context()))
	for price, status := range map[string]int{"2.6": 201, `"2.6"`: 422, "2.5999999": 422, "2.599999": 409, "null": 422, "-1": 409, "true": 422} {
		other := w.move(10 * money.Dollar)
		v, k := w.make(other, "/volumes", other.volumeBody()), w.make(other, "/ssh-keys", other.keyBody())
		body := strings.Replace(other.podBody(v, k), `"price":2.6`, `"price":`+price, 1)
		if a := w.call(other.token, "POST", "/pods", body); a.Code != status {
			t.Errorf("price %s: %d %s", price, a.Code, a.Body)
		}
	}
}

var exponent = regexp.MustCompile(`[:\[,]-?[0-9.]+[eE]`)

func TestIdempotencyKeyOnEveryPost(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.move(10 * money.Dollar)
	volume, key := w.make(p, "/volumes", p.volumeBody()), w.make(p, "/ssh-keys", p.keyBody())
	in, crew := "?team_id="+p.team, w.found(p)
	w.is(w.call(p.token, "DELETE", "/volumes/"+volume+in, ""), 204)
	volume = ""
	for _, tt := range []struct {
		path   string
		body   func() string
		status int
	}{
		{"/volumes", p.volumeBody, 201},
		{"/ssh-keys", p.keyBody, 201},
		{"/pods", func() string { return p.podBody(volume, key) }, 201},
		{"/wallet/credit/checkout" + in, func() string { return `{"amount":12.34}` }, 200},
		{"/teams/" + crew + "/invite", func() string { return `{"email":"ada@example.org"}` }, 200},
		{"/product-interest", func() string {
			return `{"team_id":"` + p.team + `","product":"batch-inference","interested":true}`
		}, 201},
	} {
		first := w.is(w.call(p.token, "POST", tt.path, tt.body(), "Idempotency-Key", "one"), tt.status)
		again := w.is(w.call(p.token, "POST", tt.path, " "+tt.body()+"\n", "Idempotency-Key", "one"), tt.status)
		if diff := cmp.Diff(first.Body.String(), again.Body.String()); diff != "" {
			t.Errorf("%s, again: %s", tt.path, diff)
		}
		other := strings.Replace(tt.body(), "{", `{"x":1,`, 1)
		w.problem(w.call(p.token, "POST", tt.path, other, "Idempotency-Key", "one"), 422, "idempotency_mismatch")
		w.problem(w.call(p.token, "POST", tt.path, tt.body(), "Idempotency-Key", strings.Repeat("k", 256)), 422, "")
		if tt.path == "/volumes" {
			var made struct{ ID string }
			first.json(t, &made)
			volume = made.ID
		}
	}
}

// The history comes in pages, each naming the next in its Link header.
func TestTransactionsGoOnInTheLink(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.move(0)
	for range 5 {
		w.must(pg.InTx(t.Context(), w.pool, func(tx pgx.Tx) error {
			key := id.New().String()
			_, err := w.wallet.CreditTx(t.Context(), tx, wallet.Credit{
				TeamID: uuid.MustParse(p.team), Amount: money.Dollar, Source: wallet.Test, Key: key, ReferenceID: key, At: w.clock.Now(),
			})
			return err
		}))
		w.clock.Advance(time.Second)
	}
	seen := map[string]bool{}
	path := "/wallet/transactions?limit=2&team_id=" + p.team
	for pages := 1; ; pages++ {
		a := w.is(w.call(p.token, "GET", path, ""), 200)
		var rows []struct{ ID string }
		a.json(t, &rows)
		for _, r := range rows {
			if seen[r.ID] {
				t.Errorf("%s came twice", r.ID)
			}
			seen[r.ID] = true
		}
		link := a.Header().Get("Link")
		if link == "" {
			if pages != 3 || len(seen) != 5 {
				t.Errorf("%d rows on %d pages", len(seen), pages)
			}
			return
		}
		next := regexp.MustCompile(`^</api(/wallet/transactions\?[^>]+)>; rel="next"$`).FindStringSubmatch(link)
		if next == nil || pages > 5 {
			t.Fatalf("the link is %q", link)
		}
		path = next[1]
	}
}

// A payment's row links its receipt for who may read the team's history, while
// the receipt's address lasts; another team that knows the payment has no link.
func TestReceiptsAreLinkedInTheHistory(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p, stranger := w.move(0), w.move(0)
	seen := w.clock.Wall()
	_, err := w.pool.Exec(t.Context(), `insert into topup (id, team_id, user_id, amount_usd_micro, processor, status, payment_id, created_at, opened_at, closed_at, receipt_url, receipt_seen_at)
		values (gen_random_uuid(), $1, $2, 5000000, 'test', 'paid', 'pi_1', $3, $3, $3, 'https://pay.test/receipt/1', $3),
		(gen_random_uuid(), $1, $2, 5000000, 'test', 'paid', 'pi_2', $3, $3, $3, null, null)`, p.team, p.token, seen)
	w.must(err)
	for _, team := range []string{p.team, stranger.team} {
		for _, payment := range []string{"pi_1", "pi_2"} {
			w.must(pg.InTx(t.Context(), w.pool, func(tx pgx.Tx) error {
				_, err := w.wallet.CreditTx(t.Context(), tx, wallet.Credit{
					TeamID: uuid.MustParse(team), Amount: 5 * money.Dollar, Source: wallet.Test, Key: team + payment, ReferenceID: payment, At: w.clock.Now(),
				})
				return err
			}))
		}
	}
	want := func(when string, who person, linked int) {
		t.Helper()
		body := w.is(w.call(who.token, "GET", "/wallet/transactions?team_id="+who.team, ""), 200).Body.String()
		if got := strings.Count(body, `"receipt_url"`); got != linked || linked == 1 && !strings.Contains(body, `"reference_id":"pi_1","receipt_url":"https://pay.test/receipt/1"`) {
			t.Errorf("%s %d receipts are linked, want %d: %s", when, got, linked, body)
		}
	}
	want("for the team", p, 1)
	want("for a stranger", stranger, 0)
	w.clock.Advance(21 * 24 * time.Hour)
	want("once the address is old", p, 0)
}

func TestTransactionsRefuse(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.move(0)
	for _, q := range []string{"limit=0", "limit=1001", "limit=x", "cursor=garbage"} {
		a := w.call(p.token, "GET", "/wallet/transactions?team_id="+p.team+"&"+q, "")
		if a.Code != 422 && a.Code != 400 {
			t.Errorf("%s: %d %s", q, a.Code, a.Body)
		}
		w.problem(a, a.Code, "")
	}
	if got := strings.TrimSpace(w.is(w.call(p.token, "GET", "/wallet/transactions?team_id="+p.team, ""), 200).Body.String()); got != "[]" {
		t.Errorf("no history is %s", got)
	}
	w.problem(w.call(p.token, "GET", "/wallet/transactions", ""), 422, "")
}

// Offers are for everybody, at the list price; a team sees its own. Who has
// them already is told so.
func TestOffersForEverybody(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.move(0)
	anonymous := w.is(w.call("", "GET", "/resources", ""), 200)
	var all map[string][]json.RawMessage
	anonymous.json(t, &all)
	want := names(`gpuType gpuCount gpuMemory memory vcpu price listPrice socket country provider cloudId currency
		defaultDiskSize diskPrice* security isSpot dataCenterId* image`)
	if diff := cmp.Diff(want, fields(t, all["H100_80GB"][0])); diff != "" {
		t.Error(diff)
	}
	etag := anonymous.Header().Get("ETag")
	if ct := anonymous.Header().Get("Content-Type"); etag == "" || ct != "application/json" {
		t.Errorf("ETag %q, type %q", etag, ct)
	}
	same := w.is(w.call("", "GET", "/resources", "", "If-None-Match", etag), 304)
	if same.Body.Len() != 0 || same.Header().Get("ETag") != etag {
		t.Errorf("not modified: %q, ETag %q", same.Body, same.Header().Get("ETag"))
	}
	w.is(w.call("", "GET", "/resources?team_id="+p.team, ""), 200) // the team is read only with a session
	w.problem(w.call("no such", "GET", "/resources", ""), 401, "bad_jwt")
	scope := teamtest.Admin(t, w.pool, team.Pro)
	w.people["pro"] = team.Person{ID: scope.UserID(), Email: scope.Email()}
	in := "/resources?team_id=" + scope.TeamID().String()
	pro := w.is(w.call("pro", "GET", in, "", "If-None-Match", etag), 200)
	if !strings.Contains(pro.Body.String(), `"price":2.184,"listPrice":2.6,`) || pro.Header().Get("ETag") == etag {
		t.Errorf("pro: %s", pro.Body)
	}
	w.is(w.call("pro", "GET", in, "", "If-None-Match", pro.Header().Get("ETag")), 304)
}
