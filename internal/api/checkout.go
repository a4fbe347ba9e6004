package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/team"
)

func (s *server) registerCheckout() {
	session(s, huma.Operation{
		OperationID: "create-team-checkout", Method: http.MethodPost, Path: "/teams/checkout",
		Summary:       "Start the monthly subscription of a new team, which is there once it is paid",
		DefaultStatus: http.StatusOK,
	}, s.teamCheckout)
}

type teamCheckoutIn struct {
	Bearer
	Once
	Body apitype.TeamCheckout
}

func (s *server) teamCheckout(ctx context.Context, p team.Person, in teamCheckoutIn) (*body[apitype.Checkout], error) {
	url, err := s.Payments.CheckoutTeam(ctx, p, payment.TeamRequest{
		Name: in.Body.Name, Description: in.Body.Description, Members: string(in.Body.MemberCount),
	}, in.request(s, p, "POST /teams/checkout"))
	if err != nil {
		return nil, err
	}
	return &body[apitype.Checkout]{Body: apitype.Checkout{CheckoutURL: url}}, nil
}
