package offer_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/team"
)

func TestQuotes(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	base := offer.TupleOf(h100())
	with := func(change func(*offer.Tuple)) offer.Tuple { u := base; change(&u); return u }
	m.a.set(nil, h100())
	m.refresh()
	for name, tt := range map[string]struct {
		ask    offer.Ask
		want   error
		rate   money.Rate
		detail string
	}{
		"at the price":            {offer.Ask{Tuple: base, Plan: team.Hobby, Max: 2_600_000}, nil, 2_600_000, ""},
		"for more than the price": {offer.Ask{Tuple: base, Plan: team.Hobby, Max: 9_000_000}, nil, 2_600_000, ""},
		"pro at its price":        {offer.Ask{Tuple: base, Plan: team.Pro, Max: 2_184_000}, nil, 2_184_000, ""},
		"pro at the list price":   {offer.Ask{Tuple: base, Plan: team.Pro, Max: 2_600_000}, nil, 2_184_000, ""},
		"hobby at pro's price":    {offer.Ask{Tuple: base, Plan: team.Hobby, Max: 2_184_000}, offer.ErrPrice, 0, "Price changed from $2.184 to $2.60 per hour."},
		"a micro-dollar less":     {offer.Ask{Tuple: base, Plan: team.Hobby, Max: 2_599_999}, offer.ErrPrice, 0, "Price changed from $2.599999 to $2.60 per hour."},
		"for nothing":             {offer.Ask{Tuple: base, Plan: team.Hobby}, offer.ErrPrice, 0, "Price changed from $0.00 to $2.60 per hour."},
		"in euro":                 {offer.Ask{Tuple: base, Plan: team.Hobby, Max: 2_600_000, Currency: "EUR"}, offer.ErrUnknown, 0, "Please select a valid GPU configuration"},
		"another provider":        {offer.Ask{Tuple: with(func(u *offer.Tuple) { u.Provider = "x" }), Max: 9e6}, offer.ErrUnknown, 0, "Please select a valid GPU configuration"},
		"another cloud id":        {offer.Ask{Tuple: with(func(u *offer.Tuple) { u.CloudID = "x" }), Max: 9e6}, offer.ErrUnknown, 0, ""},
		"another type":            {offer.Ask{Tuple: with(func(u *offer.Tuple) { u.GPUType = "x" }), Max: 9e6}, offer.ErrUnknown, 0, ""},
		"another count":           {offer.Ask{Tuple: with(func(u *offer.Tuple) { u.GPUCount = 8 }), Max: 9e6}, offer.ErrUnknown, 0, ""},
		"another socket":          {offer.Ask{Tuple: with(func(u *offer.Tuple) { u.Socket = "PCIe" }), Max: 9e6}, offer.ErrUnknown, 0, ""},
		"another country":         {offer.Ask{Tuple: with(func(u *offer.Tuple) { u.Country = "DE" }), Max: 9e6}, offer.ErrUnknown, 0, ""},
		"another data centre":     {offer.Ask{Tuple: with(func(u *offer.Tuple) { u.DataCenterID = "" }), Max: 9e6}, offer.ErrUnknown, 0, ""},
		"spot":                    {offer.Ask{Tuple: with(func(u *offer.Tuple) { u.IsSpot = true }), Max: 9e6}, offer.ErrUnknown, 0, ""},
		"another security":        {offer.Ask{Tuple: with(func(u *offer.Tuple) { u.Security = "x" }), Max: 9e6}, offer.ErrUnknown, 0, ""},
		"a volume that fits":      {offer.Ask{Tuple: base, Max: 9e6, SizeBytes: 466_664_999_999}, nil, 2_600_000, ""},
		"a volume too large":      {offer.Ask{Tuple: base, Max: 9e6, SizeBytes: 466_680_000_000}, offer.ErrDisk, 0, "This configuration has too little disk for the volume (501 GB needed)."},
		"too large and too dear":  {offer.Ask{Tuple: base, Max: 1, SizeBytes: 466_680_000_000}, offer.ErrDisk, 0, ""},
	} {
		q, err := m.quote(tt.ask)
		if !errors.Is(err, tt.want) || q.Rate != tt.rate {
			t.Errorf("%s: %+v, %v; want %d, %v", name, q, err, tt.rate, tt.want)
			continue
		}
		if err == nil && (q.Adapter != "a" || q.ListRate != 2_600_000 || q.Offer != h100()) {
			t.Errorf("%s: %+v", name, q)
		}
		if tt.detail != "" && fault.Of(err).Detail != tt.detail {
			t.Errorf("%s: %q, want %q", name, fault.Of(err).Detail, tt.detail)
		}
	}
}

