package api

import (
	"context"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/snapshot"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
)

// ErrPath occurs when a path has a % without two hex digits behind it.
var ErrPath = fault.New(fault.Invalid, "version_path_invalid", "The path is not valid: write % as %25, and other bytes as %XX.")

func (s *server) registerVersions() {
	session(s, huma.Operation{
		OperationID: "list-versions", Method: http.MethodGet, Path: "/volumes/{id}/versions",
		Summary: "The versions of a volume that are kept, newest first",
	}, s.listVersions)
	session(s, huma.Operation{
		OperationID: "restore-version", Method: http.MethodPost, Path: "/volumes/{id}/versions/{version}/restore",
		DefaultStatus: http.StatusOK,
		Summary:       "Make the files of a version the newest again, as a new version; refused while a pod uses the volume",
	}, s.restoreVersion)
	session(s, huma.Operation{
		OperationID: "list-folder", Method: http.MethodGet, Path: "/volumes/{id}/versions/{version}/files",
		Summary: "A folder of a version",
	}, s.listFolder)
	s.registerDownloads()
}

// VersionIn is the input of a call on one version of a volume.
type VersionIn struct {
	OneIn
	Version string `path:"version" example:"12" doc:"A version's number, or latest."`
}

// PathIn is the input of a call on something in a version.
type PathIn struct {
	VersionIn
	Path string `query:"path" example:"runs/7/model.pt" doc:"From /workspace, as listed; empty for /workspace itself."`
}

func (s *server) listVersions(ctx context.Context, p team.Person, in OneIn) (*list[apitype.Version], error) {
	scope, volumeID, err := s.volume(ctx, p, in, team.Read)
	if err != nil {
		return nil, err
	}
	versions, err := s.Volumes.Versions(ctx, scope, volumeID)
	if err != nil {
		return nil, err
	}
	return listOf(versions, versionOf), nil
}

func versionOf(v volume.Version) apitype.Version {
	out := apitype.Version{
		Version: v.Seq, CreatedAt: v.CreatedAt, Newest: v.Newest, SizeBytes: v.SizeBytes, Entries: v.Entries, Kind: "background",
		SizeGB:       apitype.Decimal(money.USD(volume.SizeGBHundredths(v.SizeBytes) * 10_000).Decimal()),
		RestoredFrom: v.RestoredSeq, Skipped: v.Skipped, Unstable: v.Unstable,
	}
	switch {
	case v.RestoredSeq != nil:
		out.Kind = "restored"
	case v.Final:
		out.Kind = "final"
	}
	if v.RestoredSeq == nil {
		podID := v.PodID.String()
		out.PodID = &podID
	}
	if c := v.Changes; c != nil {
		out.FilesAdded, out.FilesChanged, out.FilesRemoved = &c.Added, &c.Changed, &c.Removed
	}
	return out
}

type restoreVersionIn struct {
	VersionIn
	Key string `header:"Idempotency-Key" maxLength:"255"`
}

func (s *server) restoreVersion(ctx context.Context, p team.Person, in restoreVersionIn) (*body[apitype.Version], error) {
	scope, volumeID, err := s.volume(ctx, p, in.OneIn, team.Use)
	if err != nil {
		return nil, err
	}
	route := "POST /volumes/" + volumeID.String() + "/versions/" + in.Version + "/restore"
	once := Once{Key: in.Key}.request(s, p, route, scope.TeamID().String())
	v, err := s.Volumes.RestoreVersion(ctx, scope, volumeID, in.Version, once)
	if err != nil {
		return nil, err
	}
	return &body[apitype.Version]{Body: versionOf(v)}, nil
}

// open opens the version that a call names.
func (s *server) open(ctx context.Context, p team.Person, in VersionIn) (*volume.Open, error) {
	scope, volumeID, err := s.volume(ctx, p, in.OneIn, team.Read)
	if err != nil {
		return nil, err
	}
	return s.Volumes.OpenVersion(ctx, scope, volumeID, in.Version)
}

type folderIn struct {
	PathIn
	Offset int `query:"offset" minimum:"0" default:"0"`
	Limit  int `query:"limit" minimum:"1" maximum:"1000" default:"200"`
}

func (s *server) listFolder(ctx context.Context, p team.Person, in folderIn) (*body[apitype.Folder], error) {
	path, err := parsePath(in.Path)
	if err != nil {
		return nil, err
	}
	v, err := s.open(ctx, p, in.VersionIn)
	if err != nil {
		return nil, err
	}
	nodes, total, err := v.List(ctx, path, in.Offset, in.Limit)
	if err != nil {
		return nil, err
	}
	path = strings.Trim(path, "/")
	out := apitype.Folder{
		Version: v.Version.Seq, Path: writePath(path), Total: total, Offset: in.Offset, Entries: make([]apitype.FolderEntry, len(nodes)),
	}
	if path != "" {
		path += "/"
	}
	for i, n := range nodes {
		out.Entries[i] = entryOf(path, n)
	}
	return &body[apitype.Folder]{Body: out}, nil
}

func entryOf(in string, n snapshot.Node) apitype.FolderEntry {
	e := apitype.FolderEntry{
		Name: strings.ToValidUTF8(n.Name, "\uFFFD"), Path: writePath(in + n.Name), Type: "other", ModifiedAt: n.MTime, Mode: n.Mode.String(),
	}
	switch {
	case n.Mode.IsDir():
		e.Type = "folder"
	case n.Mode.IsRegular():
		e.Type, e.Size = "file", n.Size
	case n.Target != "":
		target := strings.ToValidUTF8(n.Target, "\uFFFD")
		e.Type, e.Target = "link", &target
	}
	return e
}

const hexDigits = "0123456789ABCDEF"

// writePath writes a path as text: what JSON cannot hold, and %, as %XX.
func writePath(path string) string {
	var b strings.Builder
	for len(path) > 0 {
		r, n := utf8.DecodeRuneInString(path)
		if r == '%' || r == utf8.RuneError && n == 1 {
			b.WriteByte('%')
			b.WriteByte(hexDigits[path[0]>>4])
			b.WriteByte(hexDigits[path[0]&15])
		} else {
			b.WriteString(path[:n])
		}
		path = path[n:]
	}
	return b.String()
}

// parsePath is the reverse of writePath. The fault is ErrPath.
func parsePath(text string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		if i+2 >= len(text) || unhex(text[i+1]) < 0 || unhex(text[i+2]) < 0 {
			return "", ErrPath
		}
		b.WriteByte(byte(unhex(text[i+1])<<4 | unhex(text[i+2])))
		i += 2
	}
	return b.String(), nil
}

func unhex(c byte) int { return strings.IndexByte(hexDigits, upper(c)) }

func upper(c byte) byte {
	if c >= 'a' && c <= 'f' {
		c -= 'a' - 'A'
	}
	return c
}
