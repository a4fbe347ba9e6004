package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/snapshot"
)

// How the scrub goes.
const (
	scrubEvery = 30 * 24 * time.Hour // each object is read once in this time
	scrubAgain = 24 * time.Hour      // one that was found damaged
	scrubClaim = time.Hour           // after which another node takes up an object
	scrubBatch = 64
	scrubPlan  = 10_000 // rows planned in one statement
)

// sqlPlanScrub spreads the first look at an object over the whole time, by its
// name: some of what was written today is read tomorrow.
const sqlPlanScrub = `
update volume_pack p set check_at = p.created_at + (1 + get_byte(p.id, 0) * 30 / 256) * interval '1 day'
from (select volume_id, id from volume_pack where check_at is null and committed_seq is not null limit $1) as fresh
where p.volume_id = fresh.volume_id and p.id = fresh.id`

const sqlClaimScrub = `
with due as (
  select p.volume_id, p.id from volume_pack p
  where p.check_at <= @now and p.committed_seq is not null
  order by p.check_at limit @most for update skip locked)
update volume_pack p set check_at = @until from due
where p.volume_id = due.volume_id and p.id = due.id
returning p.volume_id, p.id, p.kind, p.size_bytes`

const sqlEndScrub = `update volume_pack set check_at = $3 where volume_id = $1 and id = $2`

const sqlPlanSnapshots = `
update volume_snapshot s set check_at = s.created_at + (1 + get_byte(s.snapshot_id, 0) * 30 / 256) * interval '1 day'
from (select volume_id, seq from volume_snapshot where check_at is null and published_at is not null limit $1) as fresh
where s.volume_id = fresh.volume_id and s.seq = fresh.seq`

const sqlClaimSnapshots = `
with due as (
  select s.volume_id, s.seq from volume_snapshot s
  where s.check_at <= @now and s.published_at is not null
  order by s.check_at limit @most for update skip locked)
update volume_snapshot s set check_at = @until from due
where s.volume_id = due.volume_id and s.seq = due.seq
returning s.volume_id, s.snapshot_id as id, 'snapshot' as kind, @size::bigint as size_bytes`

const sqlEndSnapshot = `update volume_snapshot set check_at = $3 where volume_id = $1 and snapshot_id = $2`

// A shelf is a table of objects that are scrubbed. Nothing here reads a
// snapshot's own object; whoever has only the store and a public tool needs it.
type shelf struct{ plan, claim, end string }

var (
	packs     = shelf{sqlPlanScrub, sqlClaimScrub, sqlEndScrub}
	snapshots = shelf{sqlPlanSnapshots, sqlClaimSnapshots, sqlEndSnapshot}
)

// A suspect is an object that is looked at.
type suspect struct {
	VolumeID  uuid.UUID
	ID        []byte
	Kind      agentapi.Kind
	SizeBytes int64
}

func (x suspect) object() object { return object{ID: x.ID, Kind: x.Kind, SizeBytes: x.SizeBytes} }