func TestGoneOfferIsReplacedByAnEqualOne(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	tuple := offer.TupleOf(h100())
	other := func(id string, change func(*provider.Offer)) provider.Offer {
		return h100(named(id), priced(2_100_000), change)
	}
	m.a.set(nil, h100())
	m.refresh()
	m.clock.Advance(offer.VisibleFor)
	m.a.set(nil)
	less := []provider.Offer{
		other("memory", func(o *provider.Offer) { o.MemoryGB-- }),
		other("vcpu", func(o *provider.Offer) { o.VCPU-- }),
		other("disk", func(o *provider.Offer) { o.DiskGB-- }),
		other("socket", func(o *provider.Offer) { o.Socket = "PCIe" }),
		other("country", func(o *provider.Offer) { o.Country = "CA" }),
		other("security", func(o *provider.Offer) { o.Security = "community_cloud" }),
		other("spot", func(o *provider.Offer) { o.IsSpot = true }),
		other("count", func(o *provider.Offer) { o.GPUCount = 2 }),
		other("dear", priced(3_000_000)),
	}
	m.b.set(nil, less...)
	m.refresh()
	ask := offer.Ask{Tuple: tuple, Plan: team.Hobby, Max: 3_000_000}
	_, err := m.quote(ask)
	if !errors.Is(err, offer.ErrGone) {
		t.Fatalf("nothing equal is left, but: %v", err)
	}
	if d := fault.Of(err).Detail; !strings.HasPrefix(d, "This configuration is sold out. Available now: 1x H100_80GB at aurora in CA for $2.73 per hour; ") {
		t.Errorf("the refusal says %q", d)
	}
	m.b.set(nil, append(less, other("equal", func(o *provider.Offer) { o.MemoryGB++ }), h100(named("dearer"), priced(2_200_000)))...)
	m.refresh()
	q, err := m.quote(ask)
	if err != nil || q.Offer.CloudID != "equal" || q.Rate != 2_730_000 || q.Adapter != "b" {
		t.Errorf("quote %+v, %v", q, err)
	}
	ask.Max = 2_729_999
	if _, err := m.quote(ask); !errors.Is(err, offer.ErrGone) {
		t.Errorf("an equal offer above the maximum: %v", err)
	}
	if err := pg.InTx(t.Context(), m.Pool, func(tx pgx.Tx) error {
		quotes, err := m.EqualTx(t.Context(), tx, h100(), team.Pro, 3_000_000, []offer.Tuple{offer.TupleOf(q.Offer)})
		if len(quotes) != 1 || quotes[0].Offer.CloudID != "dearer" {
			t.Errorf("equals %+v", quotes)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	m.clock.Advance(offer.KnownFor)
	if _, err := m.quote(ask); !errors.Is(err, offer.ErrUnknown) {
		t.Errorf("after a day: %v", err)
	}
}

func TestSoldOutAndSuspendedOffersAreOffSale(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil, h100())
	m.b.set(nil, h100(named("b1"), func(o *provider.Offer) { o.Country = "CA" }))
	m.refresh()
	ask := offer.Ask{Tuple: offer.TupleOf(h100()), Max: 9e6}
	if err := m.MarkSoldOut(t.Context(), ask.Tuple, m.clock.Wall()); err != nil {
		t.Fatal(err)
	}
	if got := m.visible(); len(got) != 1 || got["b1"] == 0 {
		t.Errorf("sold out: %v", got)
	}
	if _, err := m.quote(ask); !errors.Is(err, offer.ErrGone) {
		t.Errorf("sold out: %v", err)
	}
	m.refresh() // still listed: that is no proof
	if _, err := m.quote(ask); !errors.Is(err, offer.ErrGone) {
		t.Errorf("sold out and listed again: %v", err)
	}
	m.clock.Advance(2 * time.Minute)
	if got := m.visible(); len(got) != 2 {
		t.Errorf("two minutes later: %v", got)
	}
	if err := m.NoteCall(t.Context(), "b", offer.CallLaunch, provider.ErrFunds); err != nil {
		t.Fatal(err)
	}
	if got := m.visible(); len(got) != 1 || got["b1"] != 0 {
		t.Errorf("suspended: %v", got)
	}
	m.clock.Advance(10 * time.Minute)
	m.refresh()
	if got := m.visible(); len(got) != 2 {
		t.Errorf("suspension over: %v", got)
	}
}

// Two adapters that sell one tuple show it once, at the lower price.
func TestTupleOfTwoAdaptersIsOneOffer(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil, h100())
	m.b.set(nil, h100(priced(1_000_000)))
	m.refresh()
	if diff := cmp.Diff(map[string]money.Rate{"h100-1": 1_300_000}, m.visible()); diff != "" {
		t.Error(diff)
	}
	q, err := m.quote(offer.Ask{Tuple: offer.TupleOf(h100()), Max: 9e6})
	if err != nil || q.Adapter != "b" || q.Rate != 1_300_000 {
		t.Errorf("%+v, %v", q, err)
	}
	all, _, err := m.Resources(t.Context(), team.Hobby)
	if err != nil || len(all["H100_80GB"]) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}
