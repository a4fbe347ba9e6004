package devdoor

import (
	"encoding/json"
	"net/http"

	"homeport.dev/homeport/internal/payment/testpay"
)

// A paymentDeed is what a payer's bank does. One member is given.
type paymentDeed struct {
	Refund  string         `json:"refund"` // a payment, pi_…
	Amount  json.Number    `json:"amount"` // of the refund; absent: all that is left
	Dispute string         `json:"dispute"`
	Win     string         `json:"win"`     // a dispute, dp_…
	Lose    string         `json:"lose"`    // a dispute
	Fail    string         `json:"fail"`    // a refund, re_…
	Reissue string         `json:"reissue"` // a saved card, pm_…
	Chaos   *testpay.Chaos `json:"chaos"`
}

// readPayments lists the paid top-ups with their refunds and disputes.
func (o *doors) readPayments(w http.ResponseWriter, r *http.Request) {
	ledger, err := o.Checkout.Ledger(r.Context())
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	o.answer(w, ledger)
}

// actPayment plays the payer's bank, or sets how badly events are delivered.
func (o *doors) actPayment(w http.ResponseWriter, r *http.Request) {
	var in paymentDeed
	if err := decode(w, r, &in); err != nil {
		o.refuse(w, r, err)
		return
	}
	ctx := r.Context()
	var made testpay.Case
	var err error
	switch {
	case in.Chaos != nil:
		if err := o.Checkout.SetChaos(ctx, *in.Chaos); err != nil {
			o.refuse(w, r, err)
			return
		}
		o.readPayments(w, r)
		return
	case in.Reissue != "":
		card, err := o.Checkout.Reissue(ctx, in.Reissue)
		if err != nil {
			o.refuse(w, r, err)
			return
		}
		o.answer(w, card)
		return
	case in.Refund != "":
		made, err = o.Checkout.Refund(ctx, in.Refund, in.Amount.String())
	case in.Dispute != "":
		made, err = o.Checkout.Dispute(ctx, in.Dispute)
	case in.Win != "":
		made, err = o.Checkout.Settle(ctx, in.Win, "won")
	case in.Lose != "":
		made, err = o.Checkout.Settle(ctx, in.Lose, "lost")
	case in.Fail != "":
		made, err = o.Checkout.Settle(ctx, in.Fail, "failed")
	default:
		err = ErrBody.With("Give one of refund, dispute, win, lose, fail, reissue and chaos.")
	}
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	o.answer(w, made)
}
