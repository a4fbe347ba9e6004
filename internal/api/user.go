package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/team"
)

func (s *server) registerUser() {
	session(s, huma.Operation{
		OperationID: "get-user-info", Method: http.MethodGet, Path: "/user/info",
		Summary: "Who is signed in, and their teams",
	}, s.userInfo)
}

func (s *server) userInfo(ctx context.Context, p team.Person, _ Bearer) (*body[apitype.UserInfo], error) {
	s.Payments.Returned(ctx, p.ID)
	info, err := s.Teams.UserInfo(ctx, p)
	if err != nil {
		return nil, err
	}
	out := apitype.UserInfo{
		UserID: p.ID.String(), Email: p.Email,
		PersonalTeam: apitype.TeamRef{ID: info.Personal.ID.String(), Name: info.Personal.Name},
		Teams:        listOf(info.Teams, teamOf).Body,
		Operator:     s.Operator.Is(p),
	}
	return &body[apitype.UserInfo]{Body: out}, nil
}

func teamOf(t team.Team) apitype.Team {
	return apitype.Team{
		ID: t.ID.String(), Name: t.Name, Description: t.Description, Plan: string(t.Plan),
		IsPersonal: t.IsPersonal, MaxMembers: t.MaxMembers, Role: string(t.Role), CreatedAt: t.CreatedAt,
	}
}
