package bench_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"homeport.dev/homeport/internal/apiclient"
	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/id"
)

// A user is a signed-in person with money, a key and a volume.
type user struct {
	*apiclient.Client
	server          *server
	email           string
	keyID, volumeID string
}

// patience is how long anything may take on a busy machine.
const patience = 10 * time.Minute

// until asks again and again, at most patience long.
func until(ctx context.Context, what string, pause time.Duration, check func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		done, err := check()
		if err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// crowd signs people in and gives each the dollars, a key and a volume. No more
// than a few prepare themselves at once.
func (s *server) crowd(n int, dollars string) []*user {
	s.t.Helper()
	users := make([]*user, n)
	slots := make(chan struct{}, 4)
	each(s.t, n, func(i int) error {
		slots <- struct{}{}
		defer func() { <-slots }()
		u, err := s.join(s.t.Context())
		if err != nil {
			return err
		}
		users[i] = u
		return u.prepare(s.t.Context(), dollars)
	})
	return users
}

// each runs fn n times at once and ends the test at an error.
func each(t *testing.T, n int, fn func(i int) error) {
	t.Helper()
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- fn(i) }()
	}
	var all error
	for range n {
		all = errors.Join(all, <-errs)
	}
	if all != nil {
		t.Fatal(all)
	}
}

