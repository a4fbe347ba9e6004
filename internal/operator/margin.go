package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"homeport.dev/homeport/internal/pod"
)

// The days of which margins are told, how long they are kept, and how many
// offers are named.
const (
	MaxDays   = 90
	keptFor   = time.Minute
	maxOffers = 200
)

const day = 24 * time.Hour

// Margins are what users paid for pods against what their machines cost, for
// some UTC days of business time, the last of which is today so far.
type Margins struct {
	AsOf          time.Time
	From, To      time.Time // midnights of the first and the last day
	Total         pod.Margin
	Days          []OfDay         // each, the oldest first
	Providers     []OfProvider    // what left us least first
	ProviderDays  []OfProviderDay // of which there is something to tell, by day and provider
	Offers        []OfOffer       // what left us least first, 200 at most
	OffersLeftOut int
	Losing        map[string]int // by provider: offers that we paid for, left out or not
	madeAt        time.Time      // wall time
}

// An OfDay is the margin of one day.
type OfDay struct {
	Day time.Time
	pod.Margin
}

// An OfProvider is the margin of one cloud.
type OfProvider struct {
	Provider string
	pod.Margin
}

// An OfProviderDay is the margin of one cloud on one day.
type OfProviderDay struct {
	Day      time.Time
	Provider string
	pod.Margin
}

// An OfOffer is the margin of one thing that is sold.
type OfOffer struct {
	pod.Sold
	pod.Margin
}

// Margins tells those of the last days, today among them. What it tells may be a
// minute old.
func (s *Service) Margins(ctx context.Context, days int) (*Margins, error) {
	if days < 1 || days > MaxDays {
		return nil, fmt.Errorf("margins of %d days", days)
	}
	select {
	case s.making <- struct{}{}: // of many who ask, one reads
		defer func() { <-s.making }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	wall, now := s.Clock.Wall(), s.Clock.Now()
	to := now.Truncate(day)
	if m := s.made[days]; m != nil && wall.Sub(m.madeAt) < keptFor && m.To.Equal(to) {
		return m, nil
	}
	from := to.Add(-time.Duration(days-1) * day)
	rows, err := s.Pods.Margins(ctx, from, now)
	if err != nil {
		return nil, err
	}
	m := sumUp(rows, from, to)
	m.AsOf, m.madeAt = now, wall
	s.made[days] = m
	return m, nil
}

// sumUp adds up the margins of days that it is told in any order.
func sumUp(rows []pod.DayMargin, from, to time.Time) *Margins {
	m := &Margins{From: from, To: to, Losing: map[string]int{}}
	days, providers := map[time.Time]pod.Margin{}, map[string]pod.Margin{}
	type providerDay struct {
		day      time.Time
		provider string
	}
	both, offers := map[providerDay]pod.Margin{}, map[pod.Sold]pod.Margin{}
	for _, r := range rows {
		m.Total = m.Total.Plus(r.Margin)
		days[r.Day] = days[r.Day].Plus(r.Margin)
		providers[r.Adapter] = providers[r.Adapter].Plus(r.Margin)
		key := providerDay{r.Day, r.Adapter}
		both[key] = both[key].Plus(r.Margin)
		offers[r.Sold] = offers[r.Sold].Plus(r.Margin)
	}
	for d := from; !d.After(to); d = d.Add(day) {
		m.Days = append(m.Days, OfDay{d, days[d]})
	}
	for name, sum := range providers {
		m.Providers = append(m.Providers, OfProvider{name, sum})
	}
	slices.SortFunc(m.Providers, func(a, b OfProvider) int {
		return cmp.Or(cmp.Compare(a.Left(), b.Left()), cmp.Compare(a.Provider, b.Provider))
	})
	for key, sum := range both {
		m.ProviderDays = append(m.ProviderDays, OfProviderDay{key.day, key.provider, sum})
	}
	slices.SortFunc(m.ProviderDays, func(a, b OfProviderDay) int {
		return cmp.Or(a.Day.Compare(b.Day), cmp.Compare(a.Provider, b.Provider))
	})
	for sold, sum := range offers {
		m.Offers = append(m.Offers, OfOffer{sold, sum})
		if sum.Left() < 0 {
			m.Losing[sold.Adapter]++
		}
	}
	slices.SortFunc(m.Offers, func(a, b OfOffer) int {
		return cmp.Or(cmp.Compare(a.Left(), b.Left()), strings.Compare(a.Adapter, b.Adapter), strings.Compare(a.Cloud, b.Cloud),
			strings.Compare(a.GPUType, b.GPUType), cmp.Compare(a.GPUCount, b.GPUCount))
	})
	m.OffersLeftOut = max(0, len(m.Offers)-maxOffers)
	m.Offers = m.Offers[:min(len(m.Offers), maxOffers)]
	return m
}
