package app

import (
	"context"
	"io"
	"time"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/volume"
)

// A VersionLine is a version of a volume as the operator sees it.
type VersionLine struct {
	Version      int64     `json:"version"`
	CreatedAt    time.Time `json:"created_at"`
	Newest       bool      `json:"newest"`
	SizeBytes    int64     `json:"size_bytes"`
	Entries      int64     `json:"entries"`
	PodID        string    `json:"pod_id,omitempty"`
	RestoredFrom *int64    `json:"restored_from,omitempty"`
	Added        *int64    `json:"files_added,omitempty"`
	Changed      *int64    `json:"files_changed,omitempty"`
	Removed      *int64    `json:"files_removed,omitempty"`
}

// An EntryLine is an entry of a folder of a version.
type EntryLine struct {
	Name       string    `json:"name"`
	Mode       string    `json:"mode"`
	Size       int64     `json:"size"`
	ModifiedAt time.Time `json:"modified_at"`
	Target     string    `json:"target,omitempty"`
}

// VolumeVersions lists the versions of any volume, newest first.
func (m *Admin) VolumeVersions(ctx context.Context, volumeID uuid.UUID) ([]VersionLine, error) {
	versions, err := m.app.volumes.AllVersions(ctx, volumeID)
	if err != nil {
		return nil, err
	}
	lines := make([]VersionLine, len(versions))
	for i, v := range versions {
		lines[i] = versionLine(v)
	}
	return lines, nil
}

func versionLine(v volume.Version) VersionLine {
	l := VersionLine{
		Version: v.Seq, CreatedAt: v.CreatedAt, Newest: v.Newest, SizeBytes: v.SizeBytes, Entries: v.Entries, RestoredFrom: v.RestoredSeq,
	}
	if v.RestoredSeq == nil {
		l.PodID = v.PodID.String()
	}
	if v.Changes != nil {
		l.Added, l.Changed, l.Removed = &v.Changes.Added, &v.Changes.Changed, &v.Changes.Removed
	}
	return l
}

// listAtOnce is how many entries VolumeList asks for at a time.
const listAtOnce = 10_000

// VolumeList calls fn with each entry of a folder of a version, folders first.
// version is a number or volume.Latest, path relative to /workspace.
func (m *Admin) VolumeList(ctx context.Context, volumeID uuid.UUID, version, path string, fn func(EntryLine) error) error {
	o, err := m.app.volumes.OpenAnyVersion(ctx, volumeID, version)
	if err != nil {
		return err
	}
	for offset := 0; ; offset += listAtOnce {
		nodes, total, err := o.List(ctx, path, offset, listAtOnce)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			line := EntryLine{Name: n.Name, Mode: n.Mode.String(), Size: n.Size, ModifiedAt: n.MTime, Target: n.Target}
			if err := fn(line); err != nil {
				return err
			}
		}
		if offset+len(nodes) >= total {
			return nil
		}
	}
}

// VolumeCat writes a file of a version.
func (m *Admin) VolumeCat(ctx context.Context, w io.Writer, volumeID uuid.UUID, version, path string) error {
	o, err := m.app.volumes.OpenAnyVersion(ctx, volumeID, version)
	if err != nil {
		return err
	}
	f, err := o.File(ctx, path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// VolumeTar writes a folder of a version as a tar archive.
func (m *Admin) VolumeTar(ctx context.Context, w io.Writer, volumeID uuid.UUID, version, path string) error {
	o, err := m.app.volumes.OpenAnyVersion(ctx, volumeID, version)
	if err != nil {
		return err
	}
	a, err := o.Archive(ctx, path)
	if err != nil {
		return err
	}
	defer a.Close()
	return a.WriteTo(ctx, w)
}

// VolumeRestore makes the files of a version the newest again, and returns the
// newest version.
func (m *Admin) VolumeRestore(ctx context.Context, volumeID uuid.UUID, version string) (VersionLine, error) {
	v, err := m.app.volumes.RestoreAnyVersion(ctx, volumeID, version)
	if err != nil {
		return VersionLine{}, err
	}
	return versionLine(v), nil
}
