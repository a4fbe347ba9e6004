package api_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/notice"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// A team whose money lasts half an hour is told so; each person dismisses it
// for themselves.
func TestNoticesOverHTTP(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	admin, viewer, stranger := w.move(0), w.move(0), w.move(0)
	crew := w.found(admin)
	w.join(viewer, crew, team.Viewer)
	path := "/notices?team_id=" + crew
	if got := strings.TrimSpace(w.is(w.call(admin.token, "GET", path, ""), 200).Body.String()); got != "[]" {
		t.Errorf("nothing to tell is %s", got)
	}
	teamID := uuid.MustParse(crew)
	w.must(pg.InTx(t.Context(), w.pool, func(tx pgx.Tx) error {
		now := w.clock.Now()
		_, err := w.wallet.CreditTx(t.Context(), tx, wallet.Credit{
			TeamID: teamID, Amount: money.Dollar / 2, Source: wallet.Test, Key: "k", ReferenceID: "k", At: now,
		})
		if err != nil {
			return err
		}
		err = w.wallet.StartTx(t.Context(), tx, wallet.Start{TeamID: teamID, ResourceID: id.New(), Kind: wallet.PodRuntime, Rate: 1_000_000, At: now})
		if err != nil {
			return err
		}
		warning, due, err := w.wallet.WarnTx(t.Context(), tx, teamID, now)
		if err != nil || !due {
			t.Fatalf("no warning is due: %v", err)
		}
		return w.notices.PostTx(t.Context(), tx, notice.Notice{
			TeamID: teamID, Kind: notice.RunwayKind(warning.Runway), Key: "1", PostedAt: now,
			Facts: notice.Facts{Balance: warning.Balance.Balance, Spending: warning.SpendingPerHour, EndsAt: warning.DepletesAt},
		})
	}))
	var list []struct {
		ID, Kind string
		Balance  float64
		Spending float64 `json:"spending_per_hour"`
		EndsAt   *string `json:"ends_at"`
	}
	w.is(w.call(viewer.token, "GET", path, ""), 200).json(t, &list)
	if len(list) != 1 || list[0].Kind != "runway_1h" || list[0].Balance != 0.5 || list[0].Spending != 1 || list[0].EndsAt == nil {
		t.Fatalf("told %+v", list)
	}
	one := "/notices/" + list[0].ID + "?team_id="
	w.problem(w.call(stranger.token, "GET", path, ""), 404, "team_not_found")
	w.problem(w.call(stranger.token, "DELETE", one+stranger.team, ""), 404, "notice_not_found")
	w.problem(w.call(admin.token, "DELETE", "/notices/nonsense?team_id="+crew, ""), 404, "notice_not_found")
	w.is(w.call(viewer.token, "DELETE", one+crew, ""), 204)
	w.is(w.call(viewer.token, "DELETE", one+crew, ""), 204)
	w.is(w.call(viewer.token, "GET", path, ""), 200).json(t, &list)
	if len(list) != 0 {
		t.Errorf("still told after it was dismissed: %+v", list)
	}
	w.is(w.call(admin.token, "GET", path, ""), 200).json(t, &list)
	if len(list) != 1 {
		t.Errorf("dismissed for somebody else, too")
	}
}

func TestTheSpendLimitOverHTTP(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	admin, member := w.move(0), w.move(0)
	crew := w.found(admin)
	w.join(member, crew, team.Member)
	path := "/teams/" + crew
	limit := func() float64 {
		var b struct {
			Limit float64 `json:"month_limit"`
		}
		w.is(w.call(admin.token, "GET", "/wallet/balance?include_estimates=true&team_id="+crew, ""), 200).json(t, &b)
		return b.Limit
	}
	if got := limit(); got != 10_000 {
		t.Errorf("the Pro limit is %v", got)
	}
	w.is(w.call(admin.token, "PATCH", path, `{"spend_limit":250.5,"name":"Dockers"}`), 200)
	if got := limit(); got != 250.5 {
		t.Errorf("the limit is %v, want 250.5", got)
	}
	w.problem(w.call(member.token, "PATCH", path, `{"spend_limit":9}`), 403, "role")
	for _, bad := range []string{"0", "-5", "10000.01", "1e9", "0.0000001"} {
		w.problem(w.call(admin.token, "PATCH", path, `{"name":"Lost","spend_limit":`+bad+`}`), 422, "spend_limit_invalid")
	}
	var t1 struct{ Name string }
	w.is(w.call(admin.token, "PATCH", path, `{"spend_limit":10000}`), 200).json(t, &t1)
	if got := limit(); got != 10_000 || t1.Name != "Dockers" {
		t.Errorf("the limit is %v of team %q", got, t1.Name)
	}
	w.problem(w.call(admin.token, "PATCH", path, `{}`), 422, "")
}
