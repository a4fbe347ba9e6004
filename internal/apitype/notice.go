package apitype

import "time"

// Notice is something a team is told about its money. Numbers that a kind does
// not need are 0.
type Notice struct {
	ID              string     `json:"id" doc:"Notice id, a UUID."`
	TeamID          string     `json:"team_id"`
	Kind            string     `json:"kind" enum:"runway_24h,runway_1h,runway_15m,balance_empty,storage_frozen,storage_soon,storage_last,storage_trashed,spend_80,spend_95,spend_limit,plan_unpaid,plan_ends,topup_declined,topup_off,topup_authentication,topup_capped,topup_card_removed"`
	CreatedAt       time.Time  `json:"created_at"`
	EndsAt          *time.Time `json:"ends_at" doc:"When what it warns of happens; of an automatic top-up, when it is tried again."`
	Balance         Decimal    `json:"balance" doc:"USD, at created_at."`
	SpendingPerHour Decimal    `json:"spending_per_hour" doc:"USD, at created_at."`
	MonthSpent      Decimal    `json:"month_spent" doc:"USD, at created_at; of topup_capped, what was topped up."`
	MonthLimit      Decimal    `json:"month_limit" doc:"USD; of topup_capped, its cap."`
	TopUpAmount     *Decimal   `json:"topup_amount,omitempty" doc:"USD of one automatic top-up."`
	Card            string     `json:"card,omitempty" doc:"The card that pays automatic top-ups: Visa ending in 4242."`
	Volumes         int        `json:"volumes" doc:"How many volumes hold data."`
}
