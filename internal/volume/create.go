package volume

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

// maxName is the longest name of a volume in characters.
const maxName = 80

// Create makes an empty volume. The faults are ErrName, ErrPlanLimit and those
// of a scope that may not use the team.
func (s *Service) Create(ctx context.Context, scope team.Scope, name string, once idem.Request) (Volume, error) {
	return s.create(ctx, scope, name, nil, once)
}

// CreateLocked is Create for a volume that only the team's key opens. It is
// unlocked for UnlockedFor. The key is kept nowhere: who loses it loses the
// files. Another fault is ErrKey.
func (s *Service) CreateLocked(ctx context.Context, scope team.Scope, name, teamKey string, once idem.Request) (Volume, error) {
	return s.create(ctx, scope, name, &teamKey, once)
}

func (s *Service) create(ctx context.Context, scope team.Scope, name string, teamKey *string, once idem.Request) (Volume, error) {
	name, err := cleanName(name)
	if err != nil {
		return Volume{}, err
	}
	if scope, err = scope.Require(team.Use); err != nil {
		return Volume{}, err
	}
	var l *lock
	if teamKey != nil {
		if l, err = s.drawLock(ctx, *teamKey); err != nil {
			return Volume{}, err
		}
	}
	var v Volume
	err = pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		scope, err := team.LockTx(ctx, tx, scope)
		if err != nil {
			return err
		}
		v, err = idem.RunTx(ctx, tx, once, func() (Volume, error) { return s.createTx(ctx, tx, scope, name, l) })
		return err
	})
	return v, err
}

const sqlInsertVolume = `
insert into volume (id, team_id, name, created_by, created_at, size_bytes, entries, metered,
  epoch, restored, repository_made, head_seq, team_key, key_file, key_sealed, unlocked_until)
values (@id, @team, @name, @user, @now, 0, 0, false, 0, false, false, 0, @team_key, @file, @key, @until)`

func (s *Service) createTx(ctx context.Context, tx pgx.Tx, scope team.Scope, name string, l *lock) (Volume, error) {
	if err := checkPlanLimit(ctx, tx, scope); err != nil {
		return Volume{}, err
	}
	v := Volume{ID: id.New(), TeamID: scope.TeamID(), Name: name, CreatedAt: s.Clock.Now(), CreatedBy: scope.UserID(), TeamKey: l != nil}
	args := pgx.NamedArgs{
		"id": v.ID, "team": v.TeamID, "name": v.Name, "user": v.CreatedBy, "now": v.CreatedAt,
		"team_key": v.TeamKey, "file": nil, "key": nil, "until": nil,
	}
	if l != nil {
		sealed, err := s.sealKey(v.ID, l.key)
		if err != nil {
			return Volume{}, err
		}
		args["file"], args["key"], args["until"] = l.file, sealed, v.CreatedAt.Add(UnlockedFor)
	}
	if _, err := tx.Exec(ctx, sqlInsertVolume, args); err != nil {
		return Volume{}, fmt.Errorf("create a volume: %w", err)
	}
	return v, nil
}

const sqlCountVolumes = `select count(*) from volume where team_id = $1 and deleted_at is null`

// checkPlanLimit refuses a further volume. The team is locked.
func checkPlanLimit(ctx context.Context, tx pgx.Tx, scope team.Scope) error {
	if scope.Plan() == team.Pro {
		return nil
	}
	var n int
	if err := tx.QueryRow(ctx, sqlCountVolumes, scope.TeamID()).Scan(&n); err != nil {
		return fmt.Errorf("count the volumes of team %s: %w", scope.TeamID(), err)
	}
	if n >= 1 {
		return ErrPlanLimit
	}
	return nil
}

// cleanName makes the name that is stored: trimmed, on one line, "Untitled"
// when empty. The fault is ErrName.
func cleanName(name string) (string, error) {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, name)
	name = strings.TrimSpace(name)
	if name == "" {
		return "Untitled", nil
	}
	if utf8.RuneCountInString(name) > maxName {
		return "", ErrName
	}
	return name, nil
}
