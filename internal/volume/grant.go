package volume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/snapshot"
)

// statsAtOnce is how many objects are asked for at the same time.
const statsAtOnce = 16

// Grant returns all that an agent needs to restore and sync its volume. The
// first one makes the volume's keys and repository. After a restart of the
// agent it lists the objects that are uploaded and not committed yet. It asks
// the store, so it must not be called inside a transaction. The fault is
// ErrFenced.
func (s *Service) Grant(ctx context.Context, a Attachment, restart bool) (agentapi.VolumeGrant, error) {
	v, err := findHeld(ctx, s.Pool, sqlFindState, a)
	if err != nil {
		return agentapi.VolumeGrant{}, err
	}
	keys, err := s.ensureRepository(ctx, v)
	if err != nil {
		return agentapi.VolumeGrant{}, err
	}
	master, err := json.Marshal(keys.master)
	if err != nil {
		return agentapi.VolumeGrant{}, fmt.Errorf("encode the key of volume %s: %w", v.ID, err)
	}
	indexes, err := s.listObjects(ctx, sqlListIndexes, v.ID)
	if err != nil {
		return agentapi.VolumeGrant{}, err
	}
	g := agentapi.VolumeGrant{
		ID: v.ID.String(), Epoch: v.Epoch, Key: master, ChunkerKey: keys.chunker, Head: v.head(),
		Indexes: indexes, SizeBytes: v.SizeBytes, QuotaBytes: QuotaBytes, Resume: []agentapi.Object{}, CreatedAt: v.CreatedAt,
	}
	if restart {
		if g.Resume, err = s.resumable(ctx, v); err != nil {
			return agentapi.VolumeGrant{}, err
		}
	}
	return g, s.noteSeen(ctx, a, v)
}

const sqlNoteSeen = `
update volume set seen_generation = $4
where id = $1 and epoch = $2 and pod_id = $3 and seen_generation < $4`

// noteSeen records that the agent has the indexes of v's generation, or newer.
func (s *Service) noteSeen(ctx context.Context, a Attachment, v state) error {
	if !v.collected() {
		return nil
	}
	if _, err := s.Pool.Exec(ctx, sqlNoteSeen, a.VolumeID, a.Epoch, a.PodID, v.Generation); err != nil {
		return fmt.Errorf("note what the agent of volume %s has seen: %w", a.VolumeID, err)
	}
	return nil
}

// head is the committed state as agents read it, or nil.
func (v state) head() *agentapi.Head {
	if v.HeadSnapshot == nil {
		return nil
	}
	return &agentapi.Head{
		Snapshot: snapshot.ID(v.HeadSnapshot).String(), Tree: snapshot.ID(v.HeadTree).String(),
		Seq: v.HeadSeq, Time: time.Unix(0, *v.HeadTimeNS).UTC(),
	}
}

// keys are a volume's secrets.
type keys struct {
	master   snapshot.Key
	password string // "": only the team knows it
	chunker  []byte
}

func purposeKey(v uuid.UUID) string      { return "volume key " + v.String() }
func purposePassword(v uuid.UUID) string { return "volume password " + v.String() }
func purposeChunker(v uuid.UUID) string  { return "volume chunker " + v.String() }

const sqlKeepKeys = `
update volume set key_sealed = @key, password_sealed = @password, chunker_key_sealed = @chunker
where id = @id and key_sealed is null`

const sqlMarkRepository = `update volume set repository_made = true where id = $1`

// ensureRepository returns the volume's keys, and makes keys and repository
// when they are missing. A crash between the steps is healed by the next call:
// the keys are kept before the repository is written with them.
func (s *Service) ensureRepository(ctx context.Context, v state) (keys, error) {
	if v.KeySealed == nil && !v.TeamKey {
		sealed, err := s.drawKeys(v.ID)
		if err != nil {
			return keys{}, err
		}
		if _, err := s.Pool.Exec(ctx, sqlKeepKeys, sealed); err != nil {
			return keys{}, fmt.Errorf("keep the keys of volume %s: %w", v.ID, err)
		}
		if v, err = findState(ctx, s.Pool, sqlFindState, v.ID); err != nil { // another call's keys may be there
			return keys{}, err
		}
	}
	k, err := s.openKeys(v)
	if err != nil || v.RepositoryMade {
		return k, err
	}
	if v.TeamKey {
		err = snapshot.CreateRepositoryWith(ctx, s.Store, v.prefix(), k.master, v.KeyFile)
	} else {
		err = snapshot.CreateRepository(ctx, s.Store, v.prefix(), k.master, k.password)
	}
	if err != nil {
		return keys{}, fmt.Errorf("make the repository of volume %s: %w", v.ID, err)
	}
	if _, err := s.Pool.Exec(ctx, sqlMarkRepository, v.ID); err != nil {
		return keys{}, fmt.Errorf("mark the repository of volume %s made: %w", v.ID, err)
	}
	return k, nil
}

func (s *Service) drawKeys(volumeID uuid.UUID) (pgx.NamedArgs, error) {
	key, err := s.sealKey(volumeID, snapshot.NewKey())
	if err != nil {
		return nil, err
	}
	return pgx.NamedArgs{
		"id":       volumeID,
		"key":      key,
		"password": s.Box.Seal([]byte(id.Token()), purposePassword(volumeID)),
		"chunker":  s.Box.Seal(id.Bytes(32), purposeChunker(volumeID)),
	}, nil
}

