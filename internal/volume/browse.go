package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/snapshot"
	"homeport.dev/homeport/internal/team"
)

// Faults of reading a version.
var (
	// ErrDamaged occurs when what is asked for of a version is not in the store as it was written.
	ErrDamaged = fault.New(fault.Unavailable, "volume_version_damaged", "This part of the version is damaged in the store and cannot be read. Its other files, and other versions, may be whole.")
	// ErrDownloads occurs when a team downloads as much at once as it may.
	ErrDownloads = fault.New(fault.TooMany, "volume_downloads", "Your team already has 4 downloads running. Please wait until one has ended.")
)

// downloadsAtOnce is how many downloads one team may have on a node.
const downloadsAtOnce = 4

// An Open is a version of a volume, ready to be read without a pod. Its faults
// are ErrDamaged and those of snapshot.View.
type Open struct {
	Version Version
	service *Service
	volume  state
	view    *snapshot.View
}

// OpenVersion opens a version of a team's volume, by its number or as Latest.
// The faults are ErrNotFound, also for a volume in the trash, ErrFrozen,
// ErrLocked, ErrNoVersion and ErrDamaged.
func (s *Service) OpenVersion(ctx context.Context, scope team.Scope, volumeID uuid.UUID, number string) (*Open, error) {
	v, err := s.Find(ctx, scope, volumeID)
	switch {
	case err != nil:
		return nil, err
	case v.Deleted:
		return nil, ErrNotFound
	case v.Frozen:
		return nil, ErrFrozen
	case v.Locked:
		return nil, ErrLocked
	}
	return s.OpenAnyVersion(ctx, volumeID, number)
}

// OpenAnyVersion is OpenVersion for the operator, also of volumes that are
// frozen or in the trash.
func (s *Service) OpenAnyVersion(ctx context.Context, volumeID uuid.UUID, number string) (*Open, error) {
	v, err := findState(ctx, s.Pool, sqlFindState, volumeID)
	if err != nil {
		return nil, err
	}
	versions, err := s.keptVersions(ctx, s.Pool, volumeID)
	if err != nil {
		return nil, err
	}
	o := &Open{service: s, volume: v}
	if o.Version, err = pick(versions, number); err != nil {
		return nil, err
	}
	if o.view, err = s.view(ctx, v, o.Version); err != nil {
		return nil, o.damaged(ctx, err)
	}
	return o, nil
}

// view opens the snapshot of a version.
func (s *Service) view(ctx context.Context, v state, version Version) (*snapshot.View, error) {
	k, err := s.openKeys(v)
	if err != nil {
		return nil, err
	}
	rows, err := s.listRows(ctx, sqlListIndexes, v.ID)
	if err != nil {
		return nil, err
	}
	indexes := make([]snapshot.ID, len(rows))
	for i, o := range rows {
		indexes[i] = snapshot.ID(o.ID)
	}
	ctx, done := s.opened.begin(ctx, v)
	defer done()
	src := snapshot.StoreReader(s.Store, v.prefix(), indexes)
	view, err := snapshot.OpenView(ctx, src, k.master, snapshot.ID(version.TreeID), s.measured, s.folders)
	if err = becauseLocked(ctx, err); err != nil {
		return nil, fmt.Errorf("open version %d of volume %s: %w", version.Seq, v.ID, err)
	}
	return view, nil
}

// VolumeName is the name of the version's volume.
func (o *Open) VolumeName() string { return o.volume.Name }

// damaged turns what the engine says of damaged data into what a person may
// know of it, and tells the operator.
func (o *Open) damaged(ctx context.Context, err error) error {
	if !errors.Is(err, snapshot.ErrDamaged) {
		return err
	}
	o.service.Logger.ErrorContext(ctx, "a version is damaged in the store", "volume", o.volume.ID, "seq", o.Version.Seq, "err", err)
	return ErrDamaged.Because(err)
}

// List returns up to limit entries of a folder from offset on, folders first,
// and how many there are.
func (o *Open) List(ctx context.Context, path string, offset, limit int) ([]snapshot.Node, int, error) {
	ctx, done := o.service.opened.begin(ctx, o.volume)
	defer done()
	nodes, total, err := o.view.List(ctx, path, offset, limit)
	if err = becauseLocked(ctx, err); err != nil {
		return nil, 0, o.damaged(ctx, err)
	}
	return nodes, total, nil
}

// A File is a file of a version. Close it.
type File struct {
	*snapshot.File
	done func()
}

// Close ends the download.
func (f *File) Close() {
	f.File.Close()
	f.done()
}

// File opens a file; reading it ends when the volume is locked. Another fault is
// ErrDownloads.
func (o *Open) File(ctx context.Context, path string) (*File, error) {
	ctx, done, err := o.download(ctx)
	if err != nil {
		return nil, err
	}
	f, err := o.view.OpenFile(ctx, path)
	if err = becauseLocked(ctx, err); err != nil {
		done()
		return nil, o.damaged(ctx, err)
	}
	return &File{File: f, done: done}, nil
}

// download begins one. The fault is ErrDownloads.
func (o *Open) download(ctx context.Context) (_ context.Context, done func(), err error) {
	counted, err := o.service.downloads.begin(o.volume.TeamID)
	if err != nil {
		return ctx, nil, err
	}
	ctx, read := o.service.opened.begin(ctx, o.volume)
	return ctx, func() {
		read()
		counted()
	}, nil
}

// An Archive is a folder of a version, to be written as a tar archive. Close it.
type Archive struct {
	*snapshot.Archive
	of   *Open
	done func()
}

// Close ends the download.
func (a *Archive) Close() { a.done() }

// WriteTo is snapshot.Archive's; another fault is ErrLocked, when the volume is
// locked meanwhile.
func (a *Archive) WriteTo(ctx context.Context, w io.Writer) error {
	ctx, done := a.of.service.opened.begin(ctx, a.of.volume)
	defer done()
	return becauseLocked(ctx, a.Archive.WriteTo(ctx, w))
}

// Archive opens a folder as an archive. Another fault is ErrDownloads.
func (o *Open) Archive(ctx context.Context, path string) (*Archive, error) {
	ctx, done, err := o.download(ctx)
	if err != nil {
		return nil, err
	}
	a, err := o.view.OpenArchive(ctx, path)
	if err = becauseLocked(ctx, err); err != nil {
		done()
		return nil, o.damaged(ctx, err)
	}
	return &Archive{Archive: a, of: o, done: done}, nil
}

// downloads counts those that run on this node, by team.
type downloads struct {
	mu      sync.Mutex
	running map[uuid.UUID]int
}

// begin counts one more until done is called. The fault is ErrDownloads.
func (d *downloads) begin(teamID uuid.UUID) (done func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running[teamID] >= downloadsAtOnce {
		return nil, ErrDownloads.After(10)
	}
	if d.running == nil {
		d.running = map[uuid.UUID]int{}
	}
	d.running[teamID]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.running[teamID]--; d.running[teamID] == 0 {
			delete(d.running, teamID)
		}
	}, nil
}
