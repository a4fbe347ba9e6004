package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/team"
)

func (s *server) registerSubscription() {
	session(s, huma.Operation{
		OperationID: "change-subscription", Method: http.MethodPatch, Path: "/teams/{id}/subscription",
		Summary: "Pay for more or fewer seats; an admin does it",
	}, s.changeSubscription)
	session(s, huma.Operation{
		OperationID: "end-subscription", Method: http.MethodDelete, Path: "/teams/{id}/subscription",
		DefaultStatus: http.StatusNoContent, Summary: "Let the subscription end with the month that is paid for; an admin does it",
	}, s.endSubscription)
	session(s, huma.Operation{
		OperationID: "get-subscription", Method: http.MethodGet, Path: "/teams/{id}/subscription",
		Summary: "What the team pays each month, and whether it goes on",
	}, s.subscription)
	session(s, huma.Operation{
		OperationID: "resume-subscription", Method: http.MethodPost, Path: "/teams/{id}/subscription/resume",
		DefaultStatus: http.StatusNoContent, Summary: "Let a subscription go on that was to end; an admin does it",
	}, s.resumeSubscription)
	session(s, huma.Operation{
		OperationID: "open-billing-portal", Method: http.MethodPost, Path: "/teams/{id}/billing-portal", DefaultStatus: http.StatusOK,
		Summary: "The payment provider's page for the team's cards and invoices; an admin opens it",
	}, s.billingPortal)
}

type changeSubscriptionIn struct {
	Bearer
	OneTeam
	Body apitype.ChangeSubscription
}

func (s *server) changeSubscription(ctx context.Context, p team.Person, in changeSubscriptionIn) (*body[apitype.Team], error) {
	scope, err := s.scope(ctx, p, in.ID, team.Manage)
	if err != nil {
		return nil, err
	}
	t, err := s.Payments.SetSeats(ctx, scope, string(in.Body.MemberCount))
	if err != nil {
		return nil, err
	}
	return &body[apitype.Team]{Body: teamOf(t)}, nil
}

func (s *server) endSubscription(ctx context.Context, p team.Person, in teamIn) (*nothing, error) {
	scope, err := s.scope(ctx, p, in.ID, team.Manage)
	if err != nil {
		return nil, err
	}
	return nil, s.Payments.EndSubscription(ctx, scope)
}

func (s *server) subscription(ctx context.Context, p team.Person, in teamIn) (*body[apitype.Subscription], error) {
	scope, err := s.scope(ctx, p, in.ID, team.Read)
	if err != nil {
		return nil, err
	}
	plan, err := s.Payments.FindPlan(ctx, scope)
	if err != nil {
		return nil, err
	}
	return &body[apitype.Subscription]{Body: apitype.Subscription{
		Status: plan.Status, MemberCount: plan.Seats, SeatsTaken: plan.Taken,
		SeatPrice: apitype.Decimal(plan.SeatPrice.Decimal()), PeriodEndAt: plan.EndAt, Ends: plan.Ends,
	}}, nil
}

func (s *server) resumeSubscription(ctx context.Context, p team.Person, in teamIn) (*nothing, error) {
	scope, err := s.scope(ctx, p, in.ID, team.Manage)
	if err != nil {
		return nil, err
	}
	return nil, s.Payments.ResumeSubscription(ctx, scope)
}

func (s *server) billingPortal(ctx context.Context, p team.Person, in teamIn) (*body[apitype.Portal], error) {
	scope, err := s.scope(ctx, p, in.ID, team.Manage)
	if err != nil {
		return nil, err
	}
	url, err := s.Payments.Portal(ctx, scope)
	if err != nil {
		return nil, err
	}
	return &body[apitype.Portal]{Body: apitype.Portal{PortalURL: url}}, nil
}
