package api_test

import (
	"encoding/csv"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/wallet"
)

// A tenant is a person with a pod at 2 USD and a volume at 0.0002 USD per hour,
// both since the same instant.
type tenant struct {
	person
	pod, volume string
	since       time.Time
}

func (w *town) tenant(amount money.USD) tenant {
	w.t.Helper()
	p := w.move(amount)
	n := tenant{person: p, volume: w.make(p, "/volumes", p.volumeBody()), since: w.clock.Now()}
	n.pod = w.make(p, "/pods", p.podBody(n.volume, w.make(p, "/ssh-keys", p.keyBody())))
	for resource, start := range map[string]wallet.Start{
		n.pod:    {Kind: wallet.PodRuntime, Rate: money.Rate(2 * money.Dollar), Description: "Pod · 1x H100 80GB"},
		n.volume: {Kind: wallet.VolumeStorage, Rate: 200, Description: "Volume data"},
	} {
		start.TeamID, start.ResourceID, start.At = uuid.MustParse(p.team), uuid.MustParse(resource), n.since
		w.must(pg.InTx(w.t.Context(), w.pool, func(tx pgx.Tx) error { return w.wallet.StartTx(w.t.Context(), tx, start) }))
	}
	return n
}

// cost is what a rate costs from one instant to another, by fractions.
func cost(microPerHour int64, from, to time.Time) *big.Rat {
	micro := new(big.Int).Mul(big.NewInt(microPerHour), big.NewInt(to.Sub(from).Microseconds()))
	micro.Div(micro, big.NewInt(time.Hour.Microseconds()))
	return new(big.Rat).SetFrac(micro, big.NewInt(1_000_000))
}

func amount(t *testing.T, text string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("amount %q", text)
	}
	return r
}

// dawn is the first instant of the month after the town's first.
func dawn(w *town) time.Time {
	now := w.clock.Now()
	return time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
}

func TestStatementsOfTwoMonths(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.tenant(5_000 * money.Dollar)
	first, month := dawn(w), w.clock.Now().Format("2006-01")
	w.clock.Advance(first.Sub(w.clock.Now()) + 36*time.Hour)
	_, err := w.wallet.SettleDue(t.Context(), first.Add(-24*time.Hour)) // the rest is not posted yet
	w.must(err)
	in := "?team_id=" + p.team
	var list []struct {
		Month                             string
		Final                             bool
		Credits, Charges, Refunds, Debits json.Number
		Opening                           json.Number `json:"opening_balance"`
		Closing                           json.Number `json:"closing_balance"`
	}
	w.is(w.call(p.token, "GET", "/wallet/statements"+in, ""), 200).json(t, &list)
	if len(list) != 2 || list[0].Final || !list[1].Final || list[1].Month != month || list[0].Month != first.Format("2006-01") {
		t.Fatalf("listed %+v", list)
	}
	charged := new(big.Rat).Add(cost(2_000_000, p.since, first), cost(200, p.since, first))
	if amount(t, string(list[1].Charges)).Cmp(charged) != 0 || list[1].Opening != "0" || list[0].Opening != list[1].Closing {
		t.Errorf("listed %+v, charges are %s", list, charged.FloatString(6))
	}
	a := w.is(w.call(p.token, "GET", "/wallet/statements/"+month+".csv"+in, ""), 200)
	if ct, cd := a.Header().Get("Content-Type"), a.Header().Get("Content-Disposition"); ct != "text/csv; charset=utf-8" || cd != `attachment; filename="homeport-statement-`+month+`.csv"` {
		t.Errorf("a file of type %q, %q", ct, cd)
	}
	rows, err := csv.NewReader(a.Body).ReadAll()
	w.must(err)
	by := map[string]*big.Rat{}
	email := w.people[p.token].Email
	for _, r := range rows[1:] {
		if by[r[0]] == nil {
			by[r[0]] = new(big.Rat)
		}
		by[r[0]].Add(by[r[0]], amount(t, r[7]))
		if (r[0] == "Pods" || r[0] == "Volumes" || r[0] == "Members") && r[5] != email {
			t.Errorf("%v is not of %s", r, email)
		}
	}
	for section, want := range map[string]*big.Rat{
		"Summary": amount(t, string(list[1].Closing)), "Balance": amount(t, string(list[1].Closing)), "Money": big.NewRat(5_000, 1),
		"Pods": new(big.Rat).Neg(cost(2_000_000, p.since, first)), "Volumes": new(big.Rat).Neg(cost(200, p.since, first)),
		"Members": new(big.Rat).Neg(charged),
	} {
		if by[section] == nil || by[section].Cmp(want) != 0 {
			t.Errorf("section %s makes %v, want %s", section, by[section], want.FloatString(6))
		}
	}
	b := w.is(w.call(p.token, "GET", "/wallet/statements/"+month+".pdf"+in, ""), 200)
	if ct := b.Header().Get("Content-Type"); ct != "application/pdf" || !strings.HasPrefix(b.Body.String(), "%PDF-") {
		t.Errorf("a PDF of type %q", ct)
	}
}

