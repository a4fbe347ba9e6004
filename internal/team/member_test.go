package team_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
)

func TestRemovingMembers(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	admin := teamtest.Admin(t, c.Pool, team.Pro)
	if err := c.RemoveMember(t.Context(), admin, admin.UserID()); !errors.Is(err, team.ErrLastMember) {
		t.Errorf("the last member: %v", err)
	}
	second := teamtest.Join(t, c.Pool, admin.TeamID(), team.Admin)
	member := teamtest.Join(t, c.Pool, admin.TeamID(), team.Member)
	viewer := teamtest.Join(t, c.Pool, admin.TeamID(), team.Viewer)
	personal := teamtest.Admin(t, c.Pool, team.Hobby)
	for _, tt := range []struct {
		name string
		by   team.Scope
		who  uuid.UUID
		want error
	}{
		{"from a personal team", personal, personal.UserID(), team.ErrPersonalMember},
		{"an admin themselves", admin, admin.UserID(), team.ErrAdminSelf},
		{"a stranger", admin, personal.UserID(), team.ErrMemberNotFound},
		{"nobody", admin, id.New(), team.ErrMemberNotFound},
		{"a member somebody else", member, viewer.UserID(), team.ErrForbidden},
		{"a viewer an admin", viewer, admin.UserID(), team.ErrForbidden},
		{"a viewer themselves", viewer, viewer.UserID(), nil},
		{"an admin a member", admin, member.UserID(), nil},
		{"the same again", admin, member.UserID(), team.ErrMemberNotFound},
		{"an admin an admin", admin, second.UserID(), nil},
		{"who is out", second, admin.UserID(), team.ErrNotFound},
		{"the last one", admin, admin.UserID(), team.ErrLastMember},
	} {
		if err := c.RemoveMember(t.Context(), tt.by, tt.who); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if len(c.left) != 3 {
		t.Errorf("told of %d who left, want 3", len(c.left))
	}
	for err, text := range map[*fault.Error]string{
		team.ErrPersonalMember: "Cannot remove member from personal team",
		team.ErrLastMember:     "Cannot remove the last team member",
		team.ErrAdminSelf:      "Admins cannot remove themselves",
	} {
		if err.Detail != text {
			t.Errorf("%q, want %q", err.Detail, text)
		}
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	admin := teamtest.Admin(t, c.Pool, team.Pro)
	member := teamtest.Join(t, c.Pool, admin.TeamID(), team.Member)
	for _, tt := range []struct {
		name string
		by   team.Scope
		who  uuid.UUID
		role team.Role
		want error
	}{
		{"no role", admin, member.UserID(), "owner", team.ErrRole},
		{"by a member", member, member.UserID(), team.Admin, team.ErrForbidden},
		{"a stranger", admin, id.New(), team.Viewer, team.ErrMemberNotFound},
		{"the last admin", admin, admin.UserID(), team.Member, team.ErrLastAdmin},
		{"the last admin stays", admin, admin.UserID(), team.Admin, nil},
		{"a member to admin", admin, member.UserID(), team.Admin, nil},
		{"one of two admins", admin, admin.UserID(), team.Viewer, nil},
		{"by who was admin", admin, member.UserID(), team.Viewer, team.ErrForbidden},
	} {
		m, err := c.SetRole(t.Context(), tt.by, tt.who, tt.role)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if err == nil && (m.UserID != tt.who || m.Role != tt.role) {
			t.Errorf("%s: answered %+v", tt.name, m)
		}
	}
}

// Admins who demote and remove each other and step down at once leave one of them.
func TestOneAdminAlwaysStays(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	for range 4 {
		first := teamtest.Admin(t, c.Pool, team.Pro)
		if _, err := c.Pool.Exec(t.Context(), `update team set max_members = 64 where id = $1`, first.TeamID()); err != nil {
			t.Fatal(err)
		}
		admins := []team.Scope{first}
		for range 7 {
			admins = append(admins, teamtest.Join(t, c.Pool, first.TeamID(), team.Admin))
		}
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range 64 {
			by, who := admins[i%8], admins[(i+1+i/8)%8]
			wg.Go(func() {
				<-start
				var err error
				switch i % 3 {
				case 0:
					_, err = c.SetRole(t.Context(), by, who.UserID(), team.Member)
				case 1:
					err = c.RemoveMember(t.Context(), by, who.UserID())
				case 2:
					_, err = c.SetRole(t.Context(), by, by.UserID(), team.Viewer)
				}
				for _, refusal := range []error{
					nil, team.ErrLastAdmin, team.ErrLastMember, team.ErrAdminSelf, team.ErrMemberNotFound,
					team.ErrForbidden, team.ErrNotFound,
				} {
					if errors.Is(err, refusal) {
						return
					}
				}
				t.Error(err)
			})
		}
		close(start)
		wg.Wait()
		var left int
		err := c.Pool.QueryRow(t.Context(), `select count(*) from membership where team_id = $1 and role = 'admin'`, first.TeamID()).Scan(&left)
		if err != nil || left == 0 {
			t.Fatalf("%d admins, %v", left, err)
		}
	}
}
