package team_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
)

// plot is a team of three that a new person is about to pay for.
func plot(t *testing.T) (team.Plot, team.Person) {
	t.Helper()
	p := teamtest.Person()
	made, err := team.NewPlot(id.New(), p.ID, "\tDocks ", " North\nquay ", "3")
	if err != nil {
		t.Fatal(err)
	}
	return made, p
}

func within(t *testing.T, pool *pgxpool.Pool, do func(tx pgx.Tx) error) error {
	t.Helper()
	return pg.InTx(t.Context(), pool, do)
}

func TestAPlotIsSeenByNobodyUntilItIsATeam(t *testing.T) {
	t.Parallel()
	pool, wallets := pgtest.New(t), 0
	s := team.New(team.Deps{Pool: pool, Clock: clock.Fixed(teamtest.Start).Clock, Hooks: team.Hooks{
		OpenWallet: func(context.Context, pgx.Tx, uuid.UUID, time.Time) error { wallets++; return nil },
	}})
	plot, p := plot(t)
	info, err := s.UserInfo(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	wallets = 0
	reserve := func(tx pgx.Tx) error {
		return team.ReserveTx(t.Context(), tx, plot, teamtest.Start, teamtest.Start.Add(time.Hour))
	}
	activate := func(tx pgx.Tx) error { return s.ActivateTx(t.Context(), tx, plot, "sub_1", teamtest.Start) }
	release := func(tx pgx.Tx) error { return team.ReleaseTx(t.Context(), tx, plot.TeamID) }
	hidden := func(when string) {
		t.Helper()
		if _, err := s.Authorize(t.Context(), p, plot.TeamID, team.Read); !errors.Is(err, team.ErrNotFound) {
			t.Errorf("%s: %v", when, err)
		}
		if now, err := s.UserInfo(t.Context(), p); err != nil || len(now.Teams) != len(info.Teams) {
			t.Errorf("%s: the person has %+v (%v)", when, now.Teams, err)
		}
	}
	for _, step := range []struct {
		name string
		do   func(pgx.Tx) error
	}{{"reserved", reserve}, {"released", release}, {"released twice", release}} {
		if err := within(t, pool, step.do); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		hidden(step.name)
	}
	if err := within(t, pool, activate); err != nil { // released, and paid after all
		t.Fatal(err)
	}
	scope, err := s.Authorize(t.Context(), p, plot.TeamID, team.Manage)
	if err != nil || scope.Plan() != team.Pro || scope.IsPersonal() || wallets != 1 {
		t.Errorf("scope %+v (%v), %d wallets", scope, err, wallets)
	}
	// An active team is neither taken away nor made again.
	if err := within(t, pool, release); err != nil {
		t.Fatal(err)
	}
	if err := within(t, pool, activate); err == nil {
		t.Error("a team was made twice")
	}
	now, err := s.UserInfo(t.Context(), p)
	if err != nil || len(now.Teams) != 2 || now.Teams[1].Name != "Docks" || now.Teams[1].Description != "North\nquay" ||
		now.Teams[1].MaxMembers == nil || *now.Teams[1].MaxMembers != 3 {
		t.Errorf("the person has %+v (%v)", now.Teams, err)
	}
}

func TestADeletedTeamIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	s := team.New(team.Deps{Pool: pool, Clock: clock.Fixed(teamtest.Start).Clock})
	plot, p := plot(t)
	activate := func(tx pgx.Tx) error { return s.ActivateTx(t.Context(), tx, plot, "sub_1", teamtest.Start) }
	if err := within(t, pool, activate); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `update team set state = 'deleted', deleted_at = $2 where id = $1`, plot.TeamID, teamtest.Start); err != nil {
		t.Fatal(err)
	}
	if err := within(t, pool, activate); err == nil {
		t.Error("a deleted team came back")
	}
	if _, err := s.Authorize(t.Context(), p, plot.TeamID, team.Read); !errors.Is(err, team.ErrNotFound) {
		t.Errorf("a deleted team is reached: %v", err)
	}
}

func FuzzPlot(f *testing.F) {
	for _, s := range []string{"", "3", " 100 ", "1e2", "0x10", "Infinity", "-0", "٣", strings.Repeat("9", 400)} {
		f.Add("name", "text", s)
	}
	f.Fuzz(func(t *testing.T, name, description, seats string) {
		p, err := team.NewPlot(id.New(), id.New(), name, description, seats)
		if err != nil {
			return
		}
		if p.Seats < 1 || p.Seats > 100 || p.Name == "" || len([]rune(p.Name)) > 80 || len([]rune(p.Description)) > 1000 ||
			strings.ContainsAny(p.Name+p.Description, "\x00\r") || strings.Contains(p.Name, "\n") {
			t.Errorf("%q %q %q became %+v", name, description, seats, p)
		}
	})
}
