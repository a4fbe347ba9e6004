package testpay

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"time"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

var pageTemplate = template.Must(template.New("checkout").Parse(pageHTML))

// pagePolicy lets the page do nothing but show itself and post its form.
var pagePolicy = func() string {
	style := sha256.Sum256([]byte(pageCSS))
	return fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		base64.StdEncoding.EncodeToString(style[:]))
}()

type pageData struct {
	ID, Amount, State     string
	SuccessURL, CancelURL string
	Declined              bool
	Style                 template.CSS
}

// Page writes a checkout's page: dark, without script, with a form that posts
// outcome=pay, decline or cancel to the same address. declined says that the
// payer comes back from a declined card.
func Page(w http.ResponseWriter, s *Session, declined bool, wall time.Time) error {
	state := s.Status
	if s.expired(wall) {
		state = "expired"
	}
	var page bytes.Buffer
	err := pageTemplate.Execute(&page, pageData{
		ID: s.ID, Amount: s.Amount.String(), State: state, SuccessURL: s.SuccessURL, CancelURL: s.CancelURL,
		Declined: declined && state == "open",
		Style:    template.CSS(pageCSS), //nolint:gosec // our own file
	})
	if err != nil {
		return fmt.Errorf("write the page of test checkout %s: %w", s.ID, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", pagePolicy)
	w.Header().Set("Cache-Control", "no-store")
	_, err = w.Write(page.Bytes())
	return err
}
