package payment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/wallet"
)

const (
	// firstAsk is how long after its making a payment is asked after for the first
	// time, in case whoever asked for it died.
	firstAsk = 30 * time.Second
	// askWithin is how long after its making a payment may be asked for under its
	// key: no processor forgets one sooner.
	askWithin = 20 * time.Hour
	// askedLong is how long after it was asked for a payment that the processor
	// does not have will not come to be any more: longer than a call takes.
	askedLong = 5 * time.Minute
)

// retries are the pauses before a card that was declined is tried again.
var retries = [...]time.Duration{time.Hour, 6 * time.Hour}

// A ChargeJob asks for the payment of an automatic top-up at once.
type ChargeJob struct {
	OrderID uuid.UUID `json:"order_id"`
}

// Kind is the job's name in the queue.
func (ChargeJob) Kind() string { return "payment_charge" }

const sqlFindAutomatic = `select team_id from topup where id = $1 and automatic`

// lockAutomatic locks a team's agreement and one of its automatic orders; both
// are nil for an order that is none.
func lockAutomatic(ctx context.Context, tx pgx.Tx, order uuid.UUID) (*autoRow, *topUp, error) {
	var teamID uuid.UUID
	err := tx.QueryRow(ctx, sqlFindAutomatic, order).Scan(&teamID)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find order %s: %w", order, err)
	}
	a, err := findAuto(ctx, tx, sqlLockAuto, teamID)
	if err != nil {
		return nil, nil, err
	}
	if a == nil {
		return nil, nil, fmt.Errorf("order %s is automatic, but team %s agreed on nothing", order, teamID)
	}
	t, err := lockTopUp(ctx, tx, order)
	return a, t, err
}

const sqlAskTopUp = `
update topup set asked_at = coalesce(asked_at, $2), read_at = $3, reads = reads + 1 where id = $1 and status = 'open'`

// Charge has the payment of an automatic top-up made, or finds out what became
// of it. It may run twice, late and on several nodes: the processor is asked under
// the order's key, and each time only if the team still wants the payment. What
// fails is found again by FollowAutoTopUps.
func (s *Service) Charge(ctx context.Context, j ChargeJob) error {
	if s.Processor == nil {
		return nil
	}
	if restored, err := s.restored(ctx); err != nil || restored {
		return err
	}
	var c Charge
	var how asking
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		a, t, err := lockAutomatic(ctx, tx, j.OrderID)
		if err != nil || t == nil || t.Status != "open" || t.Processor != s.Processor.Source() {
			return err
		}
		wall := s.Clock.Wall()
		wanted, err := s.wanted(ctx, tx, a, t)
		if err != nil {
			return err
		}
		if how = t.asking(wanted, wall); how.first && !wanted {
			return s.withdraw(ctx, tx, a, t)
		}
		c = Charge{ID: t.ID, TeamID: t.TeamID, CardID: t.CardID, Amount: t.Amount, OrderedAt: t.OpenedAt}
		_, err = tx.Exec(ctx, sqlAskTopUp, t.ID, wall, wall.Add(min(readLimit, firstAsk<<min(t.Reads, 10))))
		return err
	})
	if err != nil || c.ID == uuid.Nil {
		return err
	}
	if c.CustomerID, err = s.findCustomer(ctx, c.TeamID); err != nil {
		return err
	}
	fail.Point("payment.auto.asked")
	return s.collect(ctx, c, how)
}

// An asking says how the processor is asked about an order.
type asking struct {
	first bool // nobody asked for the payment yet: there is none to be found
	may   bool // where there is none, it may be asked for
	waits bool // a call may be on its way: it is too early to give up
}

// asking is how to ask for an order at a wall time. One that was made long ago
// is looked for before, whatever our row says of it: that may be of a backup.
func (t *topUp) asking(wanted bool, wall time.Time) asking {
	how := asking{may: wanted && wall.Sub(t.OpenedAt) < askWithin}
	if t.AskedAt == nil {
		how.first = wall.Sub(t.OpenedAt) < askedLong
		return how
	}
	how.waits = wall.Sub(*t.AskedAt) < askedLong
	return how
}

