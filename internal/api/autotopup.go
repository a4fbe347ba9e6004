package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/team"
)

func (s *server) registerAutoTopUp() {
	session(s, huma.Operation{
		OperationID: "get-auto-topup", Method: http.MethodGet, Path: "/wallet/auto-topup",
		Summary: "What the team agreed to have topped up without being asked; an admin sees it",
	}, s.autoTopUp)
	session(s, huma.Operation{
		OperationID: "set-auto-topup", Method: http.MethodPut, Path: "/wallet/auto-topup",
		Summary: "Agree on automatic top-ups, or turn them off; an admin does it",
	}, s.setAutoTopUp)
	session(s, huma.Operation{
		OperationID: "get-card", Method: http.MethodGet, Path: "/wallet/card",
		Summary: "The team's saved card; an admin and who saved it see it",
	}, s.card)
	session(s, huma.Operation{
		OperationID: "get-my-card", Method: http.MethodGet, Path: "/wallet/my-card",
		Summary: "The team's saved card, if the asker saved it: they see and remove it whatever their role is now",
	}, s.myCard)
	session(s, huma.Operation{
		OperationID: "save-card", Method: http.MethodPost, Path: "/wallet/card", DefaultStatus: http.StatusOK,
		Summary: "Start a checkout that saves a card for automatic top-ups and charges nothing; an admin does it. It replaces the card before, and returns to /billing?team_id=…&card=saved or cancel",
	}, s.saveCard)
	session(s, huma.Operation{
		OperationID: "remove-card", Method: http.MethodDelete, Path: "/wallet/card", DefaultStatus: http.StatusNoContent,
		Summary: "Forget the saved card, which turns automatic top-ups off; an admin or who saved it does it",
	}, s.removeCard)
}

type ofTeamIn struct {
	Bearer
	InTeam
}

func (s *server) autoTopUp(ctx context.Context, p team.Person, in ofTeamIn) (*body[apitype.AutoTopUp], error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Manage)
	if err != nil {
		return nil, err
	}
	a, err := s.Payments.FindAutoTopUp(ctx, scope)
	if err != nil {
		return nil, err
	}
	return &body[apitype.AutoTopUp]{Body: autoTopUpOf(a)}, nil
}

type setAutoTopUpIn struct {
	Bearer
	InTeam
	Body apitype.SetAutoTopUp
}

func (s *server) setAutoTopUp(ctx context.Context, p team.Person, in setAutoTopUpIn) (*body[apitype.AutoTopUp], error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Manage)
	if err != nil {
		return nil, err
	}
	a, err := s.Payments.SetAutoTopUp(ctx, scope, payment.AutoChange{
		Enabled: in.Body.Enabled, Threshold: string(in.Body.Threshold), Amount: string(in.Body.Amount), MonthCap: string(in.Body.MonthlyCap),
	})
	if err != nil {
		return nil, err
	}
	return &body[apitype.AutoTopUp]{Body: autoTopUpOf(a)}, nil
}

func autoTopUpOf(a payment.AutoTopUp) apitype.AutoTopUp {
	out := apitype.AutoTopUp{
		Enabled: a.State != payment.AutoOff, State: string(a.State), Threshold: apitype.Decimal(a.Threshold.Decimal()),
		Amount: apitype.Decimal(a.Amount.Decimal()), MonthlyCap: apitype.Decimal(a.MonthCap.Decimal()),
		MonthCharged: apitype.Decimal(a.MonthCharged.Decimal()), MinAmount: apitype.Decimal(a.LeastAmount.Decimal()),
		OffReason: text(a.OffReason), NextTryAt: a.NextAt,
	}
	if a.Card != nil {
		card := cardOf(*a.Card)
		out.Card = &card
	}
	return out
}

func cardOf(c payment.SavedCard) apitype.Card {
	return apitype.Card{Brand: c.Brand, Last4: c.Last4, ExpMonth: c.ExpMonth, ExpYear: c.ExpYear, SavedAt: c.SavedAt}
}

func (s *server) card(ctx context.Context, p team.Person, in ofTeamIn) (*body[apitype.Card], error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Read)
	if err != nil {
		return nil, err
	}
	c, err := s.Payments.FindCard(ctx, scope)
	if err != nil {
		return nil, err
	}
	return &body[apitype.Card]{Body: cardOf(c)}, nil
}

func (s *server) myCard(ctx context.Context, p team.Person, in ofTeamIn) (*body[apitype.MyCard], error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Read)
	if err != nil {
		return nil, err
	}
	c, err := s.Payments.FindMyCard(ctx, scope)
	if err != nil || c == nil {
		return &body[apitype.MyCard]{}, err
	}
	card := cardOf(*c)
	return &body[apitype.MyCard]{Body: apitype.MyCard{Card: &card}}, nil
}

type saveCardIn struct {
	Bearer
	InTeam
	Key string `header:"Idempotency-Key" maxLength:"255" doc:"Honoured for 24 hours: the same key gets the first answer."`
}

func (s *server) saveCard(ctx context.Context, p team.Person, in saveCardIn) (*body[apitype.Checkout], error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Manage)
	if err != nil {
		return nil, err
	}
	url, err := s.Payments.CheckoutCard(ctx, scope, Once{Key: in.Key}.request(s, p, "POST /wallet/card", scope.TeamID().String()))
	if err != nil {
		return nil, err
	}
	return &body[apitype.Checkout]{Body: apitype.Checkout{CheckoutURL: url}}, nil
}

func (s *server) removeCard(ctx context.Context, p team.Person, in ofTeamIn) (*nothing, error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Read)
	if err != nil {
		return nil, err
	}
	return nil, s.Payments.RemoveCard(ctx, scope)
}
