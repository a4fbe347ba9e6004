package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

func (s *server) registerTeams() {
	session(s, huma.Operation{
		OperationID: "change-team", Method: http.MethodPatch, Path: "/teams/{id}",
		Summary: "Give a team another name, or a lower monthly spend limit than its plan's",
	}, s.changeTeam)
	session(s, huma.Operation{
		OperationID: "delete-team", Method: http.MethodDelete, Path: "/teams/{id}", DefaultStatus: http.StatusNoContent,
		Summary: "End a team: its volumes go to the deleter's trash for 30 days, its money back to those who paid it",
	}, s.deleteTeam)
	session(s, huma.Operation{
		OperationID: "list-members", Method: http.MethodGet, Path: "/teams/{id}/members",
		Summary: "The members of a team, the longest-standing first",
	}, s.listMembers)
	session(s, huma.Operation{
		OperationID: "change-member", Method: http.MethodPatch, Path: "/teams/{id}/members/{userId}",
		Summary: "Give a member another role",
	}, s.changeMember)
	session(s, huma.Operation{
		OperationID: "remove-member", Method: http.MethodDelete, Path: "/teams/{id}/members/{userId}", DefaultStatus: http.StatusNoContent,
		Summary: "Take a member out of the team; with one's own id, leave it",
	}, s.removeMember)
	session(s, huma.Operation{
		OperationID: "invite", Method: http.MethodPost, Path: "/teams/{id}/invite", DefaultStatus: http.StatusOK,
		Summary: "Ask somebody into the team by e-mail address",
	}, s.invite)
	session(s, huma.Operation{
		OperationID: "list-invitations", Method: http.MethodGet, Path: "/teams/{id}/pending-invitations",
		Summary: "Who was invited and has not joined yet, newest first; Pro teams only",
	}, s.listInvitations)
	session(s, huma.Operation{
		OperationID: "cancel-invitation", Method: http.MethodDelete, Path: "/teams/{id}/pending-invitations/{invitationId}",
		DefaultStatus: http.StatusNoContent, Summary: "Take an invitation back",
	}, s.cancelInvitation)
}

// OneTeam is the part of an input that names the team in its path.
type OneTeam struct {
	ID string `path:"id" doc:"Team id, a UUID."`
}

// OneMember names a member of a team in its path.
type OneMember struct {
	UserID string `path:"userId" doc:"User id, a UUID."`
}

type changeTeamIn struct {
	Bearer
	OneTeam
	Body apitype.ChangeTeam
}

func (s *server) changeTeam(ctx context.Context, p team.Person, in changeTeamIn) (*body[apitype.Team], error) {
	change := team.Change{Name: in.Body.Name}
	if in.Body.SpendLimit != nil {
		limit, err := money.Parse(string(*in.Body.SpendLimit))
		if err != nil {
			return nil, wallet.ErrLimit.Because(err)
		}
		change.SpendLimit = &limit
	}
	if change == (team.Change{}) {
		return nil, ErrBadInput.With("Nothing to change is given: expected name or spend_limit.")
	}
	scope, err := s.scope(ctx, p, in.ID, team.Manage)
	if err != nil {
		return nil, err
	}
	t, err := s.Teams.Change(ctx, scope, change)
	if err != nil {
		return nil, err
	}
	return &body[apitype.Team]{Body: teamOf(t)}, nil
}

type teamIn struct {
	Bearer
	OneTeam
}

func (s *server) deleteTeam(ctx context.Context, p team.Person, in teamIn) (*nothing, error) {
	scope, err := s.scope(ctx, p, in.ID, team.Manage)
	if err != nil {
		return nil, err
	}
	return nil, s.Teams.Delete(ctx, scope)
}

func (s *server) listMembers(ctx context.Context, p team.Person, in teamIn) (*list[apitype.Member], error) {
	scope, err := s.scope(ctx, p, in.ID, team.Read)
	if err != nil {
		return nil, err
	}
	members, err := s.Teams.Members(ctx, scope)
	if err != nil {
		return nil, err
	}
	return listOf(members, memberOf), nil
}

func memberOf(m team.Membership) apitype.Member {
	return apitype.Member{ID: m.ID.String(), UserID: m.UserID.String(), Email: m.Email, Role: string(m.Role)}
}

type changeMemberIn struct {
	Bearer
	OneTeam
	OneMember
	Body apitype.ChangeMember
}

func (s *server) changeMember(ctx context.Context, p team.Person, in changeMemberIn) (*body[apitype.Member], error) {
	scope, err := s.scope(ctx, p, in.ID, team.Manage)
	if err != nil {
		return nil, err
	}
	userID, err := parse(in.UserID, team.ErrMemberNotFound)
	if err != nil {
		return nil, err
	}
	m, err := s.Teams.SetRole(ctx, scope, userID, team.Role(in.Body.Role))
	if err != nil {
		return nil, err
	}
	return &body[apitype.Member]{Body: memberOf(m)}, nil
}

type memberIn struct {
	Bearer
	OneTeam
	OneMember
}

func (s *server) removeMember(ctx context.Context, p team.Person, in memberIn) (*nothing, error) {
	scope, err := s.scope(ctx, p, in.ID, team.Read)
	if err != nil {
		return nil, err
	}
	userID, err := parse(in.UserID, team.ErrMemberNotFound)
	if err != nil {
		return nil, err
	}
	return nil, s.Teams.RemoveMember(ctx, scope, userID)
}

type inviteIn struct {
	Bearer
	Once
	OneTeam
	Body apitype.Invite
}

func (s *server) invite(ctx context.Context, p team.Person, in inviteIn) (*body[apitype.Invited], error) {
	scope, err := s.scope(ctx, p, in.ID, team.Manage)
	if err != nil {
		return nil, err
	}
	once := in.request(s, p, "POST /teams/"+scope.TeamID().String()+"/invite")
	status, err := s.Teams.Invite(ctx, scope, in.Body.Email, once)
	if err != nil {
		return nil, err
	}
	return &body[apitype.Invited]{Body: apitype.Invited{Status: string(status)}}, nil
}

func (s *server) listInvitations(ctx context.Context, p team.Person, in teamIn) (*list[apitype.Invitation], error) {
	scope, err := s.scope(ctx, p, in.ID, team.Read)
	if err != nil {
		return nil, err
	}
	invitations, err := s.Teams.Invitations(ctx, scope)
	if err != nil {
		return nil, err
	}
	return listOf(invitations, func(i team.Invitation) apitype.Invitation {
		return apitype.Invitation{ID: i.ID.String(), Email: i.Email, CreatedAt: i.CreatedAt, ExpiresAt: i.ExpiresAt}
	}), nil
}

type invitationIn struct {
	Bearer
	OneTeam
	InvitationID string `path:"invitationId" doc:"Invitation id, a UUID."`
}

func (s *server) cancelInvitation(ctx context.Context, p team.Person, in invitationIn) (*nothing, error) {
	scope, err := s.scope(ctx, p, in.ID, team.Manage)
	if err != nil {
		return nil, err
	}
	invitationID, err := parse(in.InvitationID, team.ErrInvitationNotFound)
	if err != nil {
		return nil, err
	}
	return nil, s.Teams.CancelInvitation(ctx, scope, invitationID)
}
