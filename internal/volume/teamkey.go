package volume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/snapshot"
	"homeport.dev/homeport/internal/team"
)

// Faults of volumes whose key only their team holds.
var (
	// ErrKey occurs when a text is not the key of any volume.
	ErrKey = fault.New(fault.Invalid, "volume_key", `A key is "hpk_" and 43 letters, digits, "-" or "_".`)
	// ErrWrongKey occurs when a volume is to be unlocked with another one's key.
	ErrWrongKey = fault.New(fault.Invalid, "volume_key_wrong", "This is not the key of this volume.")
	// ErrNoKey occurs when a volume is to be locked or unlocked that is always open.
	ErrNoKey = fault.New(fault.Conflict, "volume_no_key", "This volume has no key of its own.")
	// ErrLocked occurs when what is asked for needs the key of a locked volume.
	ErrLocked = fault.New(fault.Conflict, "volume_locked", "This volume is locked. Unlock it with its key first.")
)

// UnlockedFor is how long a volume stays unlocked, in business time, after it
// was unlocked or a pod last held it.
const UnlockedFor = time.Hour

// keyFilesAtOnce is how many key files a node makes or opens at a time: each
// takes 32 MiB.
const keyFilesAtOnce = 2

// teamKeys are the texts that may be a team's key: 32 random bytes.
var teamKeys = regexp.MustCompile(`^hpk_[A-Za-z0-9_-]{43}$`)

// parseTeamKey cuts what copying a key may have put around it. The fault is
// ErrKey.
func parseTeamKey(text string) (string, error) {
	text = strings.TrimSpace(text)
	if !teamKeys.MatchString(text) {
		return "", ErrKey
	}
	return text, nil
}

// A lock is what a volume whose key only its team holds is made with.
type lock struct {
	key  snapshot.Key
	file []byte // opened by the team's key alone
}

// drawLock draws a volume's key and locks it up under the team's. The fault is
// ErrKey.
func (s *Service) drawLock(ctx context.Context, teamKey string) (*lock, error) {
	teamKey, err := parseTeamKey(teamKey)
	if err != nil {
		return nil, err
	}
	l := &lock{key: snapshot.NewKey()}
	err = s.inTurn(ctx, func() (err error) {
		l.file, err = snapshot.MakeKeyFile(l.key, teamKey)
		return err
	})
	return l, err
}

// inTurn does what takes the memory of a key file.
func (s *Service) inTurn(ctx context.Context, do func() error) error {
	select {
	case s.keyFiles <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait for a turn at key files: %w", ctx.Err())
	}
	defer func() { <-s.keyFiles }()
	return do()
}

// sealKey seals a volume's key under the master key.
func (s *Service) sealKey(volumeID uuid.UUID, key snapshot.Key) ([]byte, error) {
	plain, err := json.Marshal(key)
	if err != nil {
		return nil, fmt.Errorf("encode the key of volume %s: %w", volumeID, err)
	}
	return s.Box.Seal(plain, purposeKey(volumeID)), nil
}

const sqlFindKeyFile = `select key_file from volume where id = $1 and team_id = $2 and team_key and deleted_at is null`

const sqlUnlockVolume = `update volume set key_sealed = $2, unlocked_until = $3 where id = $1`

// Unlock opens a volume with the team's key, which is kept nowhere; unlocked
// already, it stays so for longer. The faults are ErrNotFound, also for a volume
// in the trash, ErrNoKey, ErrKey, ErrWrongKey and those of a scope that may not
// use the team.
func (s *Service) Unlock(ctx context.Context, scope team.Scope, volumeID uuid.UUID, teamKey string) (Volume, error) {
	scope, err := scope.Require(team.Use)
	if err != nil {
		return Volume{}, err
	}
	v, err := s.Find(ctx, scope, volumeID)
	if err == nil {
		err = v.mayLock()
	}
	if err != nil {
		return Volume{}, err
	}
	key, err := s.tryKey(ctx, scope, volumeID, teamKey)
	if err != nil {
		return Volume{}, err
	}
	sealed, err := s.sealKey(volumeID, key)
	if err != nil {
		return Volume{}, err
	}
	return s.changeLock(ctx, scope, volumeID, func(tx pgx.Tx, _ Volume) error {
		now := s.Clock.Now()
		if _, err := tx.Exec(ctx, sqlUnlockVolume, volumeID, sealed, now.Add(UnlockedFor)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sqlLookAgain, volumeID, now)
		return err
	})
}

