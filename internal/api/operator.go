package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/operator"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/team"
)

func (s *server) registerOperator() {
	operators(s, huma.Operation{
		OperationID: "get-operator-overview", Method: http.MethodGet, Path: "/operator/overview",
		Summary:     "How this Homeport does",
		Description: "For operators (HOMEPORT_OPERATORS); for everybody else there is no such call.",
	}, s.operatorOverview)
	operators(s, huma.Operation{
		OperationID: "get-operator-margins", Method: http.MethodGet, Path: "/operator/margins",
		Summary:     "What users paid against what clouds charged",
		Description: "For operators (HOMEPORT_OPERATORS); for everybody else there is no such call. It may be a minute old.",
	}, s.operatorMargins)
}

// operators registers a call that is not there for anybody else. Nothing of the
// request but its token is read before that is known.
func operators[I, O any](s *server, op huma.Operation, fn func(context.Context, team.Person, I) (*O, error)) {
	op.Middlewares = append(op.Middlewares, s.signedIn, func(ctx huma.Context, next func(huma.Context)) {
		if p, ok := ctx.Context().Value(personKey{}).(team.Person); !ok || !s.Operator.Is(p) {
			refuse(ctx, problemOf(ErrNoPath))
			return
		}
		next(ctx)
	})
	proven(s, op, fn)
}

func (s *server) operatorOverview(ctx context.Context, _ team.Person, _ Bearer) (*body[apitype.OperatorOverview], error) {
	o, err := s.Operator.Overview(ctx)
	if err != nil {
		return nil, err
	}
	out := apitype.OperatorOverview{
		AsOf: o.AsOf, Providers: listOf(o.Providers, operatorProvider).Body, Instances: operatorInstances(o),
		Jobs: apitype.OperatorJobs{
			Retrying: o.Jobs.Retrying, GivenUp: o.Jobs.GivenUp, GivenUpDay: o.Jobs.GivenUpDay,
			Kinds: listOf(o.Jobs.Kinds, operatorJob).Body, KindsLeftOut: o.Jobs.LeftOut,
		},
		Clearing: apitype.OperatorClearing{
			Problems: o.ClearingProblems, Acknowledged: o.ClearingKnown, Difference: apitype.Decimal(o.ClearingDifference.Decimal()),
		},
		Volumes: apitype.OperatorVolumes{DamagedObjects: o.Damaged, GarbageBytes: o.Garbage},
	}
	if c := o.Check; c != nil {
		out.Ledger = &apitype.OperatorLedger{
			CheckedAt: c.At, Wallets: c.Wallets, Segments: c.Segments, Transfers: c.Transfers, Problems: c.Problems,
			Imbalance: apitype.Decimal(c.Imbalance.Decimal()), OK: o.CheckOK, Late: o.CheckLate,
		}
	}
	return &body[apitype.OperatorOverview]{Body: out}, nil
}

func operatorProvider(p operator.Provider) apitype.OperatorProvider {
	out := apitype.OperatorProvider{
		Provider: p.Name, Sells: p.Sells, Health: string(p.Health), Trouble: p.Seen.Trouble, ListedAt: p.Seen.ListedAt, Offers: p.Seen.Offers,
		Breaker: apitype.OperatorBreaker{State: p.Seen.State, Reason: p.Seen.Reason, OpenedAt: p.Seen.OpenedAt, ProbeAt: p.Seen.ProbeAt},
		Score:   p.Score.Points(),
		Machines: apitype.OperatorOutcomes{
			Ready: p.Score.Ready, Slow: p.Score.Slow, Failed: p.Score.Failed, BadHost: p.Score.BadHosts, Lost: p.Score.Lost,
		},
		Instances: operatorStates(p.Fleet), Orphans: p.Fleet.Orphans, BurnPerHour: apitype.Decimal(p.Fleet.Burn.Decimal()), BalanceByAPI: p.Tells,
	}
	if p.Asked {
		out.AskedAt = &p.Seen.AskedAt
	}
	if b := p.Balance; b != nil {
		out.Balance = &apitype.OperatorBalance{ReadAt: b.ReadAt, HoursLeft: p.Hours, Low: p.Low, Trouble: b.Trouble}
		if b.Amount != nil {
			out.Balance.Amount = apitype.Decimal(b.Amount.Decimal())
		}
	}
	return out
}

func operatorStates(f pod.Fleet) apitype.OperatorStates {
	return apitype.OperatorStates{Intent: f.Intent, Ambiguous: f.Ambiguous, Running: f.Running, Terminating: f.Terminating}
}