var (
	links  = regexp.MustCompile(`https?://\S+`)
	action = regexp.MustCompile(`<form method="post" action="([^"]*)"`)
	hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`)
)

// newHTTP returns a client with an address of its own among those of this
// machine: the server limits how many sign in from one.
func (s *server) newHTTP() *http.Client {
	drawn := id.New()
	from := &net.TCPAddr{IP: net.IPv4(127, 1+drawn[0]%250, drawn[1], 1+drawn[2]%250)}
	dialer := &net.Dialer{LocalAddr: from, Timeout: 10 * time.Second}
	return &http.Client{
		Timeout:       time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 2,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, "tcp4", s.addr)
			},
		},
	}
}

// send makes a request and returns the answer with its body read.
func send(ctx context.Context, c *http.Client, method, address, contentType, body string) (*http.Response, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %d %s", method, resp.Request.URL.Path, resp.StatusCode, text)
	}
	return resp, string(text), err
}

// join makes a new person and signs them in as a program without a browser does.
func (s *server) join(ctx context.Context) (*user, error) {
	const asJSON, asForm = "application/json", "application/x-www-form-urlencoded"
	email, c, auth := id.New().String()+"@example.com", s.newHTTP(), s.url+"/auth/v1"
	ask := fmt.Sprintf(`{"email":%q,"data":{},"create_user":true}`, email)
	if _, _, err := send(ctx, c, http.MethodPost, auth+"/otp?redirect_to="+url.QueryEscape(s.url), asJSON, ask); err != nil {
		return nil, err
	}
	link, err := s.linkFor(ctx, c, email)
	if err != nil {
		return nil, err
	}
	_, page, err := send(ctx, c, http.MethodGet, link, "", "")
	if err != nil {
		return nil, err
	}
	form := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(page, -1) {
		form.Set(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	to := action.FindStringSubmatch(page)
	if to == nil {
		return nil, errors.New("the page of the link has no form")
	}
	target, err := url.Parse(link)
	if err == nil {
		target, err = target.Parse(html.UnescapeString(to[1]))
	}
	if err != nil {
		return nil, err
	}
	resp, _, err := send(ctx, c, http.MethodPost, target.String(), asForm, form.Encode())
	if err != nil {
		return nil, err
	}
	_, fragment, _ := strings.Cut(resp.Header.Get("Location"), "#")
	values, err := url.ParseQuery(fragment)
	if err != nil {
		return nil, err
	}
	redeem := fmt.Sprintf(`{"type":"magiclink","token_hash":%q}`, values.Get("token_hash"))
	_, text, err := send(ctx, c, http.MethodPost, auth+"/verify", asJSON, redeem)
	if err != nil {
		return nil, err
	}
	var session struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(text), &session); err != nil {
		return nil, err
	}
	u := &user{server: s, email: email, Client: &apiclient.Client{Base: s.url + "/api", Token: session.AccessToken, HTTP: c}}
	info, err := u.UserInfo(ctx)
	u.TeamID = info.PersonalTeam.ID
	return u, err
}

// linkFor waits for the mail to an address and returns its link.
func (s *server) linkFor(ctx context.Context, c *http.Client, email string) (string, error) {
	link := ""
	return link, until(ctx, "a mail", 100*time.Millisecond, func() (bool, error) {
		_, body, err := send(ctx, c, http.MethodGet, s.url+"/dev/mailbox.json", "", "")
		if err != nil {
			return false, err
		}
		var letters []struct{ To, Text string }
		if err := json.Unmarshal([]byte(body), &letters); err != nil {
			return false, err
		}
		i := slices.IndexFunc(letters, func(l struct{ To, Text string }) bool { return l.To == email })
		if i >= 0 {
			link = links.FindString(letters[i].Text)
		}
		return i >= 0, nil
	})
}

// prepare pays, and makes a key and a volume.
func (u *user) prepare(ctx context.Context, dollars string) error {
	checkout, err := u.CheckoutCredit(ctx, dollars)
	if err != nil {
		return err
	}
	const asForm = "application/x-www-form-urlencoded"
	if _, _, err := send(ctx, u.HTTP, http.MethodPost, checkout.CheckoutURL, asForm, "outcome=pay"); err != nil {
		return err
	}
	public, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(id.Bytes(ed25519.SeedSize)).Public())
	if err != nil {
		return err
	}
	key, err := u.CreateSSHKey(ctx, "bench", string(ssh.MarshalAuthorizedKey(public)))
	if err != nil {
		return err
	}
	volume, err := u.CreateVolume(ctx, "bench")
	if err != nil {
		return err
	}
	u.keyID, u.volumeID = key.ID, volume.ID
	return until(ctx, "the credit", 100*time.Millisecond, func() (bool, error) {
		rows, err := u.Transactions(ctx)
		return len(rows) > 0, err
	})
}

// offers returns the offers of single GPUs, the dearest first.
func (u *user) offers(ctx context.Context) ([]apitype.Offer, error) {
	all, err := u.Resources(ctx)
	if err != nil {
		return nil, err
	}
	var single []apitype.Offer
	for _, list := range all {
		for _, o := range list {
			if o.GPUCount == 1 && !o.IsSpot {
				single = append(single, o)
			}
		}
	}
	if len(single) == 0 {
		return nil, errors.New("there is no offer of a single GPU")
	}
	slices.SortFunc(single, func(a, b apitype.Offer) int { return dollars(b.Price).Cmp(dollars(a.Price)) })
	return single, nil
}

// rent creates a pod and waits until it is ready.
func (u *user) rent(ctx context.Context, o apitype.Offer, pause time.Duration) (apitype.Pod, time.Duration, error) {
	began := time.Now()
	made, err := u.CreatePod(ctx, apitype.CreatePod{
		VolumeID: u.volumeID, SSHKeyID: u.keyID, TeamID: u.TeamID, CloudID: o.CloudID, GPUType: o.GPUType, Socket: o.Socket,
		Country: o.Country, GPUCount: o.GPUCount, Price: o.Price, Currency: o.Currency, Security: o.Security,
		Provider: o.Provider, IsSpot: o.IsSpot, DataCenterID: o.DataCenterID,
	})
	if err != nil {
		return made, 0, err
	}
	ready, err := u.waitFor(ctx, made.ID, pause, "ready")
	return ready, time.Since(began), err
}

// waitFor waits until a pod has one of the states.
func (u *user) waitFor(ctx context.Context, podID string, pause time.Duration, states ...string) (apitype.Pod, error) {
	var last apitype.Pod
	return last, until(ctx, "the pod to be "+states[0], pause, func() (bool, error) {
		pods, err := u.Pods(ctx)
		if err != nil {
			return false, err
		}
		i := slices.IndexFunc(pods, func(p apitype.Pod) bool { return p.ID == podID })
		if i < 0 {
			return false, errors.New("the pod is not listed")
		}
		last = pods[i]
		if last.Status == "deleted" && !slices.Contains(states, "deleted") {
			return false, fmt.Errorf("it ended: %s %s", last.StatusReason, last.StatusDetail)
		}
		return slices.Contains(states, last.Status), nil
	})
}

// end deletes a pod and waits until it is gone and its volume is free.
func (u *user) end(ctx context.Context, podID string) error {
	if err := u.DeletePod(ctx, podID); err != nil {
		return err
	}
	if _, err := u.waitFor(ctx, podID, 100*time.Millisecond, "deleted"); err != nil {
		return err
	}
	return until(ctx, "the volume to be free", 100*time.Millisecond, func() (bool, error) {
		volumes, err := u.Volumes(ctx)
		i := slices.IndexFunc(volumes, func(v apitype.Volume) bool { return v.ID == u.volumeID })
		return i >= 0 && !volumes[i].CurrentlyUsed, err
	})
}