// A month that is over stays as it is, whatever is refunded later.
func TestAFinalStatementDoesNotChange(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.tenant(5_000 * money.Dollar)
	first, month := dawn(w), w.clock.Now().Format("2006-01")
	w.clock.Advance(first.Sub(w.clock.Now()) + time.Hour)
	_, err := w.wallet.SettleDue(t.Context(), w.clock.Now())
	w.must(err)
	path := "/wallet/statements/" + month + ".csv?team_id=" + p.team
	before := w.is(w.call(p.token, "GET", path, ""), 200).Body.String()
	w.must(pg.InTx(t.Context(), w.pool, func(tx pgx.Tx) error {
		return w.wallet.StopTx(t.Context(), tx, uuid.MustParse(p.pod), first.Add(-3*time.Hour))
	}))
	if after := w.is(w.call(p.token, "GET", path, ""), 200).Body.String(); after != before {
		t.Errorf("the statement was\n%s\nand is\n%s", before, after)
	}
	next := w.is(w.call(p.token, "GET", "/wallet/statements/"+first.Format("2006-01")+".csv?team_id="+p.team, ""), 200).Body.String()
	if !strings.Contains(next, "Summary,,refunds,,,,,6.00,,") {
		t.Errorf("the next month has no refund of 3 hours:\n%s", next)
	}
}

func TestSpendIsToldByWhatIsAsked(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.tenant(5_000 * money.Dollar)
	w.clock.Advance(50 * time.Hour)
	now := w.clock.Now()
	from := p.since.Format(time.DateOnly)
	pods, storage := cost(2_000_000, p.since, now), cost(200, p.since, now)
	keys := map[string][]string{"pod": {p.pod}, "volume": {p.volume}, "member": {p.token}, "day": nil}
	for day := p.since.Truncate(24 * time.Hour); !day.After(now); day = day.AddDate(0, 0, 1) {
		keys["day"] = append(keys["day"], day.Format(time.DateOnly))
	}
	for by, want := range keys {
		var lines []struct {
			Key, Name            string
			Pods, Storage, Total json.Number
		}
		w.is(w.call(p.token, "GET", "/wallet/spend?team_id="+p.team+"&by="+by+"&from="+from, ""), 200).json(t, &lines)
		var got []string
		sum := map[string]*big.Rat{"pods": new(big.Rat), "storage": new(big.Rat), "total": new(big.Rat)}
		for _, l := range lines {
			got = append(got, l.Key)
			for what, text := range map[string]json.Number{"pods": l.Pods, "storage": l.Storage, "total": l.Total} {
				sum[what].Add(sum[what], amount(t, string(text)))
			}
		}
		wantPods, wantStorage := pods, storage
		switch by {
		case "pod":
			wantStorage = new(big.Rat)
		case "volume":
			wantPods = new(big.Rat)
		}
		if !slices.Equal(got, want) || sum["pods"].Cmp(wantPods) != 0 || sum["storage"].Cmp(wantStorage) != 0 ||
			sum["total"].Cmp(new(big.Rat).Add(wantPods, wantStorage)) != 0 {
			t.Errorf("by %s: %+v, want %v, pods %s, storage %s", by, lines, want, wantPods.FloatString(6), wantStorage.FloatString(6))
		}
	}
}

func TestStatementsAreRefusedInWords(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p, other := w.move(0), w.move(0)
	in := "?team_id=" + p.team
	month := w.clock.Now().Format("2006-01")
	for _, file := range []string{"2001-01.csv", "2999-01.pdf", "2027-13.csv", "x.csv", month + ".xml", month, "..pdf"} {
		w.problem(w.call(p.token, "GET", "/wallet/statements/"+file+in, ""), 404, "statement_not_found")
	}
	for _, q := range []string{"&from=yesterday", "&to=2027-02-30", "&from=2027-03-02&to=2027-03-01", "&from=2020-01-01&to=2027-01-01"} {
		w.problem(w.call(p.token, "GET", "/wallet/spend"+in+q, ""), 422, "spend_range")
	}
	w.problem(w.call(p.token, "GET", "/wallet/spend"+in+"&by=moon", ""), 422, "")
	for _, path := range []string{"/wallet/statements", "/wallet/statements/" + month + ".csv", "/wallet/spend"} {
		w.problem(w.call(other.token, "GET", path+in, ""), 404, "team_not_found")
		w.problem(w.call("", "GET", path+in, ""), 401, "no_session")
	}
	if got := w.is(w.call(p.token, "GET", "/wallet/spend"+in, ""), 200).Body.String(); strings.TrimSpace(got) != "[]" {
		t.Errorf("nothing was spent, told as %s", got)
	}
}
