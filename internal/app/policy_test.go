package app

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/web"
)

func source(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func directive(t *testing.T, policy, name string) string {
	t.Helper()
	for part := range strings.SplitSeq(policy, "; ") {
		if rest, ok := strings.CutPrefix(part, name+" "); ok {
			return rest
		}
	}
	t.Fatalf("no %s in %q", name, policy)
	return ""
}

// The landing page may run and draw exactly the bytes that the build put into
// it; every other document nothing at all of its own.
func TestPolicyAllowsOnlyTheBuildsOwnBytes(t *testing.T) {
	t.Parallel()
	page := func(script, style string) string {
		return "<head><script>" + script + "</script><script src=\"/a.js\"></script><style>" + style + "</style></head>"
	}
	serve := func(html string) *site {
		s, err := newSite(fstest.MapFS{
			"landing.html": {Data: []byte(html)},
			"index.html":   {Data: []byte("<head></head>")},
		}, apitype.Config{}, func(own inline) string { return contentPolicy(Config{}, own) })
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := serve(page("boot(\n1 < 2)", "a{}"))
	for _, path := range []string{"/", "/home", "/landing.html"} {
		_, h := get(t, s, path, "")
		policy := h.Get("Content-Security-Policy")
		if got, want := directive(t, policy, "script-src"), "'self' "+source("boot(\n1 < 2)"); got != want {
			t.Errorf("%s: script-src %q, not %q", path, got, want)
		}
		if got, want := directive(t, policy, "style-src"), "'self' "+source("a{}"); got != want {
			t.Errorf("%s: style-src %q, not %q", path, got, want)
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %q", path, policy)
		}
	}
	if _, h := get(t, s, "/pods", ""); h.Get("Content-Security-Policy") != "" {
		t.Error("the plain shell has a policy of its own beside the one of every answer")
	}
	_, h := get(t, serve(page("boot(\n1 < 3)", "a{}")), "/", "")
	if strings.Contains(h.Get("Content-Security-Policy"), source("boot(\n1 < 2)")) {
		t.Error("another script is still allowed")
	}
}

func TestPolicyOfOtherDocuments(t *testing.T) {
	t.Parallel()
	policy := contentPolicy(Config{APIURL: "https://api.example.com"}, inline{})
	for name, want := range map[string]string{
		"default-src": "'self'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self' data:",
		"font-src": "'self'", "media-src": "'self'", "connect-src": "'self' https://api.example.com",
		"object-src": "'none'", "base-uri": "'none'", "frame-ancestors": "'none'", "form-action": "'self'",
	} {
		if got := directive(t, policy, name); got != want {
			t.Errorf("%s %q, not %q", name, got, want)
		}
	}
}

// What an operator writes never becomes a source, however it is written.
func TestTestimonialsAreNoSource(t *testing.T) {
	t.Parallel()
	s := builtSite(t)
	before := s.policy
	evil := testimonial{Quote: "<script>alert(1)</script>", Name: "<style>*{}</style>", Work: "w"}
	if err := s.quote([]testimonial{evil, evil, evil}); err != nil {
		t.Fatal(err)
	}
	text, h := get(t, s, "/", "")
	if strings.Contains(text, "<script>alert") || h.Get("Content-Security-Policy") != before || strings.Contains(before, source("alert(1)")) {
		t.Errorf("policy %q, page %q", h.Get("Content-Security-Policy"), text)
	}
}

// Both forms of the built landing page hold the same script and style sheet,
// so that one policy fits both.
func TestBuiltLandingPagesShareTheirPolicy(t *testing.T) {
	t.Parallel()
	if _, err := fs.Stat(web.Dist, "index.html"); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the page is not built")
	}
	samples, err := fs.ReadFile(web.Dist, landingFile)
	if err != nil {
		t.Fatal(err)
	}
	places, err := fs.ReadFile(web.Dist, ".vite/landing.html")
	if err != nil {
		t.Fatal(err)
	}
	own := inlineOf(string(samples))
	if len(own.scripts) != 1 || len(own.styles) != 1 {
		t.Errorf("the landing page holds %v", own)
	}
	if diff := cmp.Diff(own, inlineOf(string(places)), cmp.AllowUnexported(inline{})); diff != "" {
		t.Errorf("samples and places differ (-samples +places):\n%s", diff)
	}
}
