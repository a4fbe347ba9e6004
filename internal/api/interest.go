package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/interest"
	"homeport.dev/homeport/internal/team"
)

func (s *server) registerInterest() {
	session(s, huma.Operation{
		OperationID: "get-product-interest", Method: http.MethodGet, Path: "/product-interest",
		Summary: "Whether the team waits for a product that is not there yet",
	}, s.getInterest)
	session(s, huma.Operation{
		OperationID: "set-product-interest", Method: http.MethodPost, Path: "/product-interest", DefaultStatus: http.StatusCreated,
		Summary: "Say that the team waits for a product, or withdraw it",
	}, s.setInterest)
}

type interestIn struct {
	Bearer
	InTeam
	Product string `query:"product" required:"true" enum:"batch-inference,multi-node-clusters"`
}

func (s *server) getInterest(ctx context.Context, p team.Person, in interestIn) (*body[apitype.Interest], error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Read)
	if err != nil {
		return nil, err
	}
	waits, err := s.Interest.Find(ctx, scope, interest.Product(in.Product))
	if err != nil {
		return nil, err
	}
	return interestOf(scope, in.Product, waits), nil
}

func interestOf(scope team.Scope, product string, waits bool) *body[apitype.Interest] {
	return &body[apitype.Interest]{Body: apitype.Interest{
		TeamID: scope.TeamID().String(), Product: product, Interested: waits,
	}}
}

type setInterestIn struct {
	Bearer
	Once
	Body apitype.SetInterest
}

func (s *server) setInterest(ctx context.Context, p team.Person, in setInterestIn) (*body[apitype.Interest], error) {
	scope, err := s.scope(ctx, p, in.Body.TeamID, team.Read)
	if err != nil {
		return nil, err
	}
	once := in.request(s, p, "POST /product-interest")
	waits, err := s.Interest.Set(ctx, scope, interest.Product(in.Body.Product), in.Body.Interested, once)
	if err != nil {
		return nil, err
	}
	return interestOf(scope, in.Body.Product, waits), nil
}
