package apitype

import "time"

// Balance is a team's wallet at this instant.
type Balance struct {
	Balance         Decimal    `json:"balance" doc:"USD, exact to the microsecond it was read."`
	SpendingPerHour Decimal    `json:"spending_per_hour" doc:"USD."`
	LastUpdated     time.Time  `json:"last_updated"`
	HoursRemaining  *Decimal   `json:"hours_remaining,omitempty" doc:"At the present spending; null without any."`
	DepletesAt      *time.Time `json:"depletes_at,omitempty"`
	MonthSpent      *Decimal   `json:"month_spent,omitempty" doc:"USD of this UTC month, charges less refunds."`
	MonthLimit      *Decimal   `json:"month_limit,omitempty" doc:"USD; 0: none."`
	PlanLimit       *Decimal   `json:"plan_limit,omitempty" doc:"USD: the most that month_limit can be; 0: none."`
}

// Transaction is one line of the wallet's history.
type Transaction struct {
	ID              string    `json:"id"`
	CreatedAt       time.Time `json:"created_at"`
	TransactionType string    `json:"transaction_type" enum:"credit,charge,refund,debit"`
	ResourceType    *string   `json:"resource_type" doc:"pod-runtime or volume-storage; null for money in and out."`
	ResourceID      *string   `json:"resource_id"`
	Amount          Decimal   `json:"amount" doc:"USD, signed."`
	Description     string    `json:"description"`
	ReferenceID     *string   `json:"reference_id"`
	ReceiptURL      *string   `json:"receipt_url,omitempty" doc:"Of a payment by card: its receipt, while that address lasts. Older ones are in the month's statement."`
}

// CreditCheckout asks to add money.
type CreditCheckout struct {
	_ struct{} `additionalProperties:"true"`

	Amount   Decimal `json:"amount" doc:"USD, 0.01 to 10000, at most 2 decimals."`
	SaveCard bool    `json:"save_card,omitempty" doc:"The card is saved for automatic top-ups, which an admin agrees to separately. Admins only."`
}
