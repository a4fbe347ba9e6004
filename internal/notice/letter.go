package notice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

// A LetterJob asks for the letter of a notice to one person.
type LetterJob struct {
	NoticeID uuid.UUID `json:"notice_id"`
	UserID   uuid.UUID `json:"user_id"`
	Named    bool      `json:"named,omitempty"` // it is theirs whatever their role
}

// Kind names the job.
func (LetterJob) Kind() string { return "notice.letter" }

// SendLetter sends a LetterJob's letter, unless the team has ended, or the
// person is no admin of it any more and was not named. It may run twice: the
// letter then has the same key. The fault mail.ErrUnavailable means that it
// should run again.
func (s *Service) SendLetter(ctx context.Context, j LetterJob) error {
	var n Notice
	var name, to string
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) (err error) {
		if n, err = findNotice(ctx, tx, j.NoticeID); err != nil {
			return err
		}
		if name, err = s.Teams.NameTx(ctx, tx, n.TeamID); err != nil {
			return err
		}
		if !j.Named {
			admins, err := s.Teams.AdminsTx(ctx, tx, n.TeamID)
			if err != nil || !slices.Contains(admins, j.UserID) {
				return err
			}
		}
		to, err = s.Teams.EmailTx(ctx, tx, j.UserID)
		return err
	})
	if errors.Is(err, team.ErrNotFound) || errors.Is(err, ErrNotFound) || err == nil && to == "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read notice %s: %w", j.NoticeID, err)
	}
	write := letters[n.Kind]
	if write == nil {
		return nil
	}
	l := write(name, n.Facts)
	l.Action.URL = s.PublicURL + "/billing?team_id=" + n.TeamID.String()
	return mail.Deliver(ctx, s.Mail, s.Logger, l, to, l.Title, "notice-"+n.ID.String()+"-"+j.UserID.String())
}

