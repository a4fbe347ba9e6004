package payment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/audit"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

// Faults of automatic top-ups.
var (
	// ErrCardNeeded occurs when they are turned on without a saved card.
	ErrCardNeeded = fault.New(fault.Conflict, "card_needed", "Save a card first.")
	// ErrThreshold occurs for a threshold out of range.
	ErrThreshold = fault.New(fault.Invalid, "threshold_invalid", "Please enter a threshold from $1.00 to $10,000.")
	// ErrMonthCap occurs for a monthly cap that is below one top-up, or out of
	// range.
	ErrMonthCap = fault.New(fault.Invalid, "month_cap_invalid", "Please enter a monthly cap of at most $100,000.")
)

// The limits of what may be agreed on.
const (
	MinThreshold = money.Dollar
	MaxThreshold = 10_000 * money.Dollar
	MaxMonthCap  = 100_000 * money.Dollar
)

// What is proposed to a team that never agreed on anything.
const (
	leastThreshold  = 5 * money.Dollar
	defaultAmount   = 25 * money.Dollar
	defaultMonthCap = 500 * money.Dollar
)

// An AutoState says what automatic top-ups do at this instant.
type AutoState string

// The states.
const (
	AutoOff      AutoState = "off"
	AutoOn       AutoState = "on"       // they wait for the balance to fall
	AutoCharging AutoState = "charging" // a payment is under way
	AutoRetrying AutoState = "retrying" // the card was declined; it is tried again
	AutoCapped   AutoState = "capped"   // the month's cap is reached; they wait for the next
	AutoHeld     AutoState = "held"     // a payment of the team is disputed
)

// Why they are off although nobody turned them off.
const (
	OffDeclined       = "declined"
	OffAuthentication = "authentication_required"
	OffCardRemoved    = "card_removed"
)

// An AutoTopUp is what a team agreed to have paid by its saved card without
// being asked, and how that stands.
type AutoTopUp struct {
	State        AutoState
	Threshold    money.USD
	Amount       money.USD
	MonthCap     money.USD
	MonthCharged money.USD  // of this UTC month: paid, or may still be
	OffReason    string     // empty: nobody turned it on, or an admin turned it off
	NextAt       *time.Time // of the next try, where one is known
	Card         *SavedCard // nil: there is none
	LeastAmount  money.USD  // of one top-up
}

// An AutoChange is what an admin agrees to, amounts as the client wrote them.
type AutoChange struct {
	Enabled   bool
	Threshold string
	Amount    string
	MonthCap  string
}

// An autoRow is a row of table auto_topup. It is locked after the team and
// before orders and the wallet.
type autoRow struct {
	TeamID    uuid.UUID  `db:"team_id"`
	Enabled   bool       `db:"enabled"`
	Threshold money.USD  `db:"threshold_usd_micro"`
	Amount    money.USD  `db:"amount_usd_micro"`
	MonthCap  money.USD  `db:"month_cap_usd_micro"`
	Failures  int        `db:"failures"`
	TriedAt   *time.Time `db:"tried_at"`
	DueAt     *time.Time `db:"due_at"`
	Waits     string     `db:"waits"`
	News      string     `db:"news"`
	OffReason string     `db:"off_reason"`
}

const sqlFindAuto = `
select team_id, enabled, threshold_usd_micro, amount_usd_micro, month_cap_usd_micro, failures, tried_at, due_at,
  coalesce(waits, '') as waits, coalesce(news, '') as news, coalesce(off_reason, '') as off_reason
from auto_topup where team_id = $1`

const sqlLockAuto = sqlFindAuto + ` for update`

// findAuto is nil for a team that never agreed on anything; sql says whether it
// is locked.
func findAuto(ctx context.Context, q pg.Querier, sql string, teamID uuid.UUID) (*autoRow, error) {
	rows, err := q.Query(ctx, sql, teamID)
	if err != nil {
		return nil, fmt.Errorf("find the automatic top-ups of team %s: %w", teamID, err)
	}
	a, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[autoRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the automatic top-ups of team %s: %w", teamID, err)
	}
	return &a, nil
}

