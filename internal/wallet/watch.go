package wallet

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
)

// What a wallet may wait for.
const (
	WarnDue    = "warn"    // a runway is to be told: WarnTx
	ExhaustDue = "exhaust" // its pods are to be ended: ExhaustTx
	SpendDue   = "spend"   // its month's spend is to be looked at: SpendTx
	ArrearsDue = "arrears" // a step of unpaid storage: ArrearsTx
	LowDue     = "low"     // the balance fell below what is watched: LowTx
)

// A Due is what a wallet waits for next.
type Due struct {
	What string
	At   time.Time
}

const sqlListDue = `select team_id from wallet where next_us <= $1 order by next_us, team_id limit $2`

// ListDue lists the teams whose wallets wait for something by now, in the order
// in which it came due. It locks nothing.
func (s *Service) ListDue(ctx context.Context, now time.Time, limit int) ([]uuid.UUID, error) {
	rows, err := s.Pool.Query(ctx, sqlListDue, now.UnixMicro(), limit)
	if err != nil {
		return nil, fmt.Errorf("list wallets that wait: %w", err)
	}
	teams, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("list wallets that wait: %w", err)
	}
	return teams, nil
}

// NextDue is what a team's wallet waits for first, if that is due by now. It
// locks nothing: whoever does it reads again under the locks.
func (s *Service) NextDue(ctx context.Context, teamID uuid.UUID, now time.Time) (Due, bool, error) {
	b, err := readBook(ctx, s.Pool, teamID)
	if err != nil {
		return Due{}, false, err
	}
	what, at := b.wallet.next()
	if at == nil || *at > now.UnixMicro() {
		return Due{}, false, nil
	}
	return Due{What: what, At: clock.FromMicros(*at)}, true, nil
}

// next is the first thing the wallet waits for, nil when there is none. Of two
// at one instant the gentler goes first.
func (w *walletRow) next() (what string, at *int64) {
	earlier := func(kind string, us *int64) {
		if us != nil && (at == nil || *us < *at) {
			what, at = kind, us
		}
	}
	earlier(LowDue, w.LowUS)
	earlier(WarnDue, w.WarnUS)
	if w.SwitchOffUS != nil {
		earlier(ExhaustDue, w.SwitchOffUS)
	} else {
		earlier(ExhaustDue, w.ExhaustsUS)
	}
	earlier(SpendDue, w.SpendUS)
	earlier(ArrearsDue, w.arrearsDue())
	return what, at
}

// runways are what is told of, in microseconds, the longest first (server rule
// 36). Bit i of walletRow.Warned says that runways[i] was told: then all longer
// ones were, too.
var runways = [...]int64{24 * 3_600_000_000, 3_600_000_000, 900_000_000}

// foresee computes when the next runway is to be told. What was told may be
// told again once there is more than twice as much.
func (b *book) foresee(now int64) {
	w := &b.wallet
	w.WarnUS = nil
	if w.ExhaustsUS == nil {
		if b.shown() > 0 {
			w.Warned = 0
		}
		return
	}
	left := *w.ExhaustsUS - now
	for i, runway := range runways {
		if left > 2*runway {
			w.Warned &^= 1 << i
		}
	}
	if left > 0 {
		w.WarnUS = w.nextWarning(now)
	}
}

// nextWarning is the instant, not before now, of the longest runway that was
// not told yet.
func (w *walletRow) nextWarning(now int64) *int64 {
	for i, runway := range runways {
		if w.Warned&(1<<i) == 0 {
			at := max(now, *w.ExhaustsUS-runway)
			return &at
		}
	}
	return nil
}

// warn tells the runway that is due by now: of several at one instant the
// shortest.
func (w *walletRow) warn(now int64) (runway, at int64, ok bool) {
	if w.WarnUS == nil || *w.WarnUS > now || w.ExhaustsUS == nil {
		return 0, 0, false
	}
	at = *w.WarnUS
	for i, r := range runways {
		if *w.ExhaustsUS-at <= r {
			w.Warned |= 1 << i
			runway = r
		}
	}
	w.WarnUS = w.nextWarning(at + 1)
	return runway, at, runway > 0
}

// A Warning is a runway that is to be told.
type Warning struct {
	Runway time.Duration // 24 h, 1 h or 15 min
	At     time.Time
	Pods   bool // some of what is spent is for pods
	Balance
}

// WarnTx tells which runway came to be short by now, once each; false when
// none did.
func (s *Service) WarnTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, now time.Time) (Warning, bool, error) {
	b, err := s.lock(ctx, tx, teamID)
	if err != nil {
		return Warning{}, false, err
	}
	runway, at, ok := b.wallet.warn(now.UnixMicro())
	if !ok {
		return Warning{}, false, nil
	}
	b.dirty = true
	seen, err := b.at(at)
	if err != nil {
		return Warning{}, false, err
	}
	w := Warning{Runway: time.Duration(runway) * time.Microsecond, At: clock.FromMicros(at), Pods: seen.wallet.PodBurn > 0, Balance: seen.balance(clock.FromMicros(at))}
	return w, true, s.save(ctx, tx, b)
}

// A Standing is what there is to tell about a wallet at an instant.
type Standing struct {
	Runway  time.Duration // the shortest runway told that is still true; 0: none
	EmptyAt *time.Time    // the balance is zero since
	Arrears int           // steps of unpaid storage that were taken: ArrearsFreeze …
	Spend   int           // of the month's limit, in percent: 0, 80, 95 or 100
}

// Standing reads what there is to tell about a team's wallet.
func (s *Service) Standing(ctx context.Context, teamID uuid.UUID, now time.Time) (Standing, error) {
	b, err := readBook(ctx, s.Pool, teamID)
	if err != nil {
		return Standing{}, err
	}
	w, st := &b.wallet, Standing{}
	if w.EmptyUS != nil {
		at := clock.FromMicros(*w.EmptyUS)
		st.EmptyAt = &at
	}
	if w.ArrearsUS != nil && w.ArrearsEndUS == nil {
		st.Arrears = int(w.ArrearsStep)
	}
	if w.ExhaustsUS != nil && *w.ExhaustsUS > now.UnixMicro() {
		for i, runway := range runways {
			if w.Warned&(1<<i) != 0 {
				st.Runway = time.Duration(runway) * time.Microsecond
			}
		}
	}
	if w.SpendMonthUS == monthStart(now.UnixMicro()) {
		st.Spend = min(int(w.SpendStage), 100)
	}
	return st, nil
}
