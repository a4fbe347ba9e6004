package statement

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

// ErrNoMonth is the answer for a month that is none of the team's, or is not a
// month.
var ErrNoMonth = fault.New(fault.NotFound, "statement_not_found", "There is no statement of this month.")

// ErrRange refuses days that are none, are in the wrong order, or are too many.
var ErrRange = fault.New(fault.Invalid, "spend_range", "from and to must be days as 2027-03-14, in this order and at most 366 days.")

// Deps are what a Service is made of.
type Deps struct {
	Pool    *pgxpool.Pool
	Clock   *clock.Clock
	Wallet  *wallet.Service
	Pods    *pod.Service
	Volumes *volume.Service
	Teams   *team.Service
	// Emails returns the addresses of users. Unknown users are left out.
	Emails func(ctx context.Context, tx pgx.Tx, users []uuid.UUID) (map[uuid.UUID]string, error)
	// Payers tells who made payments, Receipts where their receipts are, by the
	// payments' ids. Unknown payments are left out. Receipts may ask others for
	// them, so it is in no transaction.
	Payers   func(ctx context.Context, tx pgx.Tx, payments []string) (map[string]uuid.UUID, error)
	Receipts func(ctx context.Context, payments []string) (map[string]string, error)
}

// A Service makes statements. It is safe for concurrent use.
type Service struct{ Deps }

// New returns the statement service.
func New(d Deps) *Service { return &Service{Deps: d} }

// A Statement is a team's month.
type Statement struct {
	TeamID   uuid.UUID
	TeamName string
	AsOf     time.Time // when it was made
	wallet.Month
	Money   []Entry // the oldest first
	Pods    []Item  // what cost most first
	Volumes []Item
	Members []Share
}

// Final says that the month is over: the statement will not change any more.
func (s *Statement) Final() bool { return !s.AsOf.Before(s.End) }

// An Entry is money that came in, went out or was given back.
type Entry struct {
	At          time.Time
	Type        string // credit, refund or debit
	Description string
	Member      string    // who paid, empty when that is not known
	Amount      money.USD // signed
	Reference   string
	Receipt     string // its address, empty: none
}

// An Item is what one pod or volume cost in the month.
type Item struct {
	ID       uuid.UUID
	Name     string
	Member   string // who made it
	Ran      time.Duration
	Charged  money.USD
	Refunded money.USD
}

// Net is what it cost after refunds.
func (i Item) Net() money.USD { return i.Charged - i.Refunded }

// A Share is what one member's pods and volumes cost after refunds.
type Share struct {
	Member        string // empty when nobody knows
	Pods, Storage money.USD
}

// List lists the months of the scope's team, the newest first. The newest is
// not over yet.
func (s *Service) List(ctx context.Context, scope team.Scope) ([]wallet.Month, error) {
	return s.Wallet.Months(ctx, scope, s.Clock.Now())
}

// Make makes the statement of a month, written as 2027-03. The fault is
// ErrNoMonth.
func (s *Service) Make(ctx context.Context, scope team.Scope, month string) (*Statement, error) {
	start, err := time.Parse("2006-01", month)
	if err != nil {
		return nil, ErrNoMonth.Because(err)
	}
	now := s.Clock.Now()
	months, err := s.Wallet.Months(ctx, scope, now)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(months, func(m wallet.Month) bool { return m.Start.Equal(start) }) {
		return nil, ErrNoMonth
	}
	p, err := s.Wallet.Period(ctx, scope, start, start.AddDate(0, 1, 0), now)
	if err != nil {
		return nil, err
	}
	st := &Statement{TeamID: scope.TeamID(), AsOf: now, Month: wallet.Month{
		Start: p.Start, End: p.End, Opening: p.Opening, Totals: p.Totals, Closing: p.Closing,
	}}
	receipts, err := s.Receipts(ctx, references(p.Money))
	if err != nil {
		return nil, err
	}
	err = pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		if st.TeamName, err = s.Teams.NameTx(ctx, tx, st.TeamID); err != nil {
			return err
		}
		who, err := s.people(ctx, tx, st.TeamID, p)
		if err != nil {
			return err
		}
		st.Members = shares(p.Usage, who)
		st.Pods, st.Volumes = items(p.Usage, wallet.PodRuntime, who), items(p.Usage, wallet.VolumeStorage, who)
		st.Money = entries(p.Money, who, receipts)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("make the statement of team %s for %s: %w", st.TeamID, month, err)
	}
	return st, nil
}

