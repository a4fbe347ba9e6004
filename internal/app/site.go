package app

import (
	"encoding/json"
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"homeport.dev/homeport/internal/api"
	"homeport.dev/homeport/internal/apitype"
)

// site serves the page: its files, and one of its two documents for every
// other path, because the page has its own routes.
type site struct {
	files  fs.FS
	config []byte
	// policy is the Content-Security-Policy of the landing page, the one
	// document with a script and a style sheet in itself.
	policy string
	// made are documents that differ from their files.
	made map[string]document
}

const landingFile = "landing.html"

// document is a page made at the start, plain and gzipped.
type document struct{ plain, gzipped []byte }

// newSite makes the site of a build. policy writes the Content-Security-Policy
// of a document that holds the given sources in itself.
func newSite(files fs.FS, c apitype.Config, policy func(inline) string) (*site, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	landing, err := fs.ReadFile(files, landingFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without a build there is no page, but an API
		return nil, err
	}
	return &site{files: files, config: text, policy: policy(inlineOf(string(landing))), made: map[string]document{}}, nil
}

// ServeHTTP answers GET and HEAD.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		api.WriteFault(w, api.ErrNoPath)
		return
	}
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	switch {
	case name == "config.json":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write(s.config) // the client went away
		return
	case name == "" || name == "home":
		name = landingFile
	case !s.has(name) && strings.HasPrefix(name, "assets/"):
		http.NotFound(w, r)
		return
	case !s.has(name):
		name = "index.html"
	}
	if strings.HasPrefix(name, "assets/") {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		w.Header().Set("Cache-Control", "no-cache")
	}
	if name == landingFile {
		w.Header().Set("Content-Security-Policy", s.policy)
	}
	s.serve(w, r, name)
}

// has reports whether browsers may ask for a file; those of the build itself
// have a dot before their names.
func (s *site) has(name string) bool {
	if strings.HasPrefix(name, ".") {
		return false
	}
	info, err := fs.Stat(s.files, name)
	return err == nil && !info.IsDir()
}

// encodings are the precompressed forms a file may have, best first.
var encodings = []struct{ name, suffix string }{{"br", ".br"}, {"gzip", ".gz"}}

func (s *site) serve(w http.ResponseWriter, r *http.Request, name string) {
	h := w.Header()
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		h.Set("Content-Type", t)
	}
	h.Add("Vary", "Accept-Encoding")
	if made, ok := s.made[name]; ok {
		text := made.plain
		if accepts(r, "gzip") {
			h.Set("Content-Encoding", "gzip")
			text = made.gzipped
		}
		_, _ = w.Write(text) // a page of ours, its texts escaped; an error means the client went away
		return
	}
	for _, e := range encodings {
		if !accepts(r, e.name) || !s.has(name+e.suffix) {
			continue
		}
		text, err := fs.ReadFile(s.files, name+e.suffix)
		if err != nil {
			break
		}
		h.Set("Content-Encoding", e.name)
		_, _ = w.Write(text) //nolint:gosec // a file of the site; an error means the client went away
		return
	}
	text, err := fs.ReadFile(s.files, name)
	if err != nil {
		http.Error(w, "The page is not built: run make web.", http.StatusNotFound)
		return
	}
	_, _ = w.Write(text) //nolint:gosec // a file of the site; an error means the client went away
}

func accepts(r *http.Request, encoding string) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == encoding && strings.TrimSpace(q) != "q=0" {
			return true
		}
	}
	return false
}