const sqlSumAutomatic = `
select coalesce(sum(amount_usd_micro), 0)::bigint as charged, coalesce(bool_or(status = 'open'), false) as open
from topup where team_id = $1 and automatic and (status = 'open' or status = 'paid' and closed_at >= $2)`

// charged is what was paid in now's UTC month without asking, or may still be,
// and whether a payment is under way.
func charged(ctx context.Context, q pg.Querier, teamID uuid.UUID, now time.Time) (sum money.USD, open bool, err error) {
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	if err = q.QueryRow(ctx, sqlSumAutomatic, teamID, month).Scan(&sum, &open); err != nil {
		return 0, false, fmt.Errorf("sum the automatic top-ups of team %s: %w", teamID, err)
	}
	return sum, open, nil
}

// FindAutoTopUp returns what a team agreed on, or what is proposed to it. The
// scope needs the right team.Manage. The fault is ErrNotSetUp.
func (s *Service) FindAutoTopUp(ctx context.Context, scope team.Scope) (AutoTopUp, error) {
	scope, err := scope.Require(team.Manage)
	if err != nil {
		return AutoTopUp{}, err
	}
	if s.Processor == nil {
		return AutoTopUp{}, ErrNotSetUp
	}
	a, err := findAuto(ctx, s.Pool, sqlFindAuto, scope.TeamID())
	if err != nil {
		return AutoTopUp{}, err
	}
	if a == nil {
		if a, err = s.propose(ctx, scope); err != nil {
			return AutoTopUp{}, err
		}
	}
	out := AutoTopUp{
		Threshold: a.Threshold, Amount: a.Amount, MonthCap: a.MonthCap, OffReason: a.OffReason, LeastAmount: s.leastAmount(),
	}
	var open bool
	if out.MonthCharged, open, err = charged(ctx, s.Pool, scope.TeamID(), s.Clock.Now()); err != nil {
		return AutoTopUp{}, err
	}
	if out.State = a.state(open); out.State != AutoCharging {
		out.NextAt = a.DueAt
	}
	out.Card, err = s.findCard(ctx, s.Pool, scope.TeamID())
	return out, err
}

func (a *autoRow) state(open bool) AutoState {
	switch {
	case !a.Enabled:
		return AutoOff
	case open:
		return AutoCharging
	}
	waiting := map[string]AutoState{"retry": AutoRetrying, "cap": AutoCapped, "dispute": AutoHeld}
	if state := waiting[a.Waits]; state != "" {
		return state
	}
	return AutoOn
}

// leastAmount is the smallest top-up that the processor takes.
func (s *Service) leastAmount() money.USD { return max(MinTopUp, s.Processor.Minimum()) }

// propose is what a team may start from: a threshold of a day of what it spends
// now, in whole dollars.
func (s *Service) propose(ctx context.Context, scope team.Scope) (*autoRow, error) {
	b, err := s.Wallet.Balance(ctx, scope, s.Clock.Now())
	if err != nil {
		return nil, err
	}
	aDay := (money.Cost(b.SpendingPerHour, 0, 24*money.MicrosPerHour) + money.Dollar - 1) / money.Dollar * money.Dollar
	return &autoRow{
		Threshold: min(max(leastThreshold, aDay), MaxThreshold), Amount: defaultAmount, MonthCap: defaultMonthCap,
	}, nil
}

const sqlSetAuto = `
insert into auto_topup (team_id, enabled, threshold_usd_micro, amount_usd_micro, month_cap_usd_micro, due_at, updated_at)
values (@team, @enabled, @threshold, @amount, @cap, @due, @now)
on conflict (team_id) do update set enabled = excluded.enabled, threshold_usd_micro = excluded.threshold_usd_micro,
  amount_usd_micro = excluded.amount_usd_micro, month_cap_usd_micro = excluded.month_cap_usd_micro, failures = 0,
  due_at = excluded.due_at, waits = null, news = null, off_reason = null, updated_at = excluded.updated_at`

