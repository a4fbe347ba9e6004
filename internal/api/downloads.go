package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
)

// downloadCookie holds the session's own token where a browser follows a plain
// link, which carries no header: a download may be larger than what a page can
// hold. The token is in no address, no script reads it, it is sent to downloads
// alone and proven there like any other, so it ends with the session.
const downloadCookie = "homeport-download"

// downloadFor is how long a browser keeps the cookie, in seconds: as long as a
// token lives.
const downloadFor = 15 * 60

func (s *server) registerDownloads() {
	session(s, huma.Operation{
		OperationID: "allow-downloads", Method: http.MethodPost, Path: "/volumes/downloads", DefaultStatus: http.StatusNoContent,
		Summary: "Let this browser download files of volumes by plain links for a while: sets a cookie for them alone",
	}, s.allowDownloads)
	file := func(kind string) map[string]*huma.Response {
		schema := &huma.Schema{Type: huma.TypeString, Format: "binary"}
		return map[string]*huma.Response{"200": {Description: "The bytes", Content: map[string]*huma.MediaType{kind: {Schema: schema}}}}
	}
	download(s, huma.Operation{
		OperationID: "get-file", Method: http.MethodGet, Path: "/volumes/{id}/versions/{version}/file",
		Summary: "A file of a version; ranges are served", Responses: file("application/octet-stream"),
	}, s.getFile)
	download(s, huma.Operation{
		OperationID: "get-archive", Method: http.MethodGet, Path: "/volumes/{id}/versions/{version}/tar",
		Summary: "A folder of a version as a tar archive", Responses: file("application/x-tar"),
	}, s.getArchive)
}

// download registers a session call that a plain link may make too.
func download[I any](s *server, op huma.Operation, fn func(context.Context, team.Person, I) (*huma.StreamResponse, error)) {
	op.Middlewares = append(op.Middlewares, func(ctx huma.Context, next func(huma.Context)) {
		if r, _ := humago.Unwrap(ctx); r.Header.Get("Authorization") == "" {
			if c, err := r.Cookie(downloadCookie); err == nil {
				r.Header.Set("Authorization", "Bearer "+c.Value)
			}
		}
		next(ctx)
	})
	session(s, op, fn)
}

type allowIn struct {
	Bearer
}

type allowOut struct {
	SetCookie string `header:"Set-Cookie"`
}

func (s *server) allowDownloads(_ context.Context, _ team.Person, in allowIn) (*allowOut, error) {
	c := &http.Cookie{ //nolint:gosec // Secure wherever the product is reached by https
		Name: downloadCookie, Value: token(in.Authorization), Path: s.CookiePath, MaxAge: downloadFor, HttpOnly: true,
		Secure: s.Secure, SameSite: http.SameSiteStrictMode,
	}
	return &allowOut{SetCookie: c.String()}, nil
}

// attachment writes the headers of a file from a volume: its bytes are somebody's
// own, and no browser may take them for a page of ours.
func attachment(w http.ResponseWriter, name, kind string) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", disposition(name))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// disposition names a download by RFC 6266: once in plain ASCII, and where that
// is not the whole name, once more in UTF-8.
func disposition(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f || strings.ContainsRune(`"%\/`, r) {
			return '_'
		}
		return r
	}, name)
	out := `attachment; filename="` + plain + `"`
	if plain != name {
		whole := url.QueryEscape(strings.ToValidUTF8(name, string(utf8.RuneError)))
		out += "; filename*=UTF-8''" + strings.ReplaceAll(whole, "+", "%20")
	}
	return out
}

func (s *server) getFile(ctx context.Context, p team.Person, in PathIn) (*huma.StreamResponse, error) {
	path, err := parsePath(in.Path)
	if err != nil {
		return nil, err
	}
	v, err := s.open(ctx, p, in.VersionIn)
	if err != nil {
		return nil, err
	}
	f, err := v.File(ctx, path)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer f.Close()
		r, w := humago.Unwrap(hc)
		attachment(w, f.Name, "application/octet-stream")
		w.Header().Set("ETag", `"`+f.Tag+`"`)
		// What breaks off is shorter than promised: the connection ends, and the client knows.
		http.ServeContent(w, r, "", f.MTime, f)
	}}, nil
}

func (s *server) getArchive(ctx context.Context, p team.Person, in PathIn) (*huma.StreamResponse, error) {
	path, err := parsePath(in.Path)
	if err != nil {
		return nil, err
	}
	v, err := s.open(ctx, p, in.VersionIn)
	if err != nil {
		return nil, err
	}
	a, err := v.Archive(ctx, path)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer a.Close()
		r, w := humago.Unwrap(hc)
		attachment(w, archiveName(v, a, path)+".tar", "application/x-tar")
		if r.Method == http.MethodHead {
			return
		}
		err := a.WriteTo(ctx, w)
		if err == nil {
			return
		}
		if ctx.Err() == nil && !errors.Is(err, volume.ErrLocked) {
			s.Logger.ErrorContext(ctx, "an archive broke off", "volume", in.ID, "version", in.Version, "err", err)
		}
		panic(http.ErrAbortHandler) // an archive that ends early must not look whole
	}}, nil
}

// archiveName is the folder's name; /workspace goes by the name of its volume.
func archiveName(v *volume.Open, a *volume.Archive, path string) string {
	if strings.Trim(path, "/") == "" {
		return v.VolumeName()
	}
	return a.Name
}
