package apitype

// Statement is one UTC calendar month of a wallet. Opening balance + credits +
// refunds - charges - debits = closing balance.
type Statement struct {
	Month          string  `json:"month" doc:"As 2027-03."`
	Final          bool    `json:"final" doc:"The month is over: its statement does not change any more."`
	OpeningBalance Decimal `json:"opening_balance" doc:"USD."`
	Credits        Decimal `json:"credits" doc:"USD, money in."`
	Charges        Decimal `json:"charges" doc:"USD, usage."`
	Refunds        Decimal `json:"refunds" doc:"USD, usage given back."`
	Debits         Decimal `json:"debits" doc:"USD, other money out."`
	ClosingBalance Decimal `json:"closing_balance" doc:"USD."`
}

// Spend is one sum of usage: charges less refunds.
type Spend struct {
	Key     *string `json:"key" doc:"The id of the pod, volume or member, or the day; null for usage whose member nobody knows."`
	Name    string  `json:"name" doc:"For people: what the pod or volume is called, the member's address, the day."`
	Pods    Decimal `json:"pods" doc:"USD."`
	Storage Decimal `json:"storage" doc:"USD."`
	Total   Decimal `json:"total" doc:"USD."`
}
