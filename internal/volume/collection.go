package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/snapshot"
)

// How collections go.
const (
	collectEvery = 24 * time.Hour
	collectAgain = 10 * time.Minute // after one that had more to do, or lost a race
	collectClaim = 2 * time.Hour    // after which another node takes up one that did not end
	collectFor   = 90 * time.Minute // it is given up then
	collectTries = 5                // times that a moving head is followed

	copyMost   = 4 << 30 // bytes of blobs that one collection copies
	smallPack  = 4 << 20 // bytes; packs below are merged
	smallMost  = 16      // of them, before they are
	indexMost  = 64      // index objects, before they are merged
	deadPart   = 20      // a twentieth of all bytes dead is worth a collection
	deadBytes  = 256 << 20
	orphanTime = 24 * time.Hour // after which what was uploaded and not committed is let go
)

// errRaced occurs when the volume changed under a collection in a way that it
// cannot follow. Nothing was changed; it is tried again.
var errRaced = errors.New("the volume changed under the collection")

const sqlPlanCollections = `
update volume set collect_at = $1
where collect_at is null and repository_made and deleted_at is null and purged_at is null`

const sqlClaimCollection = `
with due as (
  select id from volume
  where repository_made and deleted_at is null and purged_at is null and collect_at <= @now
    and (not team_key or key_sealed is not null)
  order by collect_at limit 1 for update skip locked)
update volume v set collect_at = @until from due where v.id = due.id returning v.id`

const sqlEndCollection = `update volume set collect_at = $2 where id = $1`

// CollectDue looks at each volume once a day: it lets go of the versions that
// are not kept any more and of uploads that were never committed, and gives the
// volume smaller packs where much in them is not needed. A locked volume waits
// until it is unlocked. It may be interrupted anywhere and run on several nodes.
// What it replaces is deleted by SweepGarbage.
func (s *Service) CollectDue(ctx context.Context) error {
	start := s.Clock.Now() // what becomes due meanwhile is for the next pass, so that each ends
	if _, err := s.Pool.Exec(ctx, sqlPlanCollections, start.Add(collectEvery)); err != nil {
		return fmt.Errorf("plan collections: %w", err)
	}
	var errs []error
	for ctx.Err() == nil {
		var volumeID uuid.UUID
		claim := pgx.NamedArgs{"now": start, "until": s.Clock.Now().Add(collectClaim)}
		err := s.Pool.QueryRow(ctx, sqlClaimCollection, claim).Scan(&volumeID)
		if errors.Is(err, pgx.ErrNoRows) {
			break
		}
		if err != nil {
			return fmt.Errorf("claim a collection: %w", err)
		}
		more, err := s.Collect(ctx, volumeID)
		if err != nil && !errors.Is(err, errRaced) && !errors.Is(err, ErrLocked) {
			errs = append(errs, err) // the claim ends by itself
			continue
		}
		next := collectEvery
		if more || err != nil {
			next = collectAgain
		}
		if _, err := s.Pool.Exec(ctx, sqlEndCollection, volumeID, s.Clock.Now().Add(next)); err != nil {
			return fmt.Errorf("end the collection of volume %s: %w", volumeID, err)
		}
	}
	return errors.Join(errs...)
}

// Collect collects one volume and says whether there is more to do at once.
func (s *Service) Collect(ctx context.Context, volumeID uuid.UUID) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, collectFor)
	defer cancel()
	if err := s.condemnOrphans(ctx, volumeID); err != nil {
		return false, err
	}
	c, err := s.beginCollection(ctx, volumeID)
	if err != nil || c == nil {
		return false, err
	}
	ctx, done := s.opened.begin(ctx, c.volume)
	defer done()
	more, err = c.run(ctx)
	return more, becauseLocked(ctx, err)
}

// run is Collect, from when the volume is read.
func (c *collection) run(ctx context.Context) (more bool, err error) {
	if err := c.thin(ctx); err != nil {
		return false, err
	}
	usages, err := snapshot.Usages(ctx, c.reader(), c.key, c.kept.Roots)
	if err != nil {
		return false, fmt.Errorf("collect volume %s: %w", c.volume.ID, err)
	}
	strays, err := c.strays(ctx, usages)
	if err != nil {
		return false, err
	}
	drop, again, worth := planCollection(append(usages, strays...), len(c.indexes))
	if !worth {
		if len(c.kept.Expired) == 0 {
			return false, nil
		}
		return false, c.finish(ctx, nil, snapshot.Repacked{})
	}
	made, err := snapshot.Repack(ctx, c.reader(), c.key, c.kept.Roots, drop, c.put)
	if err != nil {
		return false, fmt.Errorf("collect volume %s: %w", c.volume.ID, err)
	}
	if err := c.finish(ctx, drop, made); err != nil {
		return false, err
	}
	c.Logger.InfoContext(ctx, "a volume was collected", "volume", c.volume.ID, "replaced", len(drop), "new_packs", len(made.Packs),
		"versions_dropped", len(c.kept.Expired))
	return again, nil
}

