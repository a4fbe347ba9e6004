package testpay

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
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
	ID, Title, For, Amount, Per, Parts string
	State, SuccessURL, CancelURL       string
	Back                               string // what the way back leads to
	Declined, Saves, Keeps             bool   // Saves: a card, and nothing is paid; Keeps: the card of a payment
	Style                              template.CSS
}

// Page writes a checkout's page: dark, without script, with a form that posts
// outcome=pay, decline or cancel, for a subscription also pay_once, and for a
// card that is kept also save_declined and save_asks, to the same address. declined says that the
// payer comes back from a declined card.
func (p *Processor) Page(w http.ResponseWriter, s *Session, declined bool) error {
	data := pageData{
		ID: s.ID, Title: "Wallet credit", Amount: dollars(s.Amount), State: s.Status,
		SuccessURL: s.SuccessURL, CancelURL: s.CancelURL, Back: "Back to billing",
		Style: template.CSS(pageCSS), //nolint:gosec // our own file
	}
	if p.expired(s) {
		data.State = "expired"
	}
	if s.Mode == payment.SubscriptionMode {
		seats := "1 seat"
		if s.Quantity != 1 {
			seats = strconv.Itoa(s.Quantity) + " seats"
		}
		data.Title, data.For, data.Per, data.Back = "Homeport Pro", s.TeamName, "per month", "Back to Homeport"
		data.Parts = fmt.Sprintf("%s at %s, billed monthly on the same date.", seats, dollars(s.Amount/money.USD(s.Quantity)))
	}
	if s.Mode == payment.CardMode {
		data.Title, data.Amount, data.Saves = "Save a card", "", true
		data.Parts = "For automatic top-ups of the wallet. Nothing is charged now."
	}
	if s.SavesCard {
		data.Keeps = true
		data.Parts = "The card is saved for automatic top-ups, which an admin of the team turns on and off."
	}
	data.Declined = declined && data.State == "open"
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, data); err != nil {
		return fmt.Errorf("write the page of test checkout %s: %w", s.ID, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", pagePolicy)
	w.Header().Set("Cache-Control", "no-store")
	_, err := w.Write(page.Bytes())
	return err
}

// dollars writes an amount with its thousands apart: $1,234.50.
func dollars(amount money.USD) string {
	whole, cents, _ := strings.Cut(strings.TrimPrefix(amount.String(), "$"), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return "$" + whole + "." + cents
}
