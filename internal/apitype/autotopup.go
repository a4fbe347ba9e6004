package apitype

import "time"

// AutoTopUp is what a team agreed to have paid by its saved card without being
// asked, and how that stands. Before it agreed on anything, the amounts are a
// proposal.
type AutoTopUp struct {
	Enabled      bool       `json:"enabled"`
	State        string     `json:"state" enum:"off,on,charging,retrying,capped,held" doc:"on waits for the balance to fall below the threshold; charging: a payment is under way; retrying: the card was declined and is tried again at next_try_at; capped: the month's cap is reached until next_try_at; held: a payment of the team is disputed."`
	Threshold    Decimal    `json:"threshold" doc:"USD. A balance below it is topped up."`
	Amount       Decimal    `json:"amount" doc:"USD of one top-up."`
	MonthlyCap   Decimal    `json:"monthly_cap" doc:"USD in a UTC month."`
	MonthCharged Decimal    `json:"month_charged" doc:"USD of this UTC month that were paid automatically, or still may be."`
	MinAmount    Decimal    `json:"min_amount" doc:"USD, the least that amount may be."`
	OffReason    *string    `json:"off_reason" enum:"declined,authentication_required,card_removed" doc:"Why it is off although nobody turned it off; null otherwise."`
	NextTryAt    *time.Time `json:"next_try_at" doc:"When the balance is looked at next, where that is known."`
	Card         *Card      `json:"card,omitempty" doc:"The card that pays; absent: none is saved."`
}

// SetAutoTopUp agrees on automatic top-ups, or turns them off.
type SetAutoTopUp struct {
	_ struct{} `additionalProperties:"true"`

	Enabled    bool    `json:"enabled" doc:"Turning it on needs a saved card."`
	Threshold  Decimal `json:"threshold" doc:"USD, 1 to 10000, at most 2 decimals."`
	Amount     Decimal `json:"amount" doc:"USD, min_amount to 10000, at most 2 decimals."`
	MonthlyCap Decimal `json:"monthly_cap" doc:"USD, amount to 100000, at most 2 decimals."`
}

// Card is what may be shown of a saved card.
type Card struct {
	Brand    string    `json:"brand" doc:"visa, mastercard, amex, …"`
	Last4    string    `json:"last4"`
	ExpMonth int       `json:"exp_month"`
	ExpYear  int       `json:"exp_year"`
	SavedAt  time.Time `json:"saved_at"`
}

// MyCard is a team's saved card for who saved it.
type MyCard struct {
	Card *Card `json:"card,omitempty" doc:"Absent: the team has none, or somebody else saved it."`
}
