package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
)

const (
	tryPause     = 10 * time.Minute // the least between two payments of a team
	disputePause = time.Hour        // between two looks while a payment is disputed
)

// News is what a team's admins are told of its automatic top-ups.
type News struct {
	TeamID uuid.UUID
	Kind   NewsKind
	Key    string // with the kind, it is told once for ever
	At     time.Time
	Amount money.USD  // of one top-up
	Cap    money.USD  // of the month
	Paid   money.USD  // of the month
	Card   Card       // that paid, or did not
	NextAt *time.Time // of the next try
	To     uuid.UUID  // who is told alone; uuid.Nil: every admin
}

// A NewsKind says what happened.
type NewsKind string

// The kinds.
const (
	NewsDeclined       NewsKind = "declined"       // it is tried again at NextAt
	NewsOff            NewsKind = "off"            // declined too often: they are off
	NewsAuthentication NewsKind = "authentication" // the bank wants to see the card's owner: they are off
	NewsCapped         NewsKind = "capped"         // the month's cap is reached until NextAt
	NewsCardRemoved    NewsKind = "card_removed"   // the card is gone, and no admin removed it here: they are off
	NewsPayerLeft      NewsKind = "payer_left"     // who saved the card is no member any more: it goes on to pay
	NewsPayerDemoted   NewsKind = "payer_demoted"  // who saved the card is no admin any more, and told so alone
)

// DueTx has the balance of a team looked at: it fell below what the team
// watches. The wallet is not locked yet.
func (s *Service) DueTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, now time.Time) error {
	if _, err := tx.Exec(ctx, sqlAutoDue, teamID, now); err != nil {
		return fmt.Errorf("have the balance of team %s looked at: %w", teamID, err)
	}
	return nil
}

const sqlAutoDue = `
update auto_topup set due_at = $2 where team_id = $1 and enabled and due_at is null`

const sqlListAutoDue = `select team_id from auto_topup where due_at <= $1 order by due_at, team_id limit $2`

const sqlListAutomaticToRead = `
select id from topup where read_at <= $1 and processor = $3 and automatic order by read_at, id limit $2`

// FollowAutoTopUps looks at the balances that automatic top-ups are due for by
// business time and begins the payments, and finds out about those whose answer
// got lost. Call it each second. A team that fails does not keep the others
// waiting. It does nothing after a restore of the database that the operator has
// not confirmed.
func (s *Service) FollowAutoTopUps(ctx context.Context) error {
	if s.Processor == nil {
		return nil
	}
	if restored, err := s.restored(ctx); err != nil || restored {
		return err
	}
	return errors.Join(s.lookDue(ctx), readDue(ctx, s, sqlListAutomaticToRead, func(ctx context.Context, order uuid.UUID) error {
		return s.Charge(ctx, ChargeJob{OrderID: order})
	}))
}

// restored says whether cards may have paid what the database does not know of.
func (s *Service) restored(ctx context.Context) (bool, error) {
	if s.RestoredAt == nil {
		return false, nil
	}
	since, err := s.RestoredAt(ctx)
	return since != nil, err
}

func (s *Service) lookDue(ctx context.Context) error {
	rows, err := s.Pool.Query(ctx, sqlListAutoDue, s.Clock.Now(), readBatch)
	if err != nil {
		return fmt.Errorf("list automatic top-ups: %w", err)
	}
	due, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("list automatic top-ups: %w", err)
	}
	var failed []error
	for _, teamID := range due {
		begun := false
		err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) (err error) {
			begun, err = s.look(ctx, tx, teamID)
			return err
		})
		if err != nil {
			failed = append(failed, fmt.Errorf("look at the balance of team %s: %w", teamID, err))
		}
		if begun {
			fail.Point("payment.auto.intent")
		}
	}
	return errors.Join(failed...)
}

// A sight is what a look at a team's balance sees.
type sight struct {
	low      bool
	open     bool // a payment is under way
	card     bool
	disputed bool
	charged  money.USD // this month
}

// A verdict is what follows from a look.
type verdict struct {
	begin bool
	due   *time.Time // of the next look; nil: the wallet, or the payment, tells
	waits string
}

// decide says what an automatic top-up does next.
func (a *autoRow) decide(seen sight, now time.Time) verdict {
	later := func(at time.Time, waits string) verdict { return verdict{due: &at, waits: waits} }
	switch {
	case !seen.low, seen.open, !seen.card:
		return verdict{}
	case seen.disputed:
		return later(now.Add(disputePause), "dispute")
	case a.TriedAt != nil && now.Before(a.TriedAt.Add(tryPause)):
		return later(a.TriedAt.Add(tryPause), "pause")
	case seen.charged+a.Amount > a.MonthCap:
		return later(time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC), "cap")
	}
	return verdict{begin: true}
}

