package app

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"homeport.dev/homeport/internal/apitype"
)

const goodVoices = `[
	{"quote": "Left & <b>came</b> back.", "name": "Ada \"A\" L.", "work": "tides"},
	{"quote": "Two", "name": " Bo ", "work": "wind"},
	{"quote": "Three", "name": "Cy", "work": "waves"}]`

func voicesFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "voices.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func builtSite(t *testing.T) *site {
	t.Helper()
	s, err := newSite(fstest.MapFS{
		"landing.html":       {Data: []byte("<head></head>samples")},
		"landing.html.br":    {Data: []byte("packed samples")},
		"index.html":         {Data: []byte("<head></head>shell")},
		".vite/landing.html": {Data: []byte("<head></head>@@quote1@@|@@name1@@|@@work1@@|@@quote3@@")},
	}, apitype.Config{}, func(own inline) string { return contentPolicy(Config{}, own) })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func get(t *testing.T, s *site, path, encoding string) (string, http.Header) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Header.Set("Accept-Encoding", encoding)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	body := io.Reader(w.Body)
	if w.Header().Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		body = z
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), w.Header()
}

// Without a file the page shows its samples, as built.
func TestSiteServesSamples(t *testing.T) {
	t.Parallel()
	s := builtSite(t)
	if err := s.quote(nil); err != nil {
		t.Fatal(err)
	}
	if text, _ := get(t, s, "/", ""); text != "<head></head>samples" {
		t.Errorf("got %q", text)
	}
	if text, h := get(t, s, "/home", "br"); text != "packed samples" || h.Get("Content-Encoding") != "br" {
		t.Errorf("got %q, %v", text, h)
	}
}

// The operator's texts stand in the landing page, escaped, and go with both
// documents for the script.
func TestSiteServesTestimonials(t *testing.T) {
	t.Parallel()
	list, err := readTestimonials(voicesFile(t, goodVoices))
	if err != nil {
		t.Fatal(err)
	}
	if list[1].Name != "Bo" {
		t.Errorf("name %q is not trimmed", list[1].Name)
	}
	s := builtSite(t)
	if err := s.quote(list); err != nil {
		t.Fatal(err)
	}
	for _, encoding := range []string{"", "gzip, br"} {
		text, _ := get(t, s, "/", encoding)
		if want := "Left &amp; &lt;b&gt;came&lt;/b&gt; back.|Ada &#34;A&#34; L.|tides|Three"; !strings.HasSuffix(text, want) {
			t.Errorf("%q: got %q", encoding, text)
		}
		for _, path := range []string{"/", "/home", "/pods"} {
			text, h := get(t, s, path, encoding)
			if !strings.Contains(text, `<meta name="homeport-testimonials" content="[{&#34;quote&#34;:`) || strings.Contains(text, "<b>") {
				t.Errorf("%s, %q: got %q", path, encoding, text)
			}
			if h.Get("Vary") != "Accept-Encoding" || h.Get("Cache-Control") != "no-cache" {
				t.Errorf("%s, %q: headers %v", path, encoding, h)
			}
		}
	}
}

func TestSiteHidesFilesOfTheBuild(t *testing.T) {
	t.Parallel()
	if text, _ := get(t, builtSite(t), "/.vite/landing.html", ""); text != "<head></head>shell" {
		t.Errorf("got %q", text)
	}
}

func TestTestimonialsAreChecked(t *testing.T) {
	t.Parallel()
	one := `{"quote": "q", "name": "n", "work": "w"}`
	for name, text := range map[string]string{
		"not json":   `[`,
		"two":        `[` + one + `,` + one + `]`,
		"four":       `[` + strings.Repeat(one+`,`, 3) + one + `]`,
		"empty text": `[` + one + `,` + one + `,{"quote": " ", "name": "n", "work": "w"}]`,
		"too long":   `[` + one + `,` + one + `,{"quote": "` + strings.Repeat("x", 281) + `", "name": "n", "work": "w"}]`,
		"stranger":   `[` + one + `,` + one + `,{"quote": "q", "name": "n", "work": "w", "url": "u"}]`,
		"two lists":  `[` + one + `,` + one + `,` + one + `][]`,
		"huge":       strings.Repeat(" ", testimonialsLimit+1),
	} {
		path := voicesFile(t, text)
		if _, err := readTestimonials(path); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := Load([]string{"HOMEPORT_TESTIMONIALS=" + path}, nil); err == nil || !strings.Contains(err.Error(), "HOMEPORT_TESTIMONIALS") {
			t.Errorf("%s: the settings are accepted: %v", name, err)
		}
	}
	if _, err := Load([]string{"HOMEPORT_TESTIMONIALS=/no/such/file"}, nil); err == nil {
		t.Error("a missing file is accepted")
	}
	if _, err := Load([]string{"HOMEPORT_TESTIMONIALS=" + voicesFile(t, goodVoices)}, nil); err != nil {
		t.Error(err)
	}
}
