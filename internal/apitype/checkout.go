package apitype

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

// Portal says where cards and invoices are.
type Portal struct {
	PortalURL string `json:"portal_url"`
}