// people knows whose the rows of a period are, by their addresses.
type people struct {
	creators map[uuid.UUID]uuid.UUID // of pods and volumes
	payers   map[string]uuid.UUID
	emails   map[uuid.UUID]string
}

func (p people) made(resource uuid.UUID) string { return p.emails[p.creators[resource]] }
func (p people) paid(payment string) string     { return p.emails[p.payers[payment]] }

// people reads who made what was used in a period, and who paid.
func (s *Service) people(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, p wallet.Period) (people, error) {
	var pods, volumes []uuid.UUID
	for _, u := range p.Usage {
		if u.Kind == wallet.PodRuntime {
			pods = append(pods, u.ResourceID)
		} else {
			volumes = append(volumes, u.ResourceID)
		}
	}
	who := people{}
	var err error
	if who.creators, err = s.Pods.CreatorsTx(ctx, tx, teamID, pods); err != nil {
		return people{}, err
	}
	more, err := s.Volumes.CreatorsTx(ctx, tx, volumes)
	if err != nil {
		return people{}, err
	}
	for volumeID, user := range more {
		who.creators[volumeID] = user
	}
	if who.payers, err = s.Payers(ctx, tx, references(p.Money)); err != nil {
		return people{}, err
	}
	var users []uuid.UUID
	for _, user := range who.creators {
		users = append(users, user)
	}
	for _, user := range who.payers {
		users = append(users, user)
	}
	who.emails, err = s.Emails(ctx, tx, users)
	return who, err
}

func references(rows []wallet.Transaction) []string {
	var all []string
	for _, r := range rows {
		if r.ResourceType == "" && r.ReferenceID != "" {
			all = append(all, r.ReferenceID)
		}
	}
	return all
}

func entries(rows []wallet.Transaction, who people, receipts map[string]string) []Entry {
	var entries []Entry
	for _, r := range rows {
		e := Entry{At: r.CreatedAt, Type: r.Type, Description: r.Description, Amount: r.Amount, Reference: r.ReferenceID}
		if r.ResourceType == "" {
			e.Member, e.Receipt = who.paid(r.ReferenceID), receipts[r.ReferenceID]
		} else {
			e.Member = who.made(r.ResourceID)
		}
		entries = append(entries, e)
	}
	return entries
}

// items sums up the usage of one kind by resource.
func items(usage []wallet.Usage, kind wallet.Kind, who people) []Item {
	at := map[uuid.UUID]*Item{}
	for _, u := range usage {
		if u.Kind != kind {
			continue
		}
		i := at[u.ResourceID]
		if i == nil {
			i = &Item{ID: u.ResourceID, Name: u.Description, Member: who.made(u.ResourceID)}
			at[u.ResourceID] = i
		}
		i.Ran += u.Ran
		i.Charged += u.Charged
		i.Refunded += u.Refunded
	}
	list := make([]Item, 0, len(at))
	for _, i := range at {
		list = append(list, *i)
	}
	slices.SortFunc(list, func(a, b Item) int {
		return cmp.Or(cmp.Compare(b.Net(), a.Net()), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	return list
}

// shares sums up usage by who made what was used.
func shares(usage []wallet.Usage, who people) []Share {
	at := map[string]*Share{}
	for _, u := range usage {
		member := who.made(u.ResourceID)
		if at[member] == nil {
			at[member] = &Share{Member: member}
		}
		if u.Kind == wallet.PodRuntime {
			at[member].Pods += u.Net()
		} else {
			at[member].Storage += u.Net()
		}
	}
	list := make([]Share, 0, len(at))
	for _, h := range at {
		list = append(list, *h)
	}
	slices.SortFunc(list, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Pods+b.Storage, a.Pods+a.Storage), cmp.Compare(a.Member, b.Member))
	})
	return list
}
