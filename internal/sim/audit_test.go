package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const centMicro = 10_000

// A movement is money that the card network moved, in micro-dollars.
type movement struct {
	amount int64
	// A dispute that was won may never have been heard of as long as it was open.
	optional bool
}

// moved is what the card network took from and gave back to cards, by payment
// or case.
func (n *network) moved() (in, out map[string]movement) {
	n.mu.Lock()
	defer n.mu.Unlock()
	in, out = map[string]movement{}, map[string]movement{}
	for _, c := range n.charges {
		in[c.id] = movement{amount: c.cents * centMicro}
	}
	for _, c := range n.cases {
		out[c.id] = movement{c.cents * centMicro, !c.taken()}
		if !c.taken() {
			in[c.id] = out[c.id] // it came back
		}
	}
	return in, out
}

// checkCards compares the ledger with the card network, payment by payment.
func (s *world) checkCards() error {
	in, out := s.cards.moved()
	credits, err := s.compare("credit", in)
	if err != nil {
		return err
	}
	debits, err := s.compare("debit", out)
	if err != nil {
		return err
	}
	for id, m := range out {
		if m.optional && credits[id] != debits[id] {
			return fmt.Errorf("dispute %s was won: debited %v, returned %v", id, debits[id], credits[id])
		}
	}
	return nil
}

