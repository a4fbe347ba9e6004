package offer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/team"
)

// maxAlternatives is how many other configurations a refusal names.
const maxAlternatives = 3

// QuoteTx turns an ask into a binding quote. A configuration that was listed
// but is sold out is replaced by an equal one at no more than the maximum. The
// faults are ErrUnknown, ErrDisk, ErrGone and ErrPrice, found in this order.
func (s *Service) QuoteTx(ctx context.Context, tx pgx.Tx, ask Ask) (Quote, error) {
	wall := s.Clock.Wall()
	if ask.Currency != Currency {
		return Quote{}, ErrUnknown
	}
	rows, err := s.findTuple(ctx, tx, ask.Tuple, wall.Add(-KnownFor))
	if err != nil {
		return Quote{}, err
	}
	if len(rows) == 0 {
		return Quote{}, ErrUnknown
	}
	asked, live := s.choose(rows, wall)
	if need := diskNeeded(ask.SizeBytes); asked.DiskGB < need {
		return Quote{}, ErrDisk.With("This configuration has too little disk for the volume (%d GB needed).", need)
	}
	if live {
		return s.quoteLive(asked, ask)
	}
	equals, err := s.EqualTx(ctx, tx, asked.Offer, ask.Plan, ask.Max, []Tuple{ask.Tuple})
	if err != nil {
		return Quote{}, err
	}
	if len(equals) > 0 {
		return equals[0], nil
	}
	others, err := s.AlternativesTx(ctx, tx, ask.Tuple, ask.Plan)
	if err != nil {
		return Quote{}, err
	}
	return Quote{}, ErrGone.With("This configuration is sold out. %s", others)
}

func (s *Service) quoteLive(o Offer, ask Ask) (Quote, error) {
	q := quoteOf(o, ask.Plan)
	if q.Rate > ask.Max {
		return Quote{}, ErrPrice.With("Price changed from %s to %s per hour.", dollars(ask.Max), dollars(q.Rate))
	}
	return q, nil
}

func quoteOf(o Offer, plan team.Plan) Quote {
	return Quote{Adapter: o.Adapter, Offer: o.Offer, ListRate: o.ListPrice, Rate: PlanPrice(o.ListPrice, plan)}
}

// choose picks the cheapest of the live rows of one tuple, or the one that was
// seen last when none is live.
func (s *Service) choose(rows []row, wall time.Time) (best Offer, live bool) {
	for i, r := range rows {
		o := s.priced(r)
		switch isLive := r.live(wall); {
		case i == 0, isLive && !live:
			best, live = o, isLive
		case isLive && cheaper(o, best), !isLive && !live && o.SeenAt.After(best.SeenAt):
			best = o
		}
	}
	return best, live
}

// diskNeeded is the disk in GB on which a volume of that size fits: 1.05 x
// size_gb + 10, rounded up.
func diskNeeded(sizeBytes int64) int {
	hundredths := (sizeBytes + 5_000_000) / 10_000_000
	return int((105*hundredths + 10*10_000 + 9_999) / 10_000)
}

// Holds reports whether an offer's disk is large enough for a volume of that size.
func Holds(o provider.Offer, sizeBytes int64) bool { return o.DiskGB >= diskNeeded(sizeBytes) }

// EqualTx lists the offers that may stand in for another one without asking:
// same GPUs, socket, country, security and spot, no less memory, vCPU and disk,
// at a plan price of at most max; the cheapest first, without those of exclude.
func (s *Service) EqualTx(ctx context.Context, tx pgx.Tx, orig provider.Offer, plan team.Plan, max money.Rate, exclude []Tuple) ([]Quote, error) {
	offers, err := s.liveOfType(ctx, tx, orig.GPUType)
	if err != nil {
		return nil, err
	}
	var quotes []Quote
	for _, o := range offers {
		q := quoteOf(o, plan)
		if q.Rate <= max && equal(orig, o.Offer) && !slices.Contains(exclude, TupleOf(o.Offer)) {
			quotes = append(quotes, q)
		}
	}
	slices.SortFunc(quotes, func(a, b Quote) int {
		return cmp.Or(cmp.Compare(a.Rate, b.Rate), cmp.Compare(a.Offer.UpstreamPrice, b.Offer.UpstreamPrice),
			compareTuples(TupleOf(a.Offer), TupleOf(b.Offer)))
	})
	return quotes, nil
}

func equal(orig, o provider.Offer) bool {
	return o.GPUType == orig.GPUType && o.GPUCount == orig.GPUCount && o.Socket == orig.Socket &&
		o.Country == orig.Country && o.Security == orig.Security && o.IsSpot == orig.IsSpot &&
		o.MemoryGB >= orig.MemoryGB && o.VCPU >= orig.VCPU && o.DiskGB >= orig.DiskGB
}

// liveOfType lists the live offers of a GPU type, one per tuple.
func (s *Service) liveOfType(ctx context.Context, tx pgx.Tx, gpuType string) ([]Offer, error) {
	wall := s.Clock.Wall()
	rows, err := s.query(ctx, tx, sqlListOfType, pgx.NamedArgs{"since": wall.Add(-VisibleFor), "gpu_type": gpuType})
	if err != nil {
		return nil, err
	}
	best := map[Tuple]Offer{}
	for _, r := range rows {
		if !r.live(wall) {
			continue
		}
		o := s.priced(r)
		if have, ok := best[TupleOf(o.Offer)]; !ok || cheaper(o, have) {
			best[TupleOf(o.Offer)] = o
		}
	}
	out := make([]Offer, 0, len(best))
	for _, o := range best {
		out = append(out, o)
	}
	return out, nil
}

// AlternativesTx says in one sentence what could be rented instead of a tuple:
// the same GPU type, nearest in count and then cheapest.
func (s *Service) AlternativesTx(ctx context.Context, tx pgx.Tx, t Tuple, plan team.Plan) (string, error) {
	offers, err := s.liveOfType(ctx, tx, t.GPUType)
	if err != nil {
		return "", err
	}
	offers = slices.DeleteFunc(offers, func(o Offer) bool { return TupleOf(o.Offer) == t })
	if len(offers) == 0 {
		return fmt.Sprintf("No other %s configuration is available at the moment.", t.GPUType), nil
	}
	distance := func(o Offer) int { return max(o.GPUCount-t.GPUCount, t.GPUCount-o.GPUCount) }
	slices.SortFunc(offers, func(a, b Offer) int {
		return cmp.Or(cmp.Compare(distance(a), distance(b)), cmp.Compare(a.ListPrice, b.ListPrice),
			compareTuples(TupleOf(a.Offer), TupleOf(b.Offer)))
	})
	var names []string
	for _, o := range offers[:min(len(offers), maxAlternatives)] {
		names = append(names, fmt.Sprintf("%dx %s at %s in %s for %s per hour",
			o.GPUCount, o.GPUType, o.Provider, o.Country, dollars(PlanPrice(o.ListPrice, plan))))
	}
	return "Available now: " + strings.Join(names, "; ") + ".", nil
}
