package payment

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/wallet"
)

// What may be wrong between the two books.
const (
	creditMissing = "credit_missing"  // our order was paid, no wallet has the money
	foreign       = "foreign"         // a payment that is none of ours
	unknownLine   = "unknown_line"    // a line of a kind that we do not know
	strange       = "strange_posting" // a transfer of ours that names no payment
	unpaid        = "unpaid_credit"   // a wallet has money that was never paid
	amountDiffers = "amount_differs"
	caseDiffers   = "case_differs" // a refund or dispute is not what the wallet says
	otherCurrency = "other_currency"
)

// A ClearingProblem is a difference between a processor's book and ours.
type ClearingProblem struct {
	Subject   string    `db:"subject"`    // the payment, refund, dispute or line, or all cases of a payment
	PaymentID string    `db:"payment_id"` // of the subject, if any
	Kind      string    `db:"kind"`
	Detail    string    `db:"detail"`        // amounts in USD
	Off       money.USD `db:"off_usd_micro"` // how much money it is about
	FoundAt   time.Time `db:"found_at"`      // business time

	// Of one that an operator acknowledged as it stands; it counts no more.
	AckedAt *time.Time `db:"acknowledged_at"`
	AckedBy string     `db:"acknowledged_by"`
	Note    string     `db:"note"`
}

// A claim is a top-up or a team's checkout, as our orders know it.
type claim struct {
	PaymentID string    `db:"payment_id"` // empty: not paid as far as we know
	Amount    money.USD `db:"amount_usd_micro"`
	Charged   money.USD `db:"charged_usd_micro"` // with the tax
}

// A position is what the two books say of one payment.
type position struct {
	paymentID string
	movements []Movement
	claim     *claim // nil: no top-up of ours names it
	ours      bool   // an order of ours is in its metadata
	plan      bool   // it pays a subscription of ours
	cases     []caseRow
	posted    map[string]wallet.Posted // by key
	before    time.Time                // the movements are known up to here
}

// problems compares the two books. It is level-triggered: what counts is how
// they stand, not which event made it so.
func (p *position) problems() []ClearingProblem {
	var found []ClearingProblem
	add := func(subject, kind string, off money.USD, detail string, args ...any) {
		found = append(found, ClearingProblem{
			Subject: subject, PaymentID: p.paymentID, Kind: kind, Off: max(off, -off), Detail: fmt.Sprintf(detail, args...),
		})
	}
	var paid, all money.USD
	for _, m := range p.movements {
		if m.Currency != "usd" {
			add(m.ID, otherCurrency, 0, "%s of the processor is in %q", m.Kind, m.Currency)
			continue
		}
		all += m.Amount
		if m.Kind == PaymentMoved {
			paid += m.Amount
		}
	}
	credit, credited := p.posted[paymentKey(p.paymentID)]
	switch {
	case p.plan && credited:
		add(p.paymentID, unpaid, credit.Amount, "%s is the payment of a plan, and is credited to team %s", p.paymentID, credit.TeamID)
	case p.plan:
	case !credited && all == 0: // nothing was paid, or it all went back
	case !credited && p.ours:
		add(p.paymentID, creditMissing, all, "the processor has %s of %s, and no wallet", all, p.paymentID)
	case !credited:
		add(p.paymentID, foreign, all, "the processor has %s of %s, which is no payment of ours", all, p.paymentID)
	case paid == 0 && credit.At.Before(p.before):
		add(p.paymentID, unpaid, credit.Amount, "team %s was credited %s for %s, of which the processor knows nothing",
			credit.TeamID, credit.Amount, p.paymentID)
	case paid == 0: // the payment is of a day that was not read yet
	case p.claim == nil:
		add(p.paymentID, strange, credit.Amount, "team %s was credited %s for %s without an order", credit.TeamID, credit.Amount, p.paymentID)
	case paid != p.claim.Charged:
		add(p.paymentID, amountDiffers, paid-p.claim.Charged, "the processor took %s of %s, the order says %s", paid, p.paymentID, p.claim.Charged)
	case credit.Amount != p.claim.Amount:
		add(p.paymentID, amountDiffers, credit.Amount-p.claim.Amount, "team %s was credited %s for %s, the order says %s",
			credit.TeamID, credit.Amount, p.paymentID, p.claim.Amount)
	}
	if credited && p.claim != nil {
		p.compareCases(add)
	}
	return found
}