// letters writes the letter of each kind that has one, but for its address.
var letters = map[Kind]func(name string, f Facts) mail.Layout{
	RunwayDay:     runwayLetter("24 hours"),
	RunwayHour:    runwayLetter("1 hour"),
	RunwayQuarter: runwayLetter("15 minutes"),
	BalanceEmpty: func(name string, f Facts) mail.Layout {
		return funds("The balance of "+cut(name)+" is used up",
			"The wallet of the team "+plain(name)+" reached $0.00. Its pods are switched off: each syncs its volume a last time, and nothing is charged for that.",
			volumes(f.Volumes)+" kept. Storage goes on to be charged for 7 days, until "+day(f.EndsAt)+", and makes the balance negative. Then volumes are frozen: kept without charge, but not usable.",
			"Without a payment, volumes move to the trash 30 days after today and are deleted for good after 37. A payment that brings the balance to $0.00 or more ends all of this.")
	},
	StorageFrozen: func(name string, f Facts) mail.Layout {
		return funds("The storage of "+cut(name)+" is frozen",
			"The balance of the team "+plain(name)+" is "+usd(f.Balance)+", 7 days after it was used up. "+volumes(f.Volumes)+" frozen: kept, no longer charged, and not usable by pods.",
			"Add at least "+usd(owed(f.Balance))+" to use them again at once. Without a payment they move to the trash on "+day(f.EndsAt)+".")
	},
	StorageSoon: func(name string, f Facts) mail.Layout {
		return funds("The volumes of "+cut(name)+" move to the trash in 7 days",
			"The storage of the team "+plain(name)+" was not paid for 23 days. Its balance is "+usd(f.Balance)+".",
			volumes(f.Volumes)+" about to move to the trash on "+day(f.EndsAt)+", and will be deleted for good 7 days later.",
			"Add at least "+usd(owed(f.Balance))+" to keep them.")
	},
	StorageLast: func(name string, f Facts) mail.Layout {
		return funds("The volumes of "+cut(name)+" move to the trash tomorrow",
			"The storage of the team "+plain(name)+" was not paid for 29 days. Its balance is "+usd(f.Balance)+".",
			volumes(f.Volumes)+" about to move to the trash on "+day(f.EndsAt)+". Seven days after that the data is deleted for good: nobody can bring it back. This is the last letter about it.",
			"Add at least "+usd(owed(f.Balance))+" to keep them. Until the data is deleted, a payment takes the volumes out of the trash again.")
	},
	PlanUnpaid: func(name string, f Facts) mail.Layout {
		return plan("The subscription of "+cut(name)+" could not be paid",
			"The monthly payment for the team "+plain(name)+" failed. Nothing changes until "+at(f.EndsAt)+".", f)
	},
	PlanEnds: func(name string, f Facts) mail.Layout {
		return plan("The Pro plan of "+cut(name)+" ends in 72 hours",
			"The subscription of the team "+plain(name)+" is still not paid. Its Pro plan ends on "+at(f.EndsAt)+".", f)
	},
	PlanEnded: func(name string, f Facts) mail.Layout {
		prices := "No pod of the team runs now. Pods will cost the list price: Pro's discount of 16% ends."
		if f.Running > 0 {
			prices = running(f.Running) + " " + rate(f.Spending) + " per hour now. From then on it is the list price, " + rate(f.List) + " per hour: Pro's discount of 16% ends."
		}
		return mail.Layout{Title: "The Pro plan of " + cut(name) + " ends on " + day(f.EndsAt), Paragraphs: []string{
			"The subscription of the team " + plain(name) + " was ended. It is paid until " + at(f.EndsAt) + "; then the team is on the Hobby plan.",
			prices,
			"Hobby's limits on GPUs and on the month's spending hold from then on, pending invitations are cancelled, and everybody but one admin becomes a viewer. Volumes are kept and stay usable.",
			"Until then an admin can keep Pro on the billing page. Nothing else has to be done.",
		}, Action: &mail.Action{Label: "Open billing"}}
	},
	TopUpDeclined: func(name string, f Facts) mail.Layout {
		return topUp("An automatic top-up of "+cut(name)+" was declined",
			f.Card+" was declined for the automatic top-up of "+usd(f.Amount)+" of the team "+plain(name)+". Nothing was charged.",
			"It is tried again on "+at(f.EndsAt)+", if the balance is still low then. Until a payment arrives, pods are switched off when the balance reaches $0.00.")
	},
	TopUpOff: func(name string, f Facts) mail.Layout {
		return topUp("Automatic top-up of "+cut(name)+" is off",
			f.Card+" was declined for the automatic top-up of "+usd(f.Amount)+" of the team "+plain(name)+" three times. Nothing was charged, and it will not be tried again: automatic top-up is off.",
			"Pods are switched off when the balance reaches $0.00. Add funds, or save another card and turn automatic top-up on again.")
	},
	TopUpAuthentication: func(name string, f Facts) mail.Layout {
		return topUp("Automatic top-up of "+cut(name)+" needs you",
			"The bank of "+card(f.Card)+" wants its owner to confirm the automatic top-up of "+usd(f.Amount)+" of the team "+plain(name)+". Nothing was charged, and automatic top-up is off.",
			"Add funds yourself, which lets the bank ask you, and turn automatic top-up on again if you like. Pods are switched off when the balance reaches $0.00.")
	},
	TopUpCapped: func(name string, f Facts) mail.Layout {
		return topUp("Automatic top-up of "+cut(name)+" reached its monthly cap",
			"The balance of the team "+plain(name)+" is low, but another automatic top-up of "+usd(f.Amount)+" would exceed the cap of "+usd(f.Limit)+" for this month: "+usd(f.Spent)+" of it are used.",
			"The next one is possible from "+at(f.EndsAt)+" on. Until then, add funds yourself or raise the cap. Pods are switched off when the balance reaches $0.00.")
	},
	TopUpCardRemoved: func(name string, f Facts) mail.Layout {
		return topUp("Automatic top-up of "+cut(name)+" is off: the card is gone",
			f.Card+" of the team "+plain(name)+" was removed at the payment provider or by who saved it, so automatic top-up is off.",
			"Save a card again to turn it on. Pods are switched off when the balance reaches $0.00.")
	},
	TopUpPayerLeft: func(name string, f Facts) mail.Layout {
		return topUp("Who saved the card of "+cut(name)+" has left",
			f.Card+", which pays the automatic top-ups of the team "+plain(name)+", was saved by somebody who is no longer a member. It goes on to pay "+usd(f.Amount)+" when the balance is low, up to "+usd(f.Limit)+" a month.",
			"If the card is not the team's to use, remove it on the billing page, and save another one.")
	},
	TopUpPayerDemoted: func(name string, f Facts) mail.Layout {
		pays := "An admin may let it pay automatic top-ups."
		if f.Amount > 0 {
			pays = "It goes on to pay automatic top-ups: " + usd(f.Amount) + " when the balance is low, up to " + usd(f.Limit) + " a month."
		}
		return topUp("Your card stays with "+cut(name),
			"You are no longer an admin of the team "+plain(name)+", which keeps the card that you saved, "+card(f.Card)+". "+pays,
			"If you do not want that, remove the card on the billing page: automatic top-up is off then, and the team's admins are told.")
	},
	Spend80: spendLetter("80"),
	Spend95: spendLetter("95"),
}

