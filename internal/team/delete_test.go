package team_test

import (
	"errors"
	"testing"

	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
)

func TestDeletingATeam(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	personal := teamtest.Admin(t, c.Pool, team.Hobby)
	if err := c.Delete(t.Context(), personal); !errors.Is(err, team.ErrPersonal) {
		t.Errorf("a personal team: %v", err)
	}
	admin := teamtest.Admin(t, c.Pool, team.Pro)
	member := teamtest.Join(t, c.Pool, admin.TeamID(), team.Member)
	info, err := c.UserInfo(t.Context(), team.Person{ID: admin.UserID(), Email: admin.Email()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.invite(admin, "ada@example.org"); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), member); !errors.Is(err, team.ErrForbidden) {
		t.Errorf("by a member: %v", err)
	}
	c.block = errors.New("pods run")
	if err := c.Delete(t.Context(), admin); !errors.Is(err, c.block) {
		t.Errorf("with pods: %v", err)
	}
	c.block, c.owed = nil, errors.New("owes money")
	if err := c.Delete(t.Context(), admin); !errors.Is(err, c.owed) || len(c.pending(admin)) != 1 {
		t.Errorf("owing money: %v, pending %v", err, c.pending(admin))
	}
	c.ended, c.owed = nil, nil
	if err := c.Delete(t.Context(), admin); err != nil {
		t.Fatal(err)
	}
	want := team.Ending{TeamID: admin.TeamID(), Name: "Test team", By: admin.UserID(), Personal: info.Personal.ID, At: c.clock.Now()}
	if len(c.ended) != 1 || c.ended[0] != want {
		t.Errorf("told of %+v, want %+v", c.ended, want)
	}
	if err := c.Delete(t.Context(), admin); !errors.Is(err, team.ErrNotFound) {
		t.Errorf("again: %v", err)
	}
	if after := c.signIn("ada@example.org"); len(after.Teams) != 1 {
		t.Errorf("an invitation outlived its team: %+v", after.Teams)
	}
}

// Who deletes a team without ever having asked who they are has a personal
// team all the same: what the team owned goes there.
func TestDeleterGetsAPersonalTeam(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	admin := teamtest.Admin(t, c.Pool, team.Pro)
	if err := c.Delete(t.Context(), admin); err != nil {
		t.Fatal(err)
	}
	info, err := c.UserInfo(t.Context(), team.Person{ID: admin.UserID(), Email: admin.Email()})
	if err != nil || len(info.Teams) != 1 || len(c.ended) != 1 || c.ended[0].Personal != info.Personal.ID {
		t.Errorf("told of %+v, has %+v, %v", c.ended, info.Teams, err)
	}
}