// SetAutoTopUp agrees on automatic top-ups, or turns them off. Asking for what is
// so already looks at the balance again. The scope needs the right team.Manage.
// The faults are ErrThreshold, ErrAmount, ErrMonthCap, ErrCardNeeded, ErrNotSetUp
// and those of team.LockTx.
func (s *Service) SetAutoTopUp(ctx context.Context, scope team.Scope, c AutoChange) (AutoTopUp, error) {
	scope, err := scope.Require(team.Manage)
	if err != nil {
		return AutoTopUp{}, err
	}
	if s.Processor == nil {
		return AutoTopUp{}, ErrNotSetUp
	}
	want, err := s.parseAuto(c)
	if err != nil {
		return AutoTopUp{}, err
	}
	err = pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		scope, err := team.LockTx(ctx, tx, scope)
		if err != nil {
			return err
		}
		return s.setAuto(ctx, tx, scope, want)
	})
	if err != nil {
		return AutoTopUp{}, fmt.Errorf("set the automatic top-ups of team %s: %w", scope.TeamID(), err)
	}
	return s.FindAutoTopUp(ctx, scope)
}

func (s *Service) setAuto(ctx context.Context, tx pgx.Tx, scope team.Scope, want autoRow) error {
	now, teamID := s.Clock.Now(), scope.TeamID()
	var below *money.USD
	var due *time.Time
	if want.Enabled {
		card, err := s.findCard(ctx, tx, teamID)
		if err != nil {
			return err
		}
		if card == nil {
			return ErrCardNeeded
		}
		below, due = &want.Threshold, &now
	}
	_, err := tx.Exec(ctx, sqlSetAuto, pgx.NamedArgs{
		"team": teamID, "enabled": want.Enabled, "threshold": want.Threshold, "amount": want.Amount, "cap": want.MonthCap,
		"due": due, "now": now,
	})
	if err != nil {
		return err
	}
	if _, _, err := s.Wallet.WatchTx(ctx, tx, teamID, below, now); err != nil {
		return err
	}
	return audit.RecordTx(ctx, tx, audit.Entry{
		At: now, TeamID: teamID, ActorID: scope.UserID(), Action: "team.auto_topup", ObjectID: teamID,
		Detail: map[string]any{
			"enabled": want.Enabled, "threshold_usd_micro": want.Threshold, "amount_usd_micro": want.Amount, "month_cap_usd_micro": want.MonthCap,
		},
	})
}

// parseAuto reads a change. The faults are ErrThreshold, ErrAmount and
// ErrMonthCap.
func (s *Service) parseAuto(c AutoChange) (autoRow, error) {
	a := autoRow{Enabled: c.Enabled}
	var err error
	if a.Threshold, err = money.Parse(strings.TrimSpace(c.Threshold)); err != nil || a.Threshold%money.Cent != 0 ||
		a.Threshold < MinThreshold || a.Threshold > MaxThreshold {
		return a, ErrThreshold.Because(err)
	}
	if a.Amount, err = ParseAmount(strings.TrimSpace(c.Amount)); err != nil {
		return a, err
	}
	if least := s.leastAmount(); a.Amount < least {
		return a, ErrAmount.With("The minimum payment is %s", least)
	}
	a.MonthCap, err = money.Parse(strings.TrimSpace(c.MonthCap))
	switch {
	case err != nil || a.MonthCap > MaxMonthCap || a.MonthCap%money.Cent != 0:
		return a, ErrMonthCap.Because(err)
	case a.MonthCap < a.Amount:
		return a, ErrMonthCap.With("The monthly cap must be at least the amount of one top-up.")
	}
	return a, nil
}

const sqlTurnOff = `
update auto_topup set enabled = false, due_at = null, waits = null, news = null, off_reason = nullif($2, ''), updated_at = $3
where team_id = $1 and enabled`

// turnOff ends automatic top-ups; reason is empty where a person did. A payment
// that is under way may still arrive.
func (s *Service) turnOff(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, reason string) error {
	now := s.Clock.Now()
	tag, err := tx.Exec(ctx, sqlTurnOff, teamID, reason, now)
	if err != nil {
		return fmt.Errorf("turn the automatic top-ups of team %s off: %w", teamID, err)
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	_, _, err = s.Wallet.WatchTx(ctx, tx, teamID, nil, now)
	return err
}
