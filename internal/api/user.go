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
	session(s, huma.Operation{
		OperationID: "list-members", Method: http.MethodGet, Path: "/teams/{id}/members",
		Summary: "The members of a team",
	}, s.listMembers)
}

func (s *server) userInfo(ctx context.Context, p team.Person, _ Bearer) (*body[apitype.UserInfo], error) {
	info, err := s.Teams.UserInfo(ctx, p)
	if err != nil {
		return nil, err
	}
	out := apitype.UserInfo{
		UserID: p.ID.String(), Email: p.Email,
		PersonalTeam: apitype.TeamRef{ID: info.Personal.ID.String(), Name: info.Personal.Name},
		Teams:        listOf(info.Teams, teamOf).Body,
	}
	return &body[apitype.UserInfo]{Body: out}, nil
}

func teamOf(t team.Team) apitype.Team {
	return apitype.Team{
		ID: t.ID.String(), Name: t.Name, Description: t.Description, Plan: string(t.Plan),
		IsPersonal: t.IsPersonal, MaxMembers: t.MaxMembers, Role: string(t.Role), CreatedAt: t.CreatedAt,
	}
}

type membersIn struct {
	Bearer
	ID string `path:"id"`
}

func (s *server) listMembers(ctx context.Context, p team.Person, in membersIn) (*list[apitype.Member], error) {
	scope, err := s.scope(ctx, p, in.ID, team.Read)
	if err != nil {
		return nil, err
	}
	members, err := s.Teams.Members(ctx, scope)
	if err != nil {
		return nil, err
	}
	return listOf(members, func(m team.Membership) apitype.Member {
		return apitype.Member{ID: m.ID.String(), UserID: m.UserID.String(), Email: m.Email, Role: string(m.Role)}
	}), nil
}