const sqlSetDue = `
update auto_topup set due_at = $2, waits = nullif($3, ''), tried_at = coalesce($4, tried_at),
  failures = case when $5 then 0 else failures end, news = case when $5 then null else news end
where team_id = $1`

const sqlInsertAutomatic = `
insert into topup (id, team_id, user_id, amount_usd_micro, processor, status, created_at, opened_at, read_at, automatic, card_id)
values (@id, @team, @user, @amount, @processor, 'open', @now, @wall, @read, true, @card)`

// look looks at one team's balance, if that is due, and begins a payment: its
// intent is in the database before anybody is asked for money.
func (s *Service) look(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) (begun bool, err error) {
	now := s.Clock.Now()
	a, err := findAuto(ctx, tx, sqlLockAuto, teamID)
	if err != nil || a == nil || !a.Enabled || a.DueAt == nil || a.DueAt.After(now) {
		return false, err
	}
	seen, card, err := s.see(ctx, tx, a, now)
	if err != nil {
		return false, err
	}
	v := a.decide(seen, now)
	var tried *time.Time
	if v.begin {
		tried = &now
	}
	if _, err := tx.Exec(ctx, sqlSetDue, teamID, v.due, v.waits, tried, !seen.low); err != nil {
		return false, err
	}
	if v.waits == "cap" {
		news := News{Kind: NewsCapped, Key: now.Format("2006-01") + ":" + a.MonthCap.Decimal(), Paid: seen.charged, Card: card.Card, NextAt: v.due}
		return false, s.tell(ctx, tx, a, news)
	}
	if !v.begin {
		return false, nil
	}
	order, wall := id.New(), s.Clock.Wall()
	_, err = tx.Exec(ctx, sqlInsertAutomatic, pgx.NamedArgs{
		"id": order, "team": teamID, "user": card.UserID, "amount": a.Amount, "processor": s.Processor.Source(), "card": card.ID,
		"now": now, "wall": wall, "read": wall.Add(firstAsk),
	})
	if err != nil {
		return false, err
	}
	return true, s.Jobs.AddTx(ctx, tx, ChargeJob{OrderID: order}, job.Options{MaxAttempts: 1})
}

// see reads what decides about a team's next payment. Its row is locked.
func (s *Service) see(ctx context.Context, tx pgx.Tx, a *autoRow, now time.Time) (seen sight, card *SavedCard, err error) {
	if card, err = s.findCard(ctx, tx, a.TeamID); err != nil {
		return seen, nil, err
	}
	seen.card = card != nil
	if seen.disputed, err = s.Wallet.DisputedTx(ctx, tx, a.TeamID); err != nil {
		return seen, nil, err
	}
	if seen.charged, seen.open, err = charged(ctx, tx, a.TeamID, now); err != nil {
		return seen, nil, err
	}
	_, seen.low, err = s.Wallet.WatchTx(ctx, tx, a.TeamID, &a.Threshold, now)
	return seen, card, err
}

const sqlSetNews = `update auto_topup set news = $2 where team_id = $1`

// tell tells the team's admins, and keeps which notice is true now.
func (s *Service) tell(ctx context.Context, tx pgx.Tx, a *autoRow, n News) error {
	if _, err := tx.Exec(ctx, sqlSetNews, a.TeamID, string(n.Kind)+":"+n.Key); err != nil {
		return fmt.Errorf("keep the news of team %s: %w", a.TeamID, err)
	}
	return s.post(ctx, tx, a, n)
}

// post tells the team's admins, beside what is true now.
func (s *Service) post(ctx context.Context, tx pgx.Tx, a *autoRow, n News) error {
	if s.OnAutoTopUp == nil {
		return nil
	}
	n.TeamID, n.At, n.Amount, n.Cap = a.TeamID, s.Clock.Now(), a.Amount, a.MonthCap
	return s.OnAutoTopUp(ctx, tx, n)
}

// NewsKey names the notice about a team's automatic top-ups that is true now:
// kind and key, apart by a colon; empty when there is none.
func (s *Service) NewsKey(ctx context.Context, teamID uuid.UUID) (string, error) {
	a, err := findAuto(ctx, s.Pool, sqlFindAuto, teamID)
	if err != nil || a == nil {
		return "", err
	}
	return a.News, nil
}