// compare wants what the network moved to be posted once, and nothing else. It
// returns what is.
func (s *world) compare(code string, want map[string]movement) (map[string]bool, error) {
	rows, err := s.pool.Query(context.Background(), `select coalesce(reference_id, ''), count(*), sum(amount_usd_micro)::bigint
		from transfer where code = $1 and key not like 'grant:%' group by 1`, code)
	if err != nil {
		return nil, err
	}
	posted := map[string]bool{}
	var reference string
	var count, amount int64
	_, err = pgx.ForEachRow(rows, []any{&reference, &count, &amount}, func() error {
		posted[reference] = true
		if count != 1 || want[reference].amount != amount {
			return fmt.Errorf("%s of %s: posted %d times, %d in all, the network knows %d", code, reference, count, amount, want[reference].amount)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for id, m := range want {
		if !m.optional && !posted[id] {
			return nil, fmt.Errorf("%s of %s over %d is not posted", code, id, m.amount)
		}
	}
	return posted, nil
}

// audit compares the books with what the world outside knows, and then has the
// operator's command look at them.
func (s *world) audit() {
	s.t.Helper()
	if err := s.checkCards(); err != nil {
		s.t.Error(err)
	}
	segments := s.segments()
	s.checkResources(segments)
	s.checkWallets(s.checkCharges(segments))
	text, err := s.app.command("ledger", "verify", "--json")
	var r report
	if err2 := json.Unmarshal(text, &r); err != nil || err2 != nil || !r.OK || len(r.Problems) > 0 {
		s.t.Errorf("ledger verify: %v, %v: %s", err, err2, text)
	}
	s.cards.mu.Lock()
	defer s.cards.mu.Unlock()
	s.t.Logf("%d transfers of %d wallets, %d segments; %d charges, %d refunds and disputes, %d deliveries, %d events lost",
		r.Transfers, r.Wallets, len(segments), len(s.cards.charges), len(s.cards.cases), s.cards.sent, s.cards.lost)
}

// A segment is a row of the books with what was posted for it.
type segment struct {
	ID       uuid.UUID
	Team     uuid.UUID
	Resource uuid.UUID
	Rate     int64
	From, To int64 // To is the watermark while it goes on
	Open     bool
	Posted   int64
}

func (s *world) segments() []segment {
	s.t.Helper()
	rows, err := s.pool.Query(s.t.Context(), `
		with posted as (
		  select coalesce(segment_id, reference_id::uuid) as segment_id, -- a remainder is the house's and names it by reference
		    sum(case code when 'refund' then -amount_usd_micro else amount_usd_micro end)::bigint as amount
		  from transfer where code in ('charge', 'refund', 'writeoff') group by 1
		)
		select s.id, s.team_id, s.resource_id, s.rate_usd_micro_per_hour, s.started_us,
		  greatest(s.started_us, least(coalesce(s.stopped_us, w.settled_us), w.settled_us)), s.stopped_us is null, coalesce(p.amount, 0)
		from segment s join wallet w on w.team_id = s.team_id left join posted p on p.segment_id = s.id
		order by s.resource_id, s.started_us, s.stopped_us`)
	if err != nil {
		s.t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[segment])
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// checkResources wants each resource to be metered when its owner says it ran:
// from its start, once at a time, and not beyond its stop.
func (s *world) checkResources(segments []segment) {
	s.t.Helper()
	of := map[uuid.UUID][]segment{}
	for _, g := range segments {
		of[g.Resource] = append(of[g.Resource], g)
	}
	known := append([]*resource{}, s.fleet...)
	for _, mine := range s.meters {
		known = append(known, mine...)
	}
	for _, r := range known {
		got := of[r.id]
		delete(of, r.id)
		if len(got) == 0 || len(got) > 1+r.rerates || got[0].From < r.from || got[0].From > r.to || got[0].Team != r.team {
			s.t.Errorf("resource %s, started between %d and %d and changed %d times, has %v", r.id, r.from, r.to, r.rerates, got)
			continue
		}
		for i, g := range got {
			switch {
			case i > 0 && g.From != got[i-1].To:
				s.t.Errorf("resource %s is metered from %d after it was until %d", r.id, g.From, got[i-1].To)
			case i < len(got)-1 && g.Open, r.stopped > 0 && (g.Open || g.To > r.stopped):
				s.t.Errorf("resource %s, stopped by %d, goes on: %v", r.id, r.stopped, g)
			}
		}
	}
	for resource := range of {
		s.t.Errorf("nobody started resource %s", resource)
	}
}

// checkCharges wants each segment to have cost its exact integral up to the
// watermark, and returns what each team used.
func (s *world) checkCharges(segments []segment) map[uuid.UUID]*big.Int {
	s.t.Helper()
	used := map[uuid.UUID]*big.Int{}
	hour := big.NewInt(3_600_000_000)
	for _, g := range segments {
		cost := new(big.Int).Mul(big.NewInt(g.Rate), big.NewInt(g.To-g.From))
		cost.Div(cost, hour)
		if cost.Cmp(big.NewInt(g.Posted)) != 0 {
			s.t.Errorf("segment %s cost %s, %d was posted", g.ID, cost, g.Posted)
		}
		if used[g.Team] == nil {
			used[g.Team] = new(big.Int)
		}
		used[g.Team].Add(used[g.Team], cost)
	}
	return used
}

// checkWallets wants each wallet to hold what came in less what went out and
// was used; flooring at the end of the money leaves less than a micro-dollar a
// segment, which the house bears.
func (s *world) checkWallets(used map[uuid.UUID]*big.Int) {
	s.t.Helper()
	want := map[uuid.UUID]*big.Int{}
	add := func(teamID uuid.UUID, amount int64) {
		if want[teamID] == nil {
			want[teamID] = new(big.Int)
		}
		want[teamID].Add(want[teamID], big.NewInt(amount))
	}
	for teamID, amount := range s.granted {
		add(teamID, amount)
	}
	for _, c := range s.cards.charges {
		add(uuid.MustParse(c.team), c.cents*centMicro)
	}
	for _, c := range s.cards.cases {
		if c.taken() {
			add(uuid.MustParse(c.team), -c.cents*centMicro)
		}
	}
	for teamID, amount := range used {
		add(teamID, 0)
		want[teamID].Sub(want[teamID], amount)
	}
	rows, err := s.pool.Query(s.t.Context(), `
		select w.team_id, w.balance_usd_micro - w.receivable_usd_micro, coalesce(o.amount, 0)::bigint
		from wallet w left join (
		  select team_id, sum(amount_usd_micro) as amount from transfer where code = 'writeoff' group by 1
		) o on o.team_id = w.team_id`)
	if err != nil {
		s.t.Fatal(err)
	}
	var teamID uuid.UUID
	var shown, borne int64
	_, err = pgx.ForEachRow(rows, []any{&teamID, &shown, &borne}, func() error {
		add(teamID, borne)
		if want[teamID].Cmp(big.NewInt(shown)) != 0 || borne > 1000 {
			s.t.Errorf("the wallet of team %s shows %d, the world knows %s (%d written off)", teamID, shown, want[teamID], borne)
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}