// wanted says whether the team still wants an order to be paid: it agrees on
// what the order is over, within its cap, and its balance is still low. It locks
// the wallet.
func (s *Service) wanted(ctx context.Context, tx pgx.Tx, a *autoRow, t *topUp) (bool, error) {
	card, err := s.findCard(ctx, tx, a.TeamID)
	if err != nil || !a.Enabled || a.Amount != t.Amount || card == nil || card.ID != t.CardID {
		return false, err
	}
	now := s.Clock.Now()
	if sum, _, err := charged(ctx, tx, a.TeamID, now); err != nil || sum > a.MonthCap { // the order is in the sum
		return false, err
	}
	if disputed, err := s.Wallet.DisputedTx(ctx, tx, a.TeamID); err != nil || disputed {
		return false, err
	}
	if active, err := s.isActive(ctx, tx, a.TeamID); err != nil || !active {
		return false, err
	}
	_, low, err := s.Wallet.WatchTx(ctx, tx, a.TeamID, &a.Threshold, now)
	return low, err
}

// collect asks the processor, without a lock, and applies the answer. An order
// that was asked for before is looked for first: it may be paid although the
// answer got lost, and whether or not the team still wants that.
func (s *Service) collect(ctx context.Context, c Charge, how asking) error {
	p, found := Payment{}, false
	var err error
	if !how.first {
		if p, found, err = s.Processor.FindPayment(ctx, c); err != nil {
			return fmt.Errorf("find the payment of order %s: %w", c.ID, err)
		}
	}
	switch {
	case found:
	case how.may:
		p, err = s.Processor.Charge(ctx, c)
		if errors.Is(err, ErrNoCustomer) { // without its card the order is given up
			return s.loseCustomer(ctx, c.TeamID, c.CustomerID)
		}
		if err != nil {
			return fmt.Errorf("charge order %s: %w", c.ID, err)
		}
		fail.Point("payment.auto.called")
	case how.waits:
		return nil
	default:
		return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
			a, t, err := lockAutomatic(ctx, tx, c.ID)
			if err != nil || t == nil || t.Status != "open" {
				return err
			}
			return s.withdraw(ctx, tx, a, t)
		})
	}
	return s.answered(ctx, c, p)
}

// answered applies what the processor said of a charge.
func (s *Service) answered(ctx context.Context, c Charge, p Payment) error {
	if p.OrderID != c.ID {
		return fmt.Errorf("charge order %s: the processor answered with payment %s of order %s", c.ID, p.ID, p.OrderID)
	}
	outcome := ""
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) (err error) {
		outcome, err = s.applyPayment(ctx, tx, p)
		return err
	})
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if outcome == refused {
		level = slog.LevelError
	}
	s.Logger.Log(ctx, level, "an automatic top-up was answered", slog.String("order", c.ID.String()), slog.String("outcome", outcome))
	return nil
}

const sqlFindOrdered = `select team_id, opened_at from topup where id = $1 and automatic`

// readCharge does what the payment of an automatic order asks for, if there is
// one, whatever became of the order.
func (s *Service) readCharge(ctx context.Context, order uuid.UUID) error {
	c := Charge{ID: order}
	err := s.Pool.QueryRow(ctx, sqlFindOrdered, order).Scan(&c.TeamID, &c.OrderedAt)
	if err != nil {
		return fmt.Errorf("find order %s: %w", order, err)
	}
	if c.CustomerID, err = s.findCustomer(ctx, c.TeamID); err != nil {
		return err
	}
	p, found, err := s.Processor.FindPayment(ctx, c)
	if err != nil {
		return fmt.Errorf("find the payment of order %s: %w", order, err)
	}
	if !found {
		return nil
	}
	return s.answered(ctx, c, p)
}

const sqlLookAgain = `
update auto_topup set due_at = case when enabled then $2::timestamptz end, waits = nullif($3, ''), failures = $4::smallint,
  news = case when $4::smallint = 0 then null else news end
where team_id = $1`

// withdraw ends an order that nobody was charged for.
func (s *Service) withdraw(ctx context.Context, tx pgx.Tx, a *autoRow, t *topUp) error {
	now := s.Clock.Now()
	if _, err := tx.Exec(ctx, sqlCloseTopUp, t.ID, "expired", now); err != nil {
		return fmt.Errorf("withdraw order %s: %w", t.ID, err)
	}
	if _, err := tx.Exec(ctx, sqlLookAgain, a.TeamID, now, "", a.Failures); err != nil {
		return fmt.Errorf("withdraw order %s: %w", t.ID, err)
	}
	return nil
}

