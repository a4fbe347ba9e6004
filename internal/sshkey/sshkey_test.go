package sshkey_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/sshkey"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
)

type fixture struct {
	*sshkey.Service
	clock   *clock.Manual
	mu      sync.Mutex
	dropped []uuid.UUID
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{clock: clock.Fixed(teamtest.Start)}
	f.Service = sshkey.New(sshkey.Deps{
		Pool: pgtest.New(t), Clock: f.clock.Clock,
		OnDeleteTx: func(_ context.Context, _ pgx.Tx, keyID uuid.UUID) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.dropped = append(f.dropped, keyID)
			return nil
		},
	})
	return f
}

func TestTheSameKeyIsKeptOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	scope := teamtest.Admin(t, f.Pool, team.Pro)
	var wg sync.WaitGroup
	ids := make([]uuid.UUID, 32)
	for i := range ids {
		wg.Go(func() {
			key, err := f.Create(t.Context(), scope, "laptop", ed25519Key+" comment", idem.Request{})
			if err != nil {
				t.Error(err)
			}
			ids[i] = key.ID
		})
	}
	wg.Wait()
	for _, got := range ids {
		if got != ids[0] {
			t.Fatal("one key got two ids")
		}
	}
	other := teamtest.Admin(t, f.Pool, team.Pro)
	key, err := f.Create(t.Context(), other, "", ed25519Key, idem.Request{})
	if err != nil || key.ID == ids[0] || key.Name != "Untitled" {
		t.Errorf("another team's key: %+v, %v", key, err)
	}
	keys, err := f.List(t.Context(), scope)
	if err != nil || len(keys) != 1 || keys[0].PublicKey != ed25519Key || keys[0].KeyType != "ssh-ed25519" {
		t.Errorf("keys = %+v, %v", keys, err)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	scope := teamtest.Admin(t, f.Pool, team.Pro)
	for _, tt := range []struct {
		name, want string
		err        error
	}{
		{"  laptop ", "laptop", nil},
		{" \n\t ", "Untitled", nil},
		{"two\nlines", "two lines", nil},
		{strings.Repeat("é", 80), strings.Repeat("é", 80), nil},
		{strings.Repeat("é", 81), "", sshkey.ErrName},
	} {
		key, err := f.Create(t.Context(), scope, tt.name, ed25519Key, idem.Request{})
		if !errors.Is(err, tt.err) || key.Name != tt.want {
			t.Errorf("%q: %q, %v; want %q, %v", tt.name, key.Name, err, tt.want, tt.err)
		}
		if err == nil {
			if err := f.Delete(t.Context(), scope, key.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestWhoMayDelete(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	admin := teamtest.Admin(t, f.Pool, team.Pro)
	owner := teamtest.Join(t, f.Pool, admin.TeamID(), team.Member)
	member := teamtest.Join(t, f.Pool, admin.TeamID(), team.Member)
	viewer := teamtest.Join(t, f.Pool, admin.TeamID(), team.Viewer)
	stranger := teamtest.Admin(t, f.Pool, team.Pro)
	for _, tt := range []struct {
		name  string
		scope team.Scope
		want  error
	}{
		{"another member", member, sshkey.ErrNotYours},
		{"a viewer", viewer, team.ErrForbidden},
		{"a stranger", stranger, sshkey.ErrNotFound},
		{"the owner", owner, nil},
		{"an admin", admin, nil},
	} {
		key, err := f.Create(t.Context(), owner, "", ed25519Key, idem.Request{})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Delete(t.Context(), tt.scope, key.ID); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if tt.want != nil {
			continue
		}
		if err := f.Delete(t.Context(), tt.scope, key.ID); !errors.Is(err, sshkey.ErrNotFound) {
			t.Errorf("%s, again: %v", tt.name, err)
		}
		if f.dropped[len(f.dropped)-1] != key.ID {
			t.Errorf("%s: pods were not told", tt.name)
		}
	}
	_, err := f.Create(t.Context(), viewer, "", ecdsa256Key, idem.Request{})
	if !errors.Is(err, team.ErrForbidden) {
		t.Errorf("a viewer creates: %v", err)
	}
}

func TestForeignKeysLookLikeNone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	mine, other := teamtest.Admin(t, f.Pool, team.Pro), teamtest.Admin(t, f.Pool, team.Pro)
	key, err := f.Create(t.Context(), other, "", ed25519Key, idem.Request{})
	if err != nil {
		t.Fatal(err)
	}
	for _, keyID := range []uuid.UUID{key.ID, id.New()} {
		err := pg.InTx(t.Context(), f.Pool, func(tx pgx.Tx) error {
			_, err := f.FindTx(t.Context(), tx, mine, keyID)
			return err
		})
		if !errors.Is(err, sshkey.ErrNotFound) {
			t.Errorf("find: %v", err)
		}
		if err := f.Delete(t.Context(), mine, keyID); !errors.Is(err, sshkey.ErrNotFound) {
			t.Errorf("delete: %v", err)
		}
	}
}

func TestLeavingTakesOnesKeys(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	admin := teamtest.Admin(t, f.Pool, team.Pro)
	member := teamtest.Join(t, f.Pool, admin.TeamID(), team.Member)
	kept, err := f.Create(t.Context(), admin, "", ed25519Key, idem.Request{})
	if err != nil {
		t.Fatal(err)
	}
	gone, err := f.Create(t.Context(), member, "", ecdsa256Key, idem.Request{})
	if err != nil {
		t.Fatal(err)
	}
	err = pg.InTx(t.Context(), f.Pool, func(tx pgx.Tx) error {
		gone, err := f.LeaveTx(t.Context(), tx, admin.TeamID(), member.UserID(), teamtest.Start)
		if len(gone) != 1 {
			t.Errorf("told of %d keys that are gone", len(gone))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := f.LinesTx(t.Context(), f.Pool, []uuid.UUID{kept.ID, gone.ID})
	if err != nil || len(lines) != 1 || lines[kept.ID] != ed25519Key {
		t.Errorf("lines = %v, %v", lines, err)
	}
	if len(f.dropped) != 1 || f.dropped[0] != gone.ID {
		t.Errorf("pods were told of %v", f.dropped)
	}
	err = pg.InTx(t.Context(), f.Pool, func(tx pgx.Tx) error {
		return f.EndTeamTx(t.Context(), tx, admin.TeamID(), admin.UserID(), teamtest.Start)
	})
	if err != nil || len(f.dropped) != 2 {
		t.Errorf("the team's end: %v, %v", f.dropped, err)
	}
}

func TestListIsNewestFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	scope := teamtest.Admin(t, f.Pool, team.Pro)
	if keys, err := f.List(t.Context(), scope); err != nil || keys == nil || len(keys) != 0 {
		t.Errorf("no keys: %#v, %v", keys, err)
	}
	for _, line := range []string{ed25519Key, ecdsa256Key, rsa2048Key} {
		if _, err := f.Create(t.Context(), scope, "", line, idem.Request{}); err != nil {
			t.Fatal(err)
		}
		f.clock.Advance(time.Second)
	}
	keys, err := f.List(t.Context(), scope)
	if err != nil || len(keys) != 3 || keys[0].PublicKey != rsa2048Key || keys[2].PublicKey != ed25519Key {
		t.Errorf("keys = %+v, %v", keys, err)
	}
}