// ScrubDue reads the objects whose turn it is, each once in 30 days, and holds
// their bytes against their names. What differs, or is missing, is recorded
// with the newest version that is whole without it. A store that fails ends it;
// what was not looked at comes again.
func (s *Service) ScrubDue(ctx context.Context) error {
	if err := s.endDamage(ctx); err != nil {
		return err
	}
	for _, one := range []shelf{packs, snapshots} {
		if err := s.scrubShelf(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) scrubShelf(ctx context.Context, of shelf) error {
	for {
		tag, err := s.Pool.Exec(ctx, of.plan, scrubPlan)
		if err != nil {
			return fmt.Errorf("plan the scrub: %w", err)
		}
		if tag.RowsAffected() < scrubPlan {
			break
		}
	}
	for ctx.Err() == nil {
		now := s.Clock.Now()
		rows, err := s.Pool.Query(ctx, of.claim, pgx.NamedArgs{
			"now": now, "until": now.Add(scrubClaim), "most": scrubBatch, "size": agentapi.MaxSnapshot,
		})
		if err != nil {
			return fmt.Errorf("claim objects to scrub: %w", err)
		}
		due, err := pgx.CollectRows(rows, pgx.RowToStructByName[suspect])
		if err != nil {
			return fmt.Errorf("claim objects to scrub: %w", err)
		}
		for _, x := range due {
			if err := s.scrub(ctx, of, x); err != nil {
				return err
			}
		}
		if len(due) < scrubBatch {
			return nil
		}
	}
	return ctx.Err()
}

// scrub looks at one object; twice before it is called damaged, since it may
// have been broken on the way.
func (s *Service) scrub(ctx context.Context, of shelf, x suspect) error {
	what, err := s.lookAt(ctx, x)
	if err == nil && what != "" {
		what, err = s.lookAt(ctx, x)
	}
	if err != nil {
		return fmt.Errorf("scrub object %s of volume %s: %w", snapshot.ID(x.ID), x.VolumeID, err)
	}
	next := scrubEvery
	if what != "" {
		next = scrubAgain
		if err := s.recordDamage(ctx, x, what); err != nil {
			return err
		}
	} else if _, err := s.Pool.Exec(ctx, sqlHealDamage, x.VolumeID, string(x.Kind), x.ID, s.Clock.Now()); err != nil {
		return fmt.Errorf("record that object %s is whole: %w", snapshot.ID(x.ID), err)
	}
	if _, err := s.Pool.Exec(ctx, of.end, x.VolumeID, x.ID, s.Clock.Now().Add(next)); err != nil {
		return fmt.Errorf("end the scrub of object %s: %w", snapshot.ID(x.ID), err)
	}
	return nil
}

// lookAt says what is wrong with an object; "" is nothing.
func (s *Service) lookAt(ctx context.Context, x suspect) (string, error) {
	sum, err := s.hashOf(ctx, x.VolumeID, x.object())
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return "missing", nil
	case err != nil:
		return "", err
	case sum != snapshot.ID(x.ID):
		return "differs", nil
	}
	return "", nil
}

const sqlInsertDamage = `
insert into volume_damage (volume_id, kind, id, what, found_at, last_good_seq)
select @volume, @kind, @id, @what, @now, @good
where exists (select from volume_pack where volume_id = @volume and id = @id and committed_seq is not null)
  or exists (select from volume_snapshot where volume_id = @volume and snapshot_id = @id)
on conflict (volume_id, kind, id) do update
set what = excluded.what, ended_at = null,
  last_good_seq = case when @looked or volume_damage.ended_at is not null then excluded.last_good_seq else volume_damage.last_good_seq end,
  found_at = case when volume_damage.ended_at is null then volume_damage.found_at else excluded.found_at end`

const sqlHealDamage = `
update volume_damage set ended_at = $4
where volume_id = $1 and kind = $2 and id = $3 and ended_at is null`

// recordDamage writes down a damaged object and tells the operator. Where the
// last good version cannot be looked for now, the one that was found before
// stays: a locked volume loses no version.
func (s *Service) recordDamage(ctx context.Context, x suspect, what string) error {
	good, err := s.lastGood(ctx, x)
	looked := err == nil
	if err != nil && !errors.Is(err, ErrLocked) {
		s.Logger.WarnContext(ctx, "the last good version is not known", "volume", x.VolumeID, "err", err)
	}
	tag, err := s.Pool.Exec(ctx, sqlInsertDamage, pgx.NamedArgs{
		"volume": x.VolumeID, "kind": string(x.Kind), "id": x.ID, "what": what, "now": s.Clock.Now(), "good": good, "looked": looked,
	})
	if err != nil {
		return fmt.Errorf("record the damage of object %s: %w", snapshot.ID(x.ID), err)
	}
	if tag.RowsAffected() > 0 {
		s.Logger.ErrorContext(ctx, "an object of a volume is damaged in the store", "volume", x.VolumeID, "kind", string(x.Kind),
			"object", snapshot.ID(x.ID).String(), "what", what, "last_good_version", good)
	}
	return nil
}

// lastGood finds the newest version that does without an object; nil: none. The
// fault is ErrLocked.
func (s *Service) lastGood(ctx context.Context, x suspect) (*int64, error) {
	v, err := findState(ctx, s.Pool, sqlFindState, x.VolumeID)
	if err != nil || x.Kind == agentapi.KindIndex { // without it nothing is found
		return nil, err
	}
	versions, err := s.keptVersions(ctx, s.Pool, v.ID)
	if err != nil {
		return nil, err
	}
	if x.Kind == kindSnapshot {
		for _, one := range versions {
			if !bytes.Equal(one.SnapshotID, x.ID) {
				return &one.Seq, nil
			}
		}
		return nil, nil
	}
	k, err := s.openKeys(v)
	if err != nil {
		return nil, err
	}
	indexes, err := s.listRows(ctx, sqlListIndexes, v.ID)
	if err != nil {
		return nil, err
	}
	ctx, done := s.opened.begin(ctx, v)
	defer done()
	src := snapshot.StoreReader(s.Store, v.prefix(), idsOf(indexes))
	for _, one := range versions {
		uses, err := snapshot.Uses(ctx, src, k.master, snapshot.ID(one.TreeID), []snapshot.ID{snapshot.ID(x.ID)})
		if err = becauseLocked(ctx, err); err != nil {
			return nil, err
		}
		if !uses {
			return &one.Seq, nil
		}
	}
	return nil, nil
}

// sqlLookAgain lets the next scrub look for the whole versions of a volume that
// has been unlocked.
const sqlLookAgain = `
update volume_pack p set check_at = $2 from volume_damage d
where p.volume_id = $1 and d.volume_id = p.volume_id and d.id = p.id and d.ended_at is null and d.last_good_seq is null`

const sqlEndDamage = `
update volume_damage d set ended_at = $1
where d.ended_at is null and not exists (
  select from volume_pack p where p.volume_id = d.volume_id and p.id = d.id and p.committed_seq is not null)
  and not exists (select from volume_snapshot s where s.volume_id = d.volume_id and s.snapshot_id = d.id)`

// endDamage ends the record of what no version needs any more.
func (s *Service) endDamage(ctx context.Context) error {
	if _, err := s.Pool.Exec(ctx, sqlEndDamage, s.Clock.Now()); err != nil {
		return fmt.Errorf("end damage: %w", err)
	}
	return nil
}

// A Damage is an object that the store does not give back as it was written.
type Damage struct {
	VolumeID    uuid.UUID
	TeamID      uuid.UUID
	Name        string // of the volume
	Kind        string
	ID          []byte
	What        string // "missing" or "differs"
	FoundAt     time.Time
	LastGoodSeq *int64 // newest version that is whole; nil: none is known
	Locked      bool   // its whole versions are looked for once it is unlocked
}

const sqlListDamage = `
select d.volume_id, v.team_id, v.name, d.kind, d.id, d.what, d.found_at, d.last_good_seq,
  v.team_key and v.key_sealed is null as locked
from volume_damage d join volume v on v.id = d.volume_id
where d.ended_at is null
order by d.found_at, d.volume_id, d.id limit 1000`

// ListDamage returns what is damaged now, for the operator.
func (s *Service) ListDamage(ctx context.Context) ([]Damage, error) {
	rows, err := s.Pool.Query(ctx, sqlListDamage)
	if err != nil {
		return nil, fmt.Errorf("list damage: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[Damage])
	if err != nil {
		return nil, fmt.Errorf("list damage: %w", err)
	}
	return list, nil
}

const sqlCountTrouble = `
select (select coalesce(sum(size_bytes), 0)::bigint from volume_garbage),
  (select count(*) from volume_damage where ended_at is null)`

// Trouble is how many bytes wait to be deleted, and how many objects are
// damaged.
func (s *Service) Trouble(ctx context.Context) (garbage, damaged int64, err error) {
	if err := s.Pool.QueryRow(ctx, sqlCountTrouble).Scan(&garbage, &damaged); err != nil {
		return 0, 0, fmt.Errorf("count garbage and damage: %w", err)
	}
	return garbage, damaged, nil
}
