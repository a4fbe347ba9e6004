package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

func (s *server) registerWallet() {
	session(s, huma.Operation{
		OperationID: "get-balance", Method: http.MethodGet, Path: "/wallet/balance",
		Summary: "The wallet at this instant",
	}, s.balance)
	session(s, huma.Operation{
		OperationID: "list-transactions", Method: http.MethodGet, Path: "/wallet/transactions",
		Summary: "The wallet's history, newest first: one row per resource, kind and UTC day",
	}, s.transactions)
	session(s, huma.Operation{
		OperationID: "create-credit-checkout", Method: http.MethodPost, Path: "/wallet/credit/checkout",
		Summary: "Start a payment into the wallet", DefaultStatus: http.StatusOK,
	}, s.creditCheckout)
}

type balanceIn struct {
	Bearer
	InTeam
	Estimates bool `query:"include_estimates"`
}

func (s *server) balance(ctx context.Context, p team.Person, in balanceIn) (*body[apitype.Balance], error) {
	c, err := claim(p, in.TeamID, team.Read)
	if err != nil {
		return nil, err
	}
	b, scope, err := s.Wallet.BalanceClaimed(ctx, c, s.Clock.Now())
	if err != nil {
		return nil, err
	}
	out := apitype.Balance{
		Balance: apitype.Decimal(b.Balance.Decimal()), SpendingPerHour: apitype.Decimal(b.SpendingPerHour.Decimal()),
		LastUpdated: b.LastUpdated,
	}
	if in.Estimates {
		addEstimates(&out, b, s.Wallet.PlanLimit(scope.Plan()))
	}
	return &body[apitype.Balance]{Body: out}, nil
}

func addEstimates(out *apitype.Balance, b wallet.Balance, plan money.USD) {
	spent, limit, most := apitype.Decimal(b.MonthSpent.Decimal()), apitype.Decimal(b.MonthLimit.Decimal()), apitype.Decimal(plan.Decimal())
	out.MonthSpent, out.MonthLimit, out.PlanLimit = &spent, &limit, &most
	out.DepletesAt = b.DepletesAt
	if b.SpendingPerHour > 0 {
		micros := max(int64(b.Balance), 0) * 100 / int64(b.SpendingPerHour)
		hours := apitype.Decimal(fmt.Sprintf("%d.%02d", micros/100, micros%100))
		out.HoursRemaining = &hours
	}
}

type transactionsIn struct {
	Bearer
	InTeam
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"1000"`
	Cursor string `query:"cursor" doc:"From the Link header of the page before."`
}

type transactionsOut struct {
	Link string `header:"Link"`
	Body []apitype.Transaction
}

func (s *server) transactions(ctx context.Context, p team.Person, in transactionsIn) (*transactionsOut, error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Read)
	if err != nil {
		return nil, err
	}
	rows, next, err := s.Wallet.Transactions(ctx, scope, s.Clock.Now(), in.Limit, in.Cursor)
	if err != nil {
		return nil, err
	}
	out := &transactionsOut{Body: listOf(rows, transactionOf).Body}
	if err := s.addReceipts(ctx, scope, out.Body); err != nil {
		return nil, err
	}
	if next != "" {
		q := url.Values{"team_id": {in.TeamID}, "limit": {strconv.Itoa(in.Limit)}, "cursor": {next}}
		out.Link = "</api/wallet/transactions?" + q.Encode() + `>; rel="next"`
	}
	return out, nil
}

// addReceipts links the receipts of the team's payments.
func (s *server) addReceipts(ctx context.Context, scope team.Scope, rows []apitype.Transaction) error {
	var payments []string
	for _, row := range rows {
		if row.TransactionType == "credit" && row.ReferenceID != nil {
			payments = append(payments, *row.ReferenceID)
		}
	}
	if len(payments) == 0 {
		return nil
	}
	receipts, err := s.Payments.KnownReceipts(ctx, scope, payments)
	if err != nil {
		return err
	}
	for i, row := range rows {
		if row.TransactionType == "credit" && row.ReferenceID != nil {
			rows[i].ReceiptURL = text(receipts[*row.ReferenceID])
		}
	}
	return nil
}

func transactionOf(t wallet.Transaction) apitype.Transaction {
	out := apitype.Transaction{
		ID: t.ID.String(), CreatedAt: t.CreatedAt, TransactionType: t.Type, ResourceType: text(string(t.ResourceType)),
		Amount: apitype.Decimal(t.Amount.Decimal()), Description: t.Description, ReferenceID: text(t.ReferenceID),
	}
	if t.ResourceID != uuid.Nil {
		out.ResourceID = text(t.ResourceID.String())
	}
	return out
}

// text is s, or null when empty.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

type creditCheckoutIn struct {
	Bearer
	InTeam
	Once
	Body apitype.CreditCheckout
}

func (s *server) creditCheckout(ctx context.Context, p team.Person, in creditCheckoutIn) (*body[apitype.Checkout], error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Fund)
	if err != nil {
		return nil, err
	}
	wanted := payment.CreditRequest{Amount: string(in.Body.Amount), SaveCard: in.Body.SaveCard}
	once := in.request(s, p, "POST /wallet/credit/checkout", scope.TeamID().String())
	url, err := s.Payments.CheckoutCredit(ctx, scope, wanted, once)
	if err != nil {
		return nil, err
	}
	return &body[apitype.Checkout]{Body: apitype.Checkout{CheckoutURL: url}}, nil
}
