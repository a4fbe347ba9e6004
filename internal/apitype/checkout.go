package apitype

import "time"

// Whole is a JSON integer kept as its text, so that whoever knows its bounds
// can say what is wrong with it, however large it is.
type Whole string

// MarshalJSON writes the number's text; the empty Whole is null.
func (w Whole) MarshalJSON() ([]byte, error) {
	if w == "" {
		return []byte("null"), nil
	}
	return []byte(w), nil
}

// UnmarshalJSON keeps the value's text. null leaves it empty.
func (w *Whole) UnmarshalJSON(b []byte) error {
	*w = Whole(b)
	if string(b) == "null" {
		*w = ""
	}
	return nil
}

// TeamCheckout asks for a new team on the Pro plan.
type TeamCheckout struct {
	_ struct{} `additionalProperties:"true"`

	Name        string `json:"name" doc:"1 to 80 characters once trimmed."`
	Description string `json:"description,omitempty" doc:"At most 1000 characters."`
	MemberCount Whole  `json:"member_count" doc:"Seats from 1 to 100, the payer's own included."`
}

// Checkout says where to pay.
type Checkout struct {
	CheckoutURL string `json:"checkout_url"`
}

// ChangeSubscription asks for another number of seats.
type ChangeSubscription struct {
	_ struct{} `additionalProperties:"true"`

	MemberCount Whole `json:"member_count" doc:"Seats from 1 to 100, at least as many as are taken."`
}

// Subscription is what a team pays each month.
type Subscription struct {
	Status      string     `json:"status" enum:"trialing,active,past_due,unpaid" doc:"past_due and unpaid: the payment provider could not collect it."`
	MemberCount int        `json:"member_count" doc:"Seats that are paid for."`
	SeatsTaken  int        `json:"seats_taken" doc:"By members and pending invitations."`
	SeatPrice   Decimal    `json:"seat_price" doc:"USD per seat and month."`
	PeriodEndAt *time.Time `json:"period_end_at" doc:"The end of the month that is paid for; null until it is known."`
	Ends        bool       `json:"ends" doc:"It ends then; else it is paid anew."`
}

// Portal says where cards and invoices are.
type Portal struct {
	PortalURL string `json:"portal_url"`
}