// compareCases compares what each refund and dispute took with what left the
// wallet for it: as of the last day read, or, where it came to us since, now. One
// of several parts may be off by the cent that another one has; together they
// are not, but for those that came back or are of another day.
func (p *position) compareCases(add func(subject, kind string, off money.USD, detail string, args ...any)) {
	taken := p.taken()
	paid := paidRow{Amount: p.claim.Amount, Charged: p.claim.Charged}
	var amounts, debits, slack money.USD
	right := true
	for _, id := range slices.Sorted(maps.Keys(taken)) {
		c := taken[id]
		want := paid.share(c.amount)
		got, then := p.debited(c.key, time.Time{}), p.debited(c.key, p.before)
		if !c.fits(want, got) && c.fits(want, then) {
			got, slack = then, slack+money.Cent
		}
		if !c.fits(want, got) {
			right = false
			add(id, caseDiffers, want-got, "%s took %s of %s, of which %s were credited; %s left the wallet", id, c.amount, p.paymentID, want, got)
		}
		if _, back := p.posted[c.key+returnedKey]; back {
			slack += money.Cent
		}
		amounts, debits = amounts+c.amount, debits+got
	}
	if want := paid.share(amounts); right && (debits < want-slack || debits > want+slack) {
		add(p.paymentID+allCases, caseDiffers, want-debits, "refunds and disputes took %s of %s, of which %s were credited; %s left the wallet",
			amounts, p.paymentID, want, debits)
	}
}

// A takenCase is what a refund or dispute took, by the processor's book.
type takenCase struct {
	key    string // of its debit in our books
	amount money.USD
}

// fits says whether a debit is the share of the case, or one of its parts' that
// is rounded with others.
func (c takenCase) fits(want, debit money.USD) bool {
	return debit == want || c.amount > 0 && debit >= want-money.Cent && debit <= want+money.Cent
}

// taken sums up the cases of the payment, also those that only we know of.
func (p *position) taken() map[string]takenCase {
	taken := map[string]takenCase{}
	for _, c := range p.cases {
		taken[c.ID] = takenCase{key: c.key()}
	}
	for _, m := range p.movements {
		if m.CaseID == "" {
			continue
		}
		kind := Refund
		if m.Kind == DisputeMoved {
			kind = Dispute
		}
		taken[m.CaseID] = takenCase{key: caseKey(kind, m.CaseID), amount: taken[m.CaseID].amount - m.Amount}
	}
	return taken
}

// debited is what left a wallet for a case before an instant; the zero instant
// means until now.
func (p *position) debited(caseKey string, before time.Time) money.USD {
	var sum money.USD
	for key, sign := range map[string]money.USD{caseKey: 1, caseKey + returnedKey: -1} {
		if post, ok := p.posted[key]; ok && (before.IsZero() || post.At.Before(before)) {
			sum += sign * post.Amount
		}
	}
	return sum
}

// keys are those under which our books may have posted something of it.
func (p *position) keys() []string {
	keys := []string{paymentKey(p.paymentID)}
	for _, c := range p.taken() {
		keys = append(keys, c.key, c.key+returnedKey)
	}
	return keys
}

// The keys of the ledger.
func paymentKey(paymentID string) string { return paymentPrefix + paymentID }

func caseKey(kind CaseKind, caseID string) string {
	if kind == Dispute {
		return disputePrefix + caseID
	}
	return refundPrefix + caseID
}

const (
	paymentPrefix = "stripe:pi:"
	refundPrefix  = "stripe:re:"
	disputePrefix = "stripe:dp:"
	returnedKey   = ":returned" // after a case's key: it came back
	allCases      = ":cases"    // after a payment: what its refunds and disputes are together
	closingPrefix = "return:"   // of a deleted team's money, from wallet to wallet
)