// openKeys opens a volume's keys. The fault is ErrLocked.
func (s *Service) openKeys(v state) (keys, error) {
	var k keys
	if v.locked() {
		return keys{}, ErrLocked
	}
	master, err := s.Box.Open(v.KeySealed, purposeKey(v.ID))
	if err != nil {
		return keys{}, fmt.Errorf("open the key of volume %s: %w", v.ID, err)
	}
	if err := json.Unmarshal(master, &k.master); err != nil {
		return keys{}, fmt.Errorf("read the key of volume %s: %w", v.ID, err)
	}
	if v.TeamKey {
		s.opened.note(v.ID, k.master)
		k.chunker, err = k.master.ChunkerKey()
		return k, err
	}
	password, err := s.Box.Open(v.PasswordSealed, purposePassword(v.ID))
	if err != nil {
		return keys{}, fmt.Errorf("open the password of volume %s: %w", v.ID, err)
	}
	if k.chunker, err = s.Box.Open(v.ChunkerKeySealed, purposeChunker(v.ID)); err != nil {
		return keys{}, fmt.Errorf("open the chunker key of volume %s: %w", v.ID, err)
	}
	k.password = string(password)
	return k, nil
}

// An object is a row of volume_pack.
type object struct {
	ID           []byte
	Kind         agentapi.Kind
	SizeBytes    int64
	Epoch        int64
	CommittedSeq *int64
}

func (o object) wire() agentapi.Object {
	return agentapi.Object{ID: snapshot.ID(o.ID).String(), Kind: o.Kind, Size: o.SizeBytes}
}

func (o object) key(volumeID uuid.UUID) string {
	if o.Kind == kindSnapshot {
		return snapshot.KeyOf(prefixOf(volumeID), snapshot.ID(o.ID))
	}
	return snapshot.ObjectKey(prefixOf(volumeID), snapshot.Kind(o.Kind), snapshot.ID(o.ID))
}

const sqlListIndexes = `
select id, kind, size_bytes, epoch, committed_seq from volume_pack
where volume_id = $1 and kind = 'index' and committed_seq is not null
order by committed_seq, id`

const sqlListUncommitted = `
select id, kind, size_bytes, epoch, committed_seq from volume_pack
where volume_id = $1 and epoch = $2 and committed_seq is null
order by id`

func (s *Service) listRows(ctx context.Context, sql string, args ...any) ([]object, error) {
	rows, err := s.Pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("list objects: %w", err)
	}
	objects, err := pgx.CollectRows(rows, pgx.RowToStructByName[object])
	if err != nil {
		return nil, fmt.Errorf("list objects: %w", err)
	}
	return objects, nil
}

func (s *Service) listObjects(ctx context.Context, sql string, args ...any) ([]agentapi.Object, error) {
	objects, err := s.listRows(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	out := make([]agentapi.Object, len(objects))
	for i, o := range objects {
		out[i] = o.wire()
	}
	return out, nil
}

// resumable lists what this epoch was granted to upload and did: the store
// knows which of it arrived.
func (s *Service) resumable(ctx context.Context, v state) ([]agentapi.Object, error) {
	granted, err := s.listRows(ctx, sqlListUncommitted, v.ID, v.Epoch)
	if err != nil {
		return nil, err
	}
	sizes, err := s.stat(ctx, v.ID, granted)
	if err != nil {
		return nil, err
	}
	out := []agentapi.Object{}
	for i, o := range granted {
		if sizes[i] == o.SizeBytes {
			out = append(out, o.wire())
		}
	}
	return out, nil
}

// stat asks the store for the sizes of objects; -1 stands for one that is not
// there.
func (s *Service) stat(ctx context.Context, volumeID uuid.UUID, objects []object) ([]int64, error) {
	sizes := make([]int64, len(objects))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(statsAtOnce)
	for i, o := range objects {
		group.Go(func() error {
			info, err := s.Store.Stat(ctx, o.key(volumeID))
			if errors.Is(err, blob.ErrNotFound) {
				sizes[i] = -1
				return nil
			}
			sizes[i] = info.Size
			return err
		})
	}
	return sizes, group.Wait()
}

// A Repository is where a volume's data lies in the store, for a public tool.
type Repository struct {
	Path     string
	Password string // "": only the team knows it
	TeamKey  bool   // its key is the password
	Head     string // the newest snapshot; "" for none
}

// Repository says where a volume's data lies. It is for an operator in an
// emergency. The fault is ErrNotFound, also for a volume that never held
// anything.
func (s *Service) Repository(ctx context.Context, volumeID uuid.UUID) (Repository, error) {
	v, err := findState(ctx, s.Pool, sqlFindState, volumeID)
	if err != nil {
		return Repository{}, err
	}
	if !v.RepositoryMade {
		return Repository{}, ErrNotFound
	}
	r := Repository{Path: v.prefix(), TeamKey: v.TeamKey}
	if h := v.head(); h != nil {
		r.Head = h.Snapshot
	}
	if v.TeamKey {
		return r, nil
	}
	k, err := s.openKeys(v)
	if err != nil {
		return Repository{}, err
	}
	r.Password = k.password
	return r, nil
}
