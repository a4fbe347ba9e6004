package devdoor

import (
	"net/http"

	"homeport.dev/homeport/internal/payment/testpay"
)

func (o *doors) checkoutPage(w http.ResponseWriter, r *http.Request) {
	session, err := o.Checkout.Find(r.Context(), r.PathValue("id"))
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	declined := r.URL.Query().Has("declined")
	if err := o.Checkout.Page(w, session, declined); err != nil {
		o.Logger.DebugContext(r.Context(), "client went away", "err", err)
	}
}

func (o *doors) checkoutReceipt(w http.ResponseWriter, r *http.Request) {
	if err := o.Checkout.Receipt(r.Context(), w, r.PathValue("id")); err != nil {
		o.refuse(w, r, err)
	}
}

// checkoutAct is the payer's decision; the answer sends them on as Stripe would.
func (o *doors) checkoutAct(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if err := r.ParseForm(); err != nil {
		o.refuse(w, r, ErrBody.Because(err))
		return
	}
	next, err := o.Checkout.Act(r.Context(), r.PathValue("id"), testpay.Outcome(r.PostForm.Get("outcome")))
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // the address is the checkout's, not the form's
}