func operatorInstances(o *operator.Overview) apitype.OperatorInstances {
	return apitype.OperatorInstances{
		Pods: o.Pods, Open: operatorStates(o.Fleet), TerminatingLong: o.Fleet.TerminatingLong, AmbiguousLong: o.Fleet.AmbiguousLong,
		LastSyncLong: o.Fleet.LastSyncLong,
		WithoutPod:   o.Fleet.WithoutPod, Orphans: o.Fleet.Orphans,
		Troubled: listOf(o.Troubled, func(t pod.Troubled) apitype.OperatorTroubled {
			return apitype.OperatorTroubled{
				Name: t.Name, Provider: t.Provider, Cloud: t.Cloud, GPUType: t.GPUType, GPUCount: t.GPUCount, State: string(t.State),
				Since: t.SinceWallAt, Tries: t.Tries, Reason: t.Reason, NextAt: t.NextWallAt, PodID: t.PodID.String(),
				PodStatus: string(t.PodStatus), BurnPerHour: apitype.Decimal(t.Burn.Decimal()),
			}
		}).Body,
		TroubledLeftOut: max(0, o.Fleet.Ambiguous+o.Fleet.TerminatingLong+o.Fleet.LastSyncLong-len(o.Troubled)),
		OrphanList: listOf(o.Orphans, func(m pod.Orphan) apitype.OperatorOrphan {
			return apitype.OperatorOrphan{Provider: m.Provider, Ref: m.Ref, Name: m.Name, FirstSeenAt: m.FirstSeenWallAt}
		}).Body,
		OrphansLeftOut: max(0, o.Fleet.Orphans-len(o.Orphans)),
		Reaper:         apitype.OperatorReaper{Armed: o.Restored == nil, RestoredAt: o.Restored},
	}
}

func operatorJob(j operator.FailingJob) apitype.OperatorJob {
	return apitype.OperatorJob{
		Kind: j.Kind, Retrying: j.Retrying, GivenUp: j.GivenUp, GivenUpDay: j.GivenUpDay, LastError: j.LastError, LastAt: j.LastAt, NextAt: j.NextAt,
	}
}

type marginsIn struct {
	Bearer
	Days int `query:"days" minimum:"1" maximum:"90" default:"30" doc:"How many UTC days, today among them."`
}

func (s *server) operatorMargins(ctx context.Context, _ team.Person, in marginsIn) (*body[apitype.OperatorMargins], error) {
	m, err := s.Operator.Margins(ctx, in.Days)
	if err != nil {
		return nil, err
	}
	out := apitype.OperatorMargins{
		AsOf: m.AsOf, From: m.From.Format(time.DateOnly), To: m.To.Format(time.DateOnly), Days: in.Days, Total: marginOf(m.Total),
		PerDay: listOf(m.Days, func(d operator.OfDay) apitype.OperatorDayMargin {
			return apitype.OperatorDayMargin{Day: d.Day.Format(time.DateOnly), OperatorMargin: marginOf(d.Margin)}
		}).Body,
		PerProvider: listOf(m.Providers, func(p operator.OfProvider) apitype.OperatorProviderMargin {
			return apitype.OperatorProviderMargin{Provider: p.Provider, OperatorMargin: marginOf(p.Margin)}
		}).Body,
		PerProviderDay: listOf(m.ProviderDays, func(p operator.OfProviderDay) apitype.OperatorProviderDayMargin {
			return apitype.OperatorProviderDayMargin{Day: p.Day.Format(time.DateOnly), Provider: p.Provider, OperatorMargin: marginOf(p.Margin)}
		}).Body,
		PerOffer: listOf(m.Offers, func(o operator.OfOffer) apitype.OperatorOfferMargin {
			return apitype.OperatorOfferMargin{
				Provider: o.Adapter, Cloud: o.Cloud, GPUType: o.GPUType, GPUCount: o.GPUCount, OperatorMargin: marginOf(o.Margin),
			}
		}).Body,
		OffersLeftOut: m.OffersLeftOut,
	}
	return &body[apitype.OperatorMargins]{Body: out}, nil
}

func marginOf(m pod.Margin) apitype.OperatorMargin {
	return apitype.OperatorMargin{
		Paid: apitype.Decimal(m.Paid.Decimal()), Upstream: apitype.Decimal(m.Upstream.Decimal()), Margin: apitype.Decimal(m.Left().Decimal()),
		Negative: m.Left() < 0, PaidSeconds: m.PaidMicros / 1e6, MachineSeconds: m.MachineMicros / 1e6,
	}
}