// A collection is one on its way: of a volume as it was when it began.
type collection struct {
	*Service
	volume  state
	key     snapshot.Key
	kept    Kept
	indexes []object // committed up to kept.HeadSeq
}

// beginCollection reads a volume; nil when nothing was ever committed.
func (s *Service) beginCollection(ctx context.Context, volumeID uuid.UUID) (*collection, error) {
	v, err := findState(ctx, s.Pool, sqlFindState, volumeID)
	if err != nil {
		return nil, err
	}
	c := &collection{Service: s, volume: v}
	if c.kept, err = s.Kept(ctx, volumeID); err != nil || c.kept.HeadSeq == 0 {
		return nil, err
	}
	k, err := s.openKeys(v)
	if err != nil {
		return nil, err
	}
	c.key = k.master
	if c.indexes, err = s.listRows(ctx, sqlListIndexes, volumeID); err != nil {
		return nil, err
	}
	// What a later commit brought is not looked at: nothing of it is replaced.
	c.indexes = slices.DeleteFunc(c.indexes, func(o object) bool { return *o.CommittedSeq > c.kept.HeadSeq })
	return c, nil
}

// thin lets go of the oldest versions when all that are kept hold more than
// KeptMost together: who rewrites a large volume all day pays for one of them.
func (c *collection) thin(ctx context.Context) error {
	fit, err := snapshot.Fitting(ctx, c.reader(), c.key, c.kept.Roots, cmp.Or(c.KeptMost, keptMost))
	if err != nil {
		return fmt.Errorf("weigh the versions of volume %s: %w", c.volume.ID, err)
	}
	if fit < len(c.kept.Roots) {
		c.Logger.InfoContext(ctx, "the versions of a volume hold too much: the oldest go", "volume", c.volume.ID, "versions", len(c.kept.Roots)-fit)
	}
	c.kept.Expired = append(c.kept.Expired, c.kept.seqs[fit:]...)
	c.kept.Roots, c.kept.seqs = c.kept.Roots[:fit], c.kept.seqs[:fit]
	return nil
}

// strays are the packs that were committed and are in no index: nothing needs
// them, and nobody pays for them.
func (c *collection) strays(ctx context.Context, listed []snapshot.Usage) ([]snapshot.Usage, error) {
	packs, err := c.listRows(ctx, sqlListPacks, c.volume.ID)
	if err != nil {
		return nil, err
	}
	known := make(map[snapshot.ID]bool, len(listed))
	for _, u := range listed {
		known[u.Pack] = true
	}
	var strays []snapshot.Usage
	for _, o := range packs {
		if !known[snapshot.ID(o.ID)] && *o.CommittedSeq <= c.kept.HeadSeq {
			strays = append(strays, snapshot.Usage{Pack: snapshot.ID(o.ID), Kind: snapshot.Kind(o.Kind), Total: o.SizeBytes})
		}
	}
	return strays, nil
}

func (c *collection) reader() snapshot.Reader {
	return snapshot.StoreReader(c.Store, c.volume.prefix(), idsOf(c.indexes))
}

func idsOf(objects []object) []snapshot.ID {
	ids := make([]snapshot.ID, len(objects))
	for i, o := range objects {
		ids[i] = snapshot.ID(o.ID)
	}
	return ids
}

// planCollection picks the packs to replace. again says that there are more,
// worth that it is worth doing: also without a pack, to merge indexes.
func planCollection(usages []snapshot.Usage, indexes int) (drop []snapshot.ID, again, worth bool) {
	var total, dead int64
	small := map[snapshot.Kind]int{}
	for _, u := range usages {
		total += u.Total
		dead += u.Total - u.Live
		if u.Total < smallPack {
			small[u.Kind]++
		}
	}
	merge := small[snapshot.KindData] > smallMost || small[snapshot.KindTree] > smallMost
	if !merge && indexes <= indexMost && dead*deadPart <= total && dead <= deadBytes {
		return nil, false, false
	}
	// The emptiest first.
	slices.SortFunc(usages, func(a, b snapshot.Usage) int { return cmp.Compare(a.Live*max(b.Total, 1), b.Live*max(a.Total, 1)) })
	copied := int64(0)
	for _, u := range usages {
		if 2*u.Live >= u.Total && !(u.Total < smallPack && small[u.Kind] > smallMost) {
			continue
		}
		if copied += u.Live; copied > copyMost && u.Live > 0 {
			return drop, true, true
		}
		drop = append(drop, u.Pack)
	}
	return drop, false, len(drop) > 0 || indexes > indexMost
}

