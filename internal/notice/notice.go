// Package notice tells teams about their money: in the page, and by letters to
// their admins. It owns what was told, to whom, and who does not want to see it
// any more; when there is something to tell is found by meter.
//
// What always holds: one notice per team and key, for ever, and one letter per
// notice and person, whose job is made in the same transaction; a letter's
// numbers are those of the instant it is about; a notice is shown while what it
// says is true.
package notice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// ErrNotFound occurs when the team has no such notice.
var ErrNotFound = fault.New(fault.NotFound, "notice_not_found", "There is no such notice.")

// A Kind is what a notice is about.
type Kind string

// The kinds.
const (
	RunwayDay     Kind = "runway_24h"
	RunwayHour    Kind = "runway_1h"
	RunwayQuarter Kind = "runway_15m"
	BalanceEmpty  Kind = "balance_empty"   // pods ended, storage goes on for 7 days
	StorageFrozen Kind = "storage_frozen"  // day 7
	StorageSoon   Kind = "storage_soon"    // day 23
	StorageLast   Kind = "storage_last"    // day 29
	StorageTrash  Kind = "storage_trashed" // day 30
	Spend80       Kind = "spend_80"
	Spend95       Kind = "spend_95"
	SpendLimit    Kind = "spend_limit" // pods end within the hour
	PlanUnpaid    Kind = "plan_unpaid" // a payment failed: 7 days with everything
	PlanEnds      Kind = "plan_ends"   // 72 hours of them are left
	PlanEnded     Kind = "plan_ended"  // by an admin: 72 hours of the month that is paid for are left

	TopUpDeclined       Kind = "topup_declined"       // an automatic one: it is tried again
	TopUpOff            Kind = "topup_off"            // declined too often: they are off
	TopUpAuthentication Kind = "topup_authentication" // the bank wants to see the card's owner: they are off
	TopUpCapped         Kind = "topup_capped"         // the month's cap is reached
	TopUpCardRemoved    Kind = "topup_card_removed"   // the card is gone: they are off
	TopUpPayerLeft      Kind = "topup_payer_left"     // who saved the card left the team: a letter alone
	TopUpPayerDemoted   Kind = "topup_payer_demoted"  // who saved the card is no admin any more: a letter to them alone
)

// Facts are the numbers of a notice; those that it does not need are zero.
type Facts struct {
	Balance  money.USD  `json:"balance,omitempty"`
	Spending money.Rate `json:"spending,omitempty"`
	List     money.Rate `json:"list,omitempty"` // what costs Spending now, at list prices
	Spent    money.USD  `json:"spent,omitempty"`
	Limit    money.USD  `json:"limit,omitempty"`
	Volumes  int        `json:"volumes,omitempty"`
	Pods     bool       `json:"pods,omitempty"`    // some of the spending is for pods
	Running  int        `json:"running,omitempty"` // how many pods that spending is for
	Amount   money.USD  `json:"amount,omitempty"`  // of one automatic top-up
	Card     string     `json:"card,omitempty"`    // that pays them: "Visa ending in 4242"
	// When what the notice warns of happens; of a top-up, when it is tried again.
	EndsAt *time.Time `json:"ends_at,omitempty"`
}

// A Notice is something a team is told.
type Notice struct {
	ID       uuid.UUID
	TeamID   uuid.UUID
	Kind     Kind
	Key      string // what it is told about: with the kind, once per team for ever
	Facts    Facts
	PostedAt time.Time // business time
	To       uuid.UUID `db:"-"` // whose letter it is, whatever their role; uuid.Nil: every admin's
}

// Deps are what a Service is made of.
type Deps struct {
	Pool      *pgxpool.Pool
	Clock     *clock.Clock
	Logger    *slog.Logger
	Jobs      job.Queue // takes LetterJob
	Mail      mail.Sender
	Teams     *team.Service
	Wallet    *wallet.Service
	PublicURL string // the origin that letters lead to
	// TopUpNews names the notice about a team's automatic top-ups that is true
	// now, by what follows "topup_" in its kind, a colon and its key; empty: none.
	TopUpNews func(ctx context.Context, teamID uuid.UUID) (string, error)
}

// A Service posts and shows notices. It is safe for concurrent use, also by
// several processes.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service { return &Service{Deps: d} }

const sqlInsertNotice = `
insert into notice (id, team_id, kind, key, facts, posted_at) values (@id, @team, @kind, @key, @facts, @at)
on conflict (team_id, key) do nothing`

const sqlInsertLetter = `insert into notice_letter (notice_id, user_id, queued_at) values ($1, $2, $3)`

// PostTx tells a team something, with a letter to each admin, or to the one who
// is named, where the kind has one. What was told before is not told again.
func (s *Service) PostTx(ctx context.Context, tx pgx.Tx, n Notice) error {
	n.ID = id.New()
	facts, err := json.Marshal(n.Facts)
	if err != nil {
		return fmt.Errorf("write the facts of a notice: %w", err)
	}
	tag, err := tx.Exec(ctx, sqlInsertNotice, pgx.NamedArgs{
		"id": n.ID, "team": n.TeamID, "kind": n.Kind, "key": string(n.Kind) + ":" + n.Key, "facts": facts, "at": n.PostedAt,
	})
	if err != nil {
		return fmt.Errorf("post notice %s for team %s: %w", n.Kind, n.TeamID, err)
	}
	if tag.RowsAffected() == 0 || letters[n.Kind] == nil {
		return nil
	}
	readers := []uuid.UUID{n.To}
	if n.To == uuid.Nil {
		if readers, err = s.Teams.AdminsTx(ctx, tx, n.TeamID); err != nil {
			return err
		}
	}
	for _, reader := range readers {
		if _, err := tx.Exec(ctx, sqlInsertLetter, n.ID, reader, n.PostedAt); err != nil {
			return fmt.Errorf("queue a letter of notice %s: %w", n.ID, err)
		}
		if err := s.Jobs.AddTx(ctx, tx, LetterJob{NoticeID: n.ID, UserID: reader, Named: n.To == reader}, job.Options{MaxAttempts: mail.Attempts}); err != nil {
			return err
		}
	}
	return nil
}

