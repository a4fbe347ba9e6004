package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/team"
)

// What is charged without being asked is an admin's to agree on and to see.
func TestAutomaticTopUps(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	admin, mate, stranger := w.move(0), w.move(0), w.move(0)
	crew := w.found(admin)
	w.join(mate, crew, team.Member)
	path, card := "/wallet/auto-topup?team_id="+crew, "/wallet/card?team_id="+crew
	const terms = `{"enabled":true,"threshold":10,"amount":25.50,"monthly_cap":200}`
	for _, call := range []struct{ method, path, body string }{
		{"GET", path, ""}, {"PUT", path, terms}, {"GET", card, ""}, {"POST", card, ""}, {"DELETE", card, ""},
	} {
		w.problem(w.call("", call.method, call.path, call.body), 401, "no_session")
		w.problem(w.call(mate.token, call.method, call.path, call.body), 403, "role")
		w.problem(w.call(stranger.token, call.method, call.path, call.body), 404, "team_not_found")
	}
	proposal := map[string]any{
		"enabled": false, "state": "off", "threshold": 5.0, "amount": 25.0, "monthly_cap": 500.0, "month_charged": 0.0, "min_amount": 0.01,
		"off_reason": nil, "next_try_at": nil,
	}
	var got map[string]any
	w.is(w.call(admin.token, "GET", path, ""), 200).json(t, &got)
	if diff := cmp.Diff(proposal, got); diff != "" {
		t.Errorf("what is proposed:\n%s", diff)
	}
	w.refused(w.call(admin.token, "GET", card, ""), 404, "no_saved_card", "This team has no saved card.")
	w.refused(w.call(admin.token, "DELETE", card, ""), 404, "no_saved_card", "This team has no saved card.")
	w.refused(w.call(admin.token, "PUT", path, terms), 409, "card_needed", "Save a card first.")
	for body, detail := range map[string]string{
		`{"enabled":true,"threshold":0.5,"amount":25,"monthly_cap":200}`: "Please enter a threshold from $1.00 to $10,000.",
		`{"enabled":true,"threshold":5,"amount":0,"monthly_cap":200}`:    "Please enter an amount from $0.01 to $10,000.",
		`{"enabled":true,"threshold":5,"amount":1.001,"monthly_cap":20}`: "Please enter an amount with at most 2 decimals.",
		`{"enabled":true,"threshold":5,"amount":25,"monthly_cap":24}`:    "The monthly cap must be at least the amount of one top-up.",
		`{"enabled":true,"threshold":5,"amount":25,"monthly_cap":1e6}`:   "Please enter a monthly cap of at most $100,000.",
	} {
		if p := w.problem(w.call(admin.token, "PUT", path, body), 422, ""); p.Detail != detail {
			t.Errorf("%s: %q, want %q", body, p.Detail, detail)
		}
	}
	w.problem(w.call(admin.token, "PUT", path, `{"enabled":true}`), 422, "invalid_input")

	var first, second struct {
		URL string `json:"checkout_url"`
	}
	w.is(w.call(admin.token, "POST", card, "", "Idempotency-Key", "k"), 200).json(t, &first)
	w.is(w.call(admin.token, "POST", card, "", "Idempotency-Key", "k"), 200).json(t, &second)
	if first.URL == "" || first.URL != second.URL {
		t.Errorf("one key opened %q and %q", first.URL, second.URL)
	}
	_, err := w.pool.Exec(t.Context(), `insert into payment_card (id, team_id, processor, user_id, brand, last4, exp_month, exp_year, saved_at)
		values ('pm_1', $1, 'test', $2, 'visa', '4242', 4, 2031, $3)`, crew, id.New(), w.clock.Now())
	w.must(err)
	w.is(w.call(admin.token, "GET", card, ""), 200).json(t, &got)
	w.is(w.call(admin.token, "PUT", path, terms), 200).json(t, &got)
	got = nil
	w.is(w.call(admin.token, "GET", path, ""), 200).json(t, &got)
	shown := map[string]any{"enabled": true, "state": "on", "threshold": 10.0, "amount": 25.5, "monthly_cap": 200.0}
	for key, want := range shown {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	if c, ok := got["card"].(map[string]any); !ok || c["last4"] != "4242" || c["brand"] != "visa" || c["exp_year"] != 2031.0 || c["id"] != nil {
		t.Errorf("the card is shown as %v", got["card"])
	}
	w.is(w.call(admin.token, "DELETE", card, ""), 204)
	got = nil
	w.is(w.call(admin.token, "GET", path, ""), 200).json(t, &got)
	if got["state"] != "off" || got["card"] != nil || got["amount"] != 25.5 {
		t.Errorf("after the card was removed: %v", got)
	}
}

// Who saved the card finds it and takes it away also as a viewer; the others of
// the team learn nothing of it.
func TestWhoSavedTheCardSeesItWhateverTheirRole(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	admin, payer, mate, stranger := w.move(0), w.move(0), w.move(0), w.move(0)
	crew := w.found(admin)
	w.join(payer, crew, team.Viewer)
	w.join(mate, crew, team.Member)
	mine, card := "/wallet/my-card?team_id="+crew, "/wallet/card?team_id="+crew
	_, err := w.pool.Exec(t.Context(), `insert into payment_card (id, team_id, processor, user_id, brand, last4, exp_month, exp_year, saved_at)
		values ('pm_1', $1, 'test', $2, 'visa', '4242', 4, 2031, $3)`, crew, payer.token, w.clock.Now())
	w.must(err)
	w.problem(w.call("", "GET", mine, ""), 401, "no_session")
	w.problem(w.call(stranger.token, "GET", mine, ""), 404, "team_not_found")
	saw := func(token string) any {
		var got map[string]any
		w.is(w.call(token, "GET", mine, ""), 200).json(t, &got)
		c, _ := got["card"].(map[string]any)
		return c["last4"]
	}
	if got := []any{saw(admin.token), saw(mate.token), saw(payer.token)}; !cmp.Equal(got, []any{nil, nil, "4242"}) {
		t.Errorf("admin, member and payer see the cards %v", got)
	}
	w.is(w.call(payer.token, "DELETE", card, ""), 204)
	if got := saw(payer.token); got != nil {
		t.Errorf("after it was removed: %v", got)
	}
}