func runwayLetter(left string) func(name string, f Facts) mail.Layout {
	return func(name string, f Facts) mail.Layout {
		then := "At that instant all its pods are switched off. Their volumes are synced and kept; data outside /workspace is deleted."
		if !f.Pods {
			then = "No pod runs: this is for storage. It goes on for 7 days after that instant and makes the balance negative; then volumes are frozen."
		}
		return funds("Less than "+left+" of balance left for "+cut(name),
			"The team "+plain(name)+" has "+usd(f.Balance)+" left and spends "+rate(f.Spending)+" per hour. At this pace the balance is used up on "+at(f.EndsAt)+".",
			then)
	}
}

func spendLetter(percent string) func(name string, f Facts) mail.Layout {
	return func(name string, f Facts) mail.Layout {
		l := funds(percent+"% of this month's spend limit of "+cut(name)+" is used",
			"The team "+plain(name)+" spent "+usd(f.Spent)+" of its limit of "+usd(f.Limit)+" for this month, and spends "+rate(f.Spending)+" per hour.",
			"At 100% no new pods can be created, and running pods are switched off 60 minutes later. Storage goes on. A new month, or a higher limit, ends this.")
		l.Action.Label = "See the spending"
		return l
	}
}

// funds is a letter that asks for a payment.
func funds(title string, paragraphs ...string) mail.Layout {
	return mail.Layout{Title: title, Paragraphs: paragraphs, Action: &mail.Action{Label: "Add funds"}}
}

// topUp is a letter about automatic top-ups.
func topUp(title string, paragraphs ...string) mail.Layout {
	return mail.Layout{Title: title, Paragraphs: paragraphs, Action: &mail.Action{Label: "Open billing"}}
}

// card is a card's name within a sentence.
func card(label string) string {
	if label == "The card" {
		return "the card"
	}
	return label
}

// plan is a letter about a subscription that is not paid.
func plan(title, what string, f Facts) mail.Layout {
	return mail.Layout{Title: title, Paragraphs: []string{
		what,
		"From then on the team is on the Hobby plan: running and new pods cost the list price, Hobby's limits on GPUs and on the month's spending hold, pending invitations are cancelled, and everybody but one admin becomes a viewer. Volumes are kept and stay usable.",
		"A payment before then keeps everything as it is. A later one brings the plan and everybody's role back.",
	}, Action: &mail.Action{Label: "Open billing"}}
}

// usd writes an amount in dollars and cents, rounded down as the page does.
func usd(amount money.USD) string {
	sign := ""
	if amount < 0 {
		sign, amount = "-", -amount
	}
	return fmt.Sprintf("%s$%d.%02d", sign, amount/money.Dollar, amount%money.Dollar/money.Cent)
}

// owed is what a payment must be at least to end a negative balance: whole
// cents, rounded up.
func owed(balance money.USD) money.USD {
	return max(money.Cent, (-balance+money.Cent-1)/money.Cent*money.Cent)
}

// rate writes a rate in dollars, to the tenth of a cent as the page does.
func rate(r money.Rate) string {
	return fmt.Sprintf("$%d.%03d", int64(r)/1_000_000, int64(r)%1_000_000/1000)
}

func at(t *time.Time) string {
	if t == nil {
		return "an unknown day"
	}
	return t.UTC().Format("2 January 2006 at 15:04") + " UTC"
}

func day(t *time.Time) string {
	if t == nil {
		return "an unknown day"
	}
	return t.UTC().Format("2 January 2006")
}

func running(n int) string {
	if n == 1 {
		return "Its pod costs"
	}
	return fmt.Sprintf("Its %d pods cost", n)
}

func volumes(n int) string {
	switch n {
	case 0:
		return "Volumes are"
	case 1:
		return "Its volume is"
	}
	return fmt.Sprintf("Its %d volumes are", n)
}

// plain is a team's name behind the words "the team".
func plain(name string) string { return mail.Harmless(name, "with a web address for a name") }

// cut is a team's name in a subject.
func cut(name string) string { return mail.Cut(mail.Harmless(name, "a team"), 40) }