// sqlListNotices looks at the newest of each kind, and of the plan's two, alone:
// who dismissed it is not to see the older ones behind it, which may be false.
const sqlListNotices = `
with newest as (
  select distinct on (case when kind in ('plan_unpaid', 'plan_ends') then 'plan' else kind end)
    id, team_id, kind, key, facts, posted_at
  from notice where team_id = $1
  order by case when kind in ('plan_unpaid', 'plan_ends') then 'plan' else kind end, posted_at desc, id desc
)
select n.id, n.team_id, n.kind, n.key, n.facts, n.posted_at
from newest n
where not exists (select from notice_dismissal d where d.notice_id = n.id and d.user_id = $2)
order by n.posted_at desc, n.id desc`

// List returns what a person is to see of a team's notices at now, the newest
// first: at most one of the balance, one of the month's limit, one of the plan
// and one of automatic top-ups.
func (s *Service) List(ctx context.Context, scope team.Scope, now time.Time) ([]Notice, error) {
	standing, err := s.Wallet.Standing(ctx, scope.TeamID(), now)
	if err != nil {
		return nil, err
	}
	rows, err := s.Pool.Query(ctx, sqlListNotices, scope.TeamID(), scope.UserID())
	if err != nil {
		return nil, fmt.Errorf("list the notices of team %s: %w", scope.TeamID(), err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[Notice])
	if err != nil {
		return nil, fmt.Errorf("list the notices of team %s: %w", scope.TeamID(), err)
	}
	until, err := s.Teams.GraceUntil(ctx, scope)
	if err != nil {
		return nil, err
	}
	shown := append(current(all, standing), planNotice(all, until)...)
	if s.TopUpNews == nil {
		return shown, nil
	}
	news, err := s.TopUpNews(ctx, scope.TeamID())
	if err != nil {
		return nil, err
	}
	return append(shown, topUpNotice(all, news)...), nil
}

// topUpNotice picks the notice that is named.
func topUpNotice(all []Notice, news string) []Notice {
	for _, n := range all {
		if news != "" && n.Key == "topup_"+news {
			return []Notice{n}
		}
	}
	return nil
}

// current picks what is still true, one of each family, from a list with the
// newest first.
func current(all []Notice, standing wallet.Standing) []Notice {
	var out []Notice
	for _, want := range []Kind{balanceKind(standing), spendKinds[standing.Spend]} {
		for _, n := range all {
			if want != "" && n.Kind == want {
				out = append(out, n)
				break
			}
		}
	}
	return out
}

var spendKinds = map[int]Kind{80: Spend80, 95: Spend95, 100: SpendLimit}

var runwayKinds = map[time.Duration]Kind{24 * time.Hour: RunwayDay, time.Hour: RunwayHour, 15 * time.Minute: RunwayQuarter}

var arrearsKinds = map[int]Kind{
	wallet.ArrearsFreeze: StorageFrozen, wallet.ArrearsSoon: StorageSoon,
	wallet.ArrearsLast: StorageLast, wallet.ArrearsTrash: StorageTrash,
}

func balanceKind(s wallet.Standing) Kind {
	switch {
	case s.Arrears > 0:
		return arrearsKinds[s.Arrears]
	case s.EmptyAt != nil:
		return BalanceEmpty
	}
	return runwayKinds[s.Runway]
}

const sqlDismiss = `
insert into notice_dismissal (notice_id, user_id, dismissed_at)
select id, $3, $4 from notice where id = $1 and team_id = $2
on conflict (notice_id, user_id) do update set dismissed_at = notice_dismissal.dismissed_at`

// Dismiss hides a notice from one person. Doing it again changes nothing. The
// fault is ErrNotFound.
func (s *Service) Dismiss(ctx context.Context, scope team.Scope, noticeID uuid.UUID) error {
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sqlDismiss, noticeID, scope.TeamID(), scope.UserID(), s.Clock.Now())
		if err != nil {
			return fmt.Errorf("dismiss notice %s: %w", noticeID, err)
		}
		if tag.RowsAffected() == 0 {
			return ErrNotFound
		}
		return nil
	})
}

// RunwayKind is the notice of a runway.
func RunwayKind(runway time.Duration) Kind { return runwayKinds[runway] }

// SpendKind is the notice of a percentage of the month's limit.
func SpendKind(stage int) Kind { return spendKinds[stage] }

// ArrearsKind is the notice of a step of unpaid storage.
func ArrearsKind(step int) Kind { return arrearsKinds[step] }

const sqlFindNotice = `select id, team_id, kind, key, facts, posted_at from notice where id = $1`

func findNotice(ctx context.Context, tx pgx.Tx, noticeID uuid.UUID) (Notice, error) {
	rows, err := tx.Query(ctx, sqlFindNotice, noticeID)
	if err != nil {
		return Notice{}, fmt.Errorf("find notice %s: %w", noticeID, err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Notice])
	if errors.Is(err, pgx.ErrNoRows) {
		return Notice{}, ErrNotFound
	}
	if err != nil {
		return Notice{}, fmt.Errorf("find notice %s: %w", noticeID, err)
	}
	return n, nil
}
