package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/id"
)

// patience is how long anything may take on a busy machine, crashes included:
// a move of the clock may settle a million transfers.
const patience = 15 * time.Minute

var browser = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       patience,
	Transport:     &http.Transport{MaxIdleConnsPerHost: 16, DisableKeepAlives: true},
}

var errRefused = errors.New("refused")

// request makes one call. The error is errRefused for a status of 4xx.
func request(method, address string, body []byte, header map[string]string) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, address, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := browser.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return nil, nil, err
	case resp.StatusCode >= http.StatusInternalServerError:
		return nil, nil, fmt.Errorf("%s %s: %s: %s", method, address, resp.Status, text)
	case resp.StatusCode >= http.StatusBadRequest:
		return nil, nil, fmt.Errorf("%w: %s %s: %s: %s", errRefused, method, address, resp.Status, text)
	}
	return resp, text, nil
}

// A customer is a signed-in person with a personal team.
type customer struct {
	token  string
	team   uuid.UUID
	signed time.Time // wall
}

var (
	links  = regexp.MustCompile(`https?://\S+`)
	action = regexp.MustCompile(`<form method="post" action="([^"]*)"`)
	hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`)
)

var asJSON = map[string]string{"Content-Type": "application/json"}

// signIn makes a new customer, as a program without a browser does.
func (s *world) signIn() (*customer, error) {
	email, auth := id.New().String()+"@example.com", s.app.url+"/auth/v1"
	ask := fmt.Sprintf(`{"email":%q,"data":{},"create_user":true}`, email)
	if _, _, err := request(http.MethodPost, auth+"/otp?redirect_to="+url.QueryEscape(s.app.url), []byte(ask), asJSON); err != nil {
		return nil, err
	}
	link, err := s.letterTo(email)
	if err != nil {
		return nil, err
	}
	_, page, err := request(http.MethodGet, link, nil, nil)
	if err != nil {
		return nil, err
	}
	form := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(string(page), -1) {
		form.Set(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	target, err := url.Parse(auth + "/verify")
	if err == nil {
		target, err = target.Parse(html.UnescapeString(action.FindStringSubmatch(string(page))[1]))
	}
	if err != nil {
		return nil, err
	}
	resp, _, err := request(http.MethodPost, target.String(), []byte(form.Encode()), map[string]string{"Content-Type": "application/x-www-form-urlencoded"})
	if err != nil {
		return nil, err
	}
	_, fragment, _ := strings.Cut(resp.Header.Get("Location"), "#")
	values, err := url.ParseQuery(fragment)
	if err != nil {
		return nil, err
	}
	redeem := fmt.Sprintf(`{"type":"magiclink","token_hash":%q}`, values.Get("token_hash"))
	_, text, err := request(http.MethodPost, auth+"/verify", []byte(redeem), asJSON)
	if err != nil {
		return nil, err
	}
	var session struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(text, &session); err != nil {
		return nil, err
	}
	c := &customer{token: session.AccessToken, signed: time.Now()}
	return c, s.findTeam(c)
}

func (s *world) letterTo(email string) (string, error) {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		_, text, err := request(http.MethodGet, s.app.url+"/dev/mailbox.json?to="+url.QueryEscape(email), nil, nil)
		if err != nil {
			return "", err
		}
		var letters []struct{ To, Text string }
		if err := json.Unmarshal(text, &letters); err != nil {
			return "", err
		}
		for _, l := range letters {
			if l.To == email {
				return links.FindString(l.Text), nil
			}
		}
	}
	return "", fmt.Errorf("no letter to %s", email)
}

func (s *world) findTeam(c *customer) error {
	_, text, err := request(http.MethodGet, s.app.url+"/api/user/info", nil, c.header())
	if err != nil {
		return err
	}
	var info struct {
		PersonalTeam struct {
			ID uuid.UUID `json:"id"`
		} `json:"personal_team"`
	}
	if err := json.Unmarshal(text, &info); err != nil {
		return err
	}
	c.team = info.PersonalTeam.ID
	return nil
}

func (c *customer) header() map[string]string {
	return map[string]string{"Authorization": "Bearer " + c.token, "Content-Type": "application/json"}
}

// buy has a customer pay, or not, for a checkout, until that worked. Their
// sign-ins last a quarter of an hour: then others come.
func (s *world) buy(w *workers, random *rand.Rand) {
	var c *customer
	for !w.stopped() {
		if c == nil || time.Since(c.signed) > 10*time.Minute {
			if c = s.customer(w, random); c == nil {
				return
			}
		}
		header := c.header()
		header["Idempotency-Key"] = id.New().String()
		body := fmt.Sprintf(`{"amount":%d.%02d}`, 1+random.IntN(60), random.IntN(100))
		var made struct {
			CheckoutURL string `json:"checkout_url"`
		}
		s.until("a checkout", func() error {
			_, text, err := request(http.MethodPost, s.app.url+"/api/wallet/credit/checkout?team_id="+c.team.String(), []byte(body), header)
			if err != nil {
				return err
			}
			return json.Unmarshal(text, &made)
		})
		if random.IntN(10) > 0 {
			s.cards.pay(path.Base(made.CheckoutURL))
		}
		if random.IntN(8) == 0 {
			s.cards.giveBack()
		}
		s.bought.Add(1)
	}
}

// customer returns one who has come before, while their sign-in lasts, or a new one.
func (s *world) customer(w *workers, random *rand.Rand) *customer {
	s.mu.Lock()
	var known []*customer
	for _, c := range s.customers {
		if time.Since(c.signed) < 8*time.Minute {
			known = append(known, c)
		}
	}
	s.mu.Unlock()
	if len(known) >= 4 {
		return known[random.IntN(len(known))]
	}
	for !w.stopped() {
		c, err := s.signIn()
		if err != nil { // the server is away: another one tries
			time.Sleep(100 * time.Millisecond)
			continue
		}
		s.mu.Lock()
		s.customers = append(s.customers, c)
		s.wallets = append(s.wallets, c.team)
		s.mu.Unlock()
		return c
	}
	return nil
}

// courier delivers events.
func (s *world) courier(w *workers) {
	for !w.stopped() {
		if e, ok := s.cards.take(false); ok {
			s.cards.deliver(s.app.url, e)
			continue
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// until repeats what a crash may interrupt until it works.
func (s *world) until(what string, do func() error) {
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = do(); err == nil {
			return
		}
		if errors.Is(err, errRefused) {
			break
		}
	}
	s.t.Errorf("%s: %v", what, err)
}
