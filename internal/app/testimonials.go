package app

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// testimonialCount is how many the landing page has room for.
const testimonialCount = 3

// Bounds of a testimonial, in characters, and of their file, in bytes.
const (
	longestQuote      = 280
	longestSignature  = 60
	testimonialsLimit = 16 << 10
)

// testimonial is what a customer says on the landing page.
type testimonial struct {
	Quote string `json:"quote"`
	Name  string `json:"name"`
	Work  string `json:"work"`
}

// readTestimonials reads the operator's file; without one there are none and
// the page shows its samples.
func readTestimonials(path string) ([]testimonial, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, testimonialsLimit+1))
	if err != nil {
		return nil, err
	}
	if len(text) > testimonialsLimit {
		return nil, fmt.Errorf("%s is longer than %d bytes", path, testimonialsLimit)
	}
	var list []testimonial
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: something follows the list", path)
	}
	if len(list) != testimonialCount {
		return nil, fmt.Errorf("%s holds %d testimonials, the page shows %d", path, len(list), testimonialCount)
	}
	for i := range list {
		if err := list[i].check(); err != nil {
			return nil, fmt.Errorf("%s: testimonial %d: %w", path, i+1, err)
		}
	}
	return list, nil
}

// check trims the texts and refuses empty and overlong ones.
func (t *testimonial) check() error {
	for _, one := range []struct {
		name string
		text *string
		most int
	}{{"quote", &t.Quote, longestQuote}, {"name", &t.Name, longestSignature}, {"work", &t.Work, longestSignature}} {
		*one.text = strings.TrimSpace(*one.text)
		if n := utf8.RuneCountInString(*one.text); n == 0 || n > one.most {
			return fmt.Errorf("%s has %d characters, not 1 to %d", one.name, n, one.most)
		}
	}
	return nil
}

// quote puts the operator's testimonials into both documents: into the landing
// page's text, where they stand before any script runs, and for the script,
// which draws the page anew, into a meta element. A data block in a script
// element would do as well; a meta element cannot be mistaken for code.
func (s *site) quote(list []testimonial) error {
	if list == nil {
		return nil
	}
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	meta := `<meta name="homeport-testimonials" content="` + html.EscapeString(string(data)) + `"></head>`
	pairs := []string{"</head>", meta}
	for i, t := range list {
		n := strconv.Itoa(i+1) + "@@"
		pairs = append(pairs, "@@quote"+n, html.EscapeString(t.Quote),
			"@@name"+n, html.EscapeString(t.Name), "@@work"+n, html.EscapeString(t.Work))
	}
	fill := strings.NewReplacer(pairs...)
	for name, file := range map[string]string{"landing.html": ".vite/landing.html", "index.html": "index.html"} {
		text, err := fs.ReadFile(s.files, file)
		if err != nil {
			return fmt.Errorf("the page is not built (run make web): %w", err)
		}
		made := document{plain: []byte(fill.Replace(string(text)))}
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := z.Write(made.plain); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		made.gzipped = packed.Bytes()
		s.made[name] = made
	}
	return nil
}