// applyPayment does what the state of a saved card's payment asks for,
// whichever way it was learnt.
func (s *Service) applyPayment(ctx context.Context, tx pgx.Tx, p Payment) (outcome string, err error) {
	if p.OrderID == uuid.Nil {
		return ignored, nil
	}
	a, t, err := lockAutomatic(ctx, tx, p.OrderID)
	switch {
	case err != nil:
		return "", err
	case t == nil:
		return ignored, nil
	case !t.fitsPayment(p, s.Processor.Source()):
		return refused, nil
	case p.State == PaymentPaid:
		return s.payAutomatic(ctx, tx, a, t, p)
	case p.State == PaymentPending || t.Status != "open":
		return ignored, nil
	}
	return declined, s.decline(ctx, tx, a, t, p)
}

// fitsPayment says whether a payment is the one of this order, over its amount.
func (t *topUp) fitsPayment(p Payment, source wallet.Source) bool {
	return t.Processor == source && (p.ID != "" || p.State != PaymentPaid) && p.Amount == t.Amount && p.Total >= p.Amount && p.Currency == "usd" &&
		(t.PaymentID == "" || t.PaymentID == p.ID)
}

// payAutomatic credits a paid order, once, also one that was given up. After the
// pause the balance is looked at again: one top-up may not have been enough.
func (s *Service) payAutomatic(ctx context.Context, tx pgx.Tx, a *autoRow, t *topUp, p Payment) (string, error) {
	known := t.Status == "paid"
	outcome, err := s.pay(ctx, tx, t, Session{PaymentID: p.ID, Amount: p.Amount, Total: p.Total})
	if err != nil || known {
		return outcome, err
	}
	next := s.Clock.Now()
	if a.TriedAt != nil && next.Before(a.TriedAt.Add(tryPause)) {
		next = a.TriedAt.Add(tryPause)
	}
	if _, err := tx.Exec(ctx, sqlLookAgain, a.TeamID, next, "", 0); err != nil {
		return "", fmt.Errorf("look at the balance of team %s again: %w", a.TeamID, err)
	}
	return outcome, nil
}

// decline ends an order whose payment failed, and has the card tried again or
// automatic top-ups turned off. Where another card has taken its place meanwhile,
// that one is tried.
func (s *Service) decline(ctx context.Context, tx pgx.Tx, a *autoRow, t *topUp, p Payment) error {
	now := s.Clock.Now()
	if _, err := tx.Exec(ctx, sqlCloseTopUp, t.ID, "failed", now); err != nil {
		return fmt.Errorf("close order %s: %w", t.ID, err)
	}
	if !a.Enabled {
		return nil
	}
	saved, err := s.findCard(ctx, tx, a.TeamID)
	if err != nil {
		return err
	}
	if saved != nil && saved.ID != t.CardID {
		if _, err := tx.Exec(ctx, sqlLookAgain, a.TeamID, now, "", 0); err != nil {
			return fmt.Errorf("try the new card of team %s: %w", a.TeamID, err)
		}
		return nil
	}
	card, err := findOldCard(ctx, tx, t.CardID)
	if err != nil {
		return err
	}
	news := News{Kind: NewsDeclined, Key: t.ID.String(), Card: card}
	switch {
	case p.State == PaymentNeedsPerson:
		news.Kind = NewsAuthentication
		err = s.turnOff(ctx, tx, a.TeamID, OffAuthentication)
	case a.Failures >= len(retries):
		news.Kind = NewsOff
		err = s.turnOff(ctx, tx, a.TeamID, OffDeclined)
	default:
		next := now.Add(retries[a.Failures])
		news.NextAt = &next
		_, err = tx.Exec(ctx, sqlLookAgain, a.TeamID, next, "retry", a.Failures+1)
	}
	if err != nil {
		return fmt.Errorf("follow the decline of order %s: %w", t.ID, err)
	}
	return s.tell(ctx, tx, a, news)
}

const sqlFindOldCard = `select id, brand, last4, exp_month, exp_year from payment_card where id = $1`

// findOldCard finds a card that may have been removed meanwhile.
func findOldCard(ctx context.Context, tx pgx.Tx, cardID string) (Card, error) {
	rows, err := tx.Query(ctx, sqlFindOldCard, cardID)
	if err != nil {
		return Card{}, fmt.Errorf("find card %s: %w", cardID, err)
	}
	card, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Card])
	if err != nil {
		return Card{}, fmt.Errorf("find card %s: %w", cardID, err)
	}
	return card, nil
}
