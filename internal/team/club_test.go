package team_test

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
)

// A club is a service that remembers what its hooks were told.
type club struct {
	*team.Service
	t     *testing.T
	clock *clock.Manual
	mu    sync.Mutex
	users map[string]team.Person // verified, by address
	jobs  *job.Recorder
	links []team.InviteLink
	mails []mail.Message
	down  error // of the mail server
	log   bytes.Buffer
	left  []uuid.UUID
	ended []team.Ending
	block error // of BlockDelete
	owed  error // of OnDelete
}

func newClub(t *testing.T) *club {
	t.Helper()
	c := &club{t: t, clock: clock.Fixed(teamtest.Start), users: map[string]team.Person{}, jobs: &job.Recorder{}}
	logger := slog.New(slog.NewTextHandler(&c.log, nil))
	c.Service = team.New(team.Deps{Pool: pgtest.New(t), Clock: c.clock.Clock, Jobs: c.jobs, Mail: c, Logger: logger, Hooks: team.Hooks{
		FindUser: func(_ context.Context, _ pgx.Tx, email string) (team.Person, bool, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			p, ok := c.users[email]
			return p, ok, nil
		},
		InviteLink: func(_ context.Context, l team.InviteLink) (string, error) {
			c.links = append(c.links, l)
			return "https://homeport.example/join?n=" + strconv.Itoa(len(c.links)), nil
		},
		Emails: func(_ context.Context, _ pgx.Tx, users []uuid.UUID) (map[uuid.UUID]string, error) {
			emails := map[uuid.UUID]string{}
			for _, u := range users {
				emails[u] = "user-" + id.First(u) + "@example.org"
			}
			return emails, nil
		},
		OnLeave: func(_ context.Context, _ pgx.Tx, _, userID uuid.UUID, _ time.Time) error {
			c.left = append(c.left, userID)
			return nil
		},
		BlockDelete: func(context.Context, pgx.Tx, uuid.UUID, time.Time) error { return c.block },
		OnDelete: func(_ context.Context, _ pgx.Tx, end team.Ending) error {
			c.ended = append(c.ended, end)
			return c.owed
		},
	}})
	return c
}

func (c *club) invite(scope team.Scope, email string) (team.InviteStatus, error) {
	return c.Invite(c.t.Context(), scope, email, idem.Request{})
}

func (c *club) members(scope team.Scope) int {
	c.t.Helper()
	list, err := c.Members(c.t.Context(), scope)
	if err != nil {
		c.t.Fatal(err)
	}
	return len(list)
}

func (c *club) pending(scope team.Scope) []team.Invitation {
	c.t.Helper()
	list, err := c.Invitations(c.t.Context(), scope)
	if err != nil {
		c.t.Fatal(err)
	}
	return list
}

// signIn is a person's first call.
func (c *club) signIn(email string) team.UserInfo {
	c.t.Helper()
	info, err := c.UserInfo(c.t.Context(), team.Person{ID: id.New(), Email: email})
	if err != nil {
		c.t.Fatal(err)
	}
	return info
}