// tryKey opens a volume's key file.
func (s *Service) tryKey(ctx context.Context, scope team.Scope, volumeID uuid.UUID, teamKey string) (key snapshot.Key, err error) {
	if teamKey, err = parseTeamKey(teamKey); err != nil {
		return snapshot.Key{}, err
	}
	var file []byte
	err = s.Pool.QueryRow(ctx, sqlFindKeyFile, volumeID, scope.TeamID()).Scan(&file)
	if errors.Is(err, pgx.ErrNoRows) { // it was deleted since
		return snapshot.Key{}, ErrNotFound
	}
	if err != nil {
		return snapshot.Key{}, fmt.Errorf("read the key file of volume %s: %w", volumeID, err)
	}
	err = s.inTurn(ctx, func() (err error) {
		key, err = snapshot.OpenKeyFile(file, teamKey)
		return err
	})
	if errors.Is(err, snapshot.ErrKey) {
		return snapshot.Key{}, ErrWrongKey
	}
	return key, err
}

const sqlLockKey = `update volume set key_sealed = null, unlocked_until = null where id = $1`

// Lock forgets what opens a volume without its team's key, and ends whatever
// reads it: here at once, on other nodes by FollowLocks. The faults are
// ErrNotFound, also for a volume in the trash, ErrNoKey, ErrInUse and those of a
// scope that may not use the team.
func (s *Service) Lock(ctx context.Context, scope team.Scope, volumeID uuid.UUID) (Volume, error) {
	v, err := s.changeLock(ctx, scope, volumeID, func(tx pgx.Tx, v Volume) error {
		if v.CurrentlyUsed {
			return ErrInUse
		}
		_, err := tx.Exec(ctx, sqlLockKey, volumeID)
		return err
	})
	if err == nil {
		s.opened.lock(volumeID)
	}
	return v, err
}

// mayLock holds that a volume can be locked and unlocked.
func (v Volume) mayLock() error {
	switch {
	case v.Deleted:
		return ErrNotFound
	case !v.TeamKey:
		return ErrNoKey
	}
	return nil
}

// changeLock locks or unlocks a volume, whose row is locked meanwhile.
func (s *Service) changeLock(ctx context.Context, scope team.Scope, volumeID uuid.UUID, change func(tx pgx.Tx, v Volume) error) (Volume, error) {
	scope, err := scope.Require(team.Use)
	if err != nil {
		return Volume{}, err
	}
	var v Volume
	err = pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		scope, err := team.LockTx(ctx, tx, scope)
		if err != nil {
			return err
		}
		if v, err = find(ctx, tx, sqlLockVolume, scope, volumeID); err != nil {
			return err
		}
		if err := v.mayLock(); err != nil {
			return err
		}
		if err := change(tx, v); err != nil {
			return fmt.Errorf("lock or unlock volume %s: %w", volumeID, err)
		}
		v, err = find(ctx, tx, sqlFindVolume, scope, volumeID)
		return err
	})
	return v, err
}

// sqlLockDue never takes the key of a volume that a pod holds: a row that is
// being attached is looked at again once that is committed.
const sqlLockDue = `
update volume set key_sealed = null, unlocked_until = null
where team_key and key_sealed is not null and pod_id is null and unlocked_until <= $1`

// LockDue locks the volumes that were unlocked, or left by a pod, UnlockedFor
// ago.
func (s *Service) LockDue(ctx context.Context) error {
	if _, err := s.Pool.Exec(ctx, sqlLockDue, s.Clock.Now()); err != nil {
		return fmt.Errorf("lock volumes: %w", err)
	}
	return nil
}