const sqlInsertRepacked = `
insert into volume_pack (volume_id, id, kind, size_bytes, epoch, created_at)
values (@volume, @id, @kind, @size, 0, @now)
on conflict (volume_id, id) do nothing`

// put stores an object of the collection; that it will be there is recorded
// before. No attachment has the epoch 0: what never counts is an orphan.
func (c *collection) put(ctx context.Context, o snapshot.Object, body []byte) error {
	_, err := c.Pool.Exec(ctx, sqlInsertRepacked, pgx.NamedArgs{
		"volume": c.volume.ID, "id": o.ID[:], "kind": string(o.Kind), "size": o.Size, "now": c.Clock.Now(),
	})
	if err != nil {
		return fmt.Errorf("record an object of the collection: %w", err)
	}
	err = c.Store.Put(ctx, snapshot.ObjectKey(c.volume.prefix(), o.Kind, o.ID), body)
	if errors.Is(err, blob.ErrExists) {
		return nil
	}
	return err
}

// finish makes what was repacked count, in the place of drop and of the indexes
// that there were. The head may have moved since: it is followed.
func (c *collection) finish(ctx context.Context, drop []snapshot.ID, made snapshot.Repacked) error {
	cache := snapshot.NewMeasureCache(cachedTrees)
	for range collectTries {
		head, err := c.prove(ctx, drop, made, cache)
		if err != nil {
			return err
		}
		swapped := false
		err = pg.InTx(ctx, c.Pool, func(tx pgx.Tx) (err error) {
			swapped, err = c.swapTx(ctx, tx, head, drop, made)
			return err
		})
		if err != nil || swapped {
			return err
		}
	}
	return errRaced
}

const sqlListLater = `
select seq, tree_id from volume_snapshot where volume_id = $1 and seq > $2 order by seq`

// prove holds that every version that is kept, and each that was committed
// meanwhile, is whole by the indexes as they will be. It returns the newest
// that it proved. The error is errRaced when a later one builds on what is to
// be replaced.
func (c *collection) prove(ctx context.Context, drop []snapshot.ID, made snapshot.Repacked, cache *snapshot.MeasureCache) (int64, error) {
	head, roots := c.kept.HeadSeq, slices.Clone(c.kept.Roots)
	rows, err := c.Pool.Query(ctx, sqlListLater, c.volume.ID, head)
	if err != nil {
		return 0, fmt.Errorf("list later snapshots of volume %s: %w", c.volume.ID, err)
	}
	var tree []byte
	if _, err := pgx.ForEachRow(rows, []any{&head, &tree}, func() error {
		roots = append(roots, snapshot.ID(tree))
		return nil
	}); err != nil {
		return 0, fmt.Errorf("list later snapshots of volume %s: %w", c.volume.ID, err)
	}
	if len(made.Indexes) == 0 { // nothing is replaced
		return head, nil
	}
	indexes, err := c.later(ctx, drop)
	if err != nil {
		return 0, err
	}
	for _, o := range made.Indexes {
		indexes = append(indexes, o.ID)
	}
	src := snapshot.StoreReader(c.Store, c.volume.prefix(), indexes)
	for _, root := range roots {
		_, err := snapshot.Measure(ctx, src, c.key, root, cache)
		if errors.Is(err, snapshot.ErrDamaged) {
			return 0, fmt.Errorf("%w: volume %s: %w", errRaced, c.volume.ID, err)
		}
		if err != nil {
			return 0, fmt.Errorf("prove the collection of volume %s: %w", c.volume.ID, err)
		}
	}
	return head, nil
}

// later lists the indexes that were committed since the collection began, and
// holds that none of them names a pack that is to be replaced.
func (c *collection) later(ctx context.Context, drop []snapshot.ID) ([]snapshot.ID, error) {
	rows, err := c.listRows(ctx, sqlListIndexes, c.volume.ID)
	if err != nil {
		return nil, err
	}
	gone := make(map[snapshot.ID]bool, len(drop))
	for _, id := range drop {
		gone[id] = true
	}
	var ids []snapshot.ID
	for _, o := range rows {
		if *o.CommittedSeq <= c.kept.HeadSeq {
			continue
		}
		stored, err := c.readObject(ctx, c.volume, o)
		if err != nil {
			return nil, err
		}
		packs, err := snapshot.PacksOf(c.key, stored)
		if err != nil {
			return nil, fmt.Errorf("read index %s of volume %s: %w", snapshot.ID(o.ID), c.volume.ID, err)
		}
		if slices.ContainsFunc(packs, func(id snapshot.ID) bool { return gone[id] }) {
			return nil, fmt.Errorf("%w: volume %s: a later index names a pack that is to go", errRaced, c.volume.ID)
		}
		ids = append(ids, snapshot.ID(o.ID))
	}
	return ids, nil
}
