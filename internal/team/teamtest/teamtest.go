// Package teamtest makes teams and scopes for the tests of other packages.
package teamtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/team"
)

// Start is the instant at which the teams of this package were made.
var Start = time.Date(2030, 1, 15, 12, 0, 0, 0, time.UTC)

// Admin returns the scope of a new user who is the admin of a new team. Its
// plan may be any; a hobby team is the user's personal one. It has no wallet.
func Admin(t testing.TB, pool *pgxpool.Pool, plan team.Plan) team.Scope {
	t.Helper()
	s := service(pool)
	p := Person()
	if plan == team.Hobby {
		info, err := s.UserInfo(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return authorize(t, s, p, info.Personal.ID, team.Manage)
	}
	teamID := id.New()
	_, err := pool.Exec(t.Context(), `insert into team (id, name, description, plan, state, max_members, created_by, created_at)
		values ($1, 'Test team', '', $2, 'active', 5, $3, $4)`, teamID, plan, p.ID, Start)
	if err != nil {
		t.Fatal(err)
	}
	return join(t, pool, s, p, teamID, team.Admin)
}

// Join returns the scope of a new user in an existing team.
func Join(t testing.TB, pool *pgxpool.Pool, teamID uuid.UUID, role team.Role) team.Scope {
	t.Helper()
	return join(t, pool, service(pool), Person(), teamID, role)
}

// Person returns a user nobody has seen before.
func Person() team.Person {
	u := id.New()
	return team.Person{ID: u, Email: fmt.Sprintf("user-%s@example.org", id.First(u))}
}

func join(t testing.TB, pool *pgxpool.Pool, s *team.Service, p team.Person, teamID uuid.UUID, role team.Role) team.Scope {
	t.Helper()
	_, err := pool.Exec(t.Context(), `insert into membership (id, team_id, user_id, role, created_at)
		values ($1, $2, $3, $4, $5)`, id.New(), teamID, p.ID, role, Start)
	if err != nil {
		t.Fatal(err)
	}
	need := map[team.Role]team.Right{team.Admin: team.Manage, team.Member: team.Use, team.Viewer: team.Read}
	return authorize(t, s, p, teamID, need[role])
}

func authorize(t testing.TB, s *team.Service, p team.Person, teamID uuid.UUID, need team.Right) team.Scope {
	t.Helper()
	scope, err := s.Authorize(t.Context(), p, teamID, need)
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

func service(pool *pgxpool.Pool) *team.Service {
	return team.New(team.Deps{Pool: pool, Clock: clock.Fixed(Start).Clock})
}
