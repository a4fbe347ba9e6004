package api

import (
	"context"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/team"
)

func (s *server) registerOffers() {
	type offers map[string][]apitype.Offer
	handle(s, huma.Operation{
		OperationID: "list-resources", Method: http.MethodGet, Path: "/resources",
		Summary:     "What can be rented now, by GPU type",
		Description: "With a session and a team, price is that of the team's plan; without, the list price.",
		Responses: map[string]*huma.Response{"200": {
			Description: "Offers by GPU type.",
			Content: map[string]*huma.MediaType{"application/json": {
				Schema: s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[offers](), true, "Offers"),
			}},
		}},
	}, s.listOffers)
}

type offersIn struct {
	Bearer
	TeamID      string `query:"team_id" doc:"Team id; read only with a session."`
	IfNoneMatch string `header:"If-None-Match"`
}

type offersOut struct {
	Status      int
	ContentType string `header:"Content-Type"`
	ETag        string `header:"ETag"`
	Body        []byte
}

func (s *server) listOffers(ctx context.Context, in *offersIn) (*offersOut, error) {
	plan := team.Hobby
	if t := token(in.Authorization); t != "" {
		p, err := s.Authenticate(ctx, t)
		if err != nil {
			return nil, err
		}
		if in.TeamID != "" {
			scope, err := s.scope(ctx, p, in.TeamID, team.Read)
			if err != nil {
				return nil, err
			}
			plan = scope.Plan()
		}
	}
	text, etag, err := s.Offers.ResourcesJSON(ctx, plan)
	if err != nil {
		return nil, err
	}
	if etag != "" && in.IfNoneMatch == etag {
		return &offersOut{Status: http.StatusNotModified, ETag: etag}, nil
	}
	return &offersOut{Status: http.StatusOK, ContentType: "application/json", ETag: etag, Body: text}, nil
}

// retryHeader tells a client when to come again.
func retryHeader(p *Problem) http.Header {
	return http.Header{"Retry-After": {strconv.Itoa(p.retryAfter)}}
}
