package e2e_test

import (
	"bytes"
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
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"homeport.dev/homeport/internal/apiclient"
	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/id"
)

// A user is a signed-in person with an SSH key pair.
type user struct {
	*apiclient.Client
	t      *testing.T
	srv    *server
	email  string
	signer ssh.Signer
	keyID  string
}

// patience is how long anything may take on a busy machine.
const patience = 90 * time.Second

// until waits for a condition.
func until(t *testing.T, what string, check func() bool) {
	t.Helper()
	untilFor(t, patience, what, check)
}

func untilFor(t *testing.T, patience time.Duration, what string, check func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if check() {
			return
		}
	}
	t.Fatalf("waited %s for %s", patience, what)
}

// steady repeats a call while the server is away, as a client does.
func steady[T any](t *testing.T, call func() (T, error)) T {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var out T
		if out, err = call(); err == nil {
			return out
		}
		var r *apiclient.Refusal
		if errors.As(err, &r) && r.Status < http.StatusInternalServerError {
			break
		}
	}
	t.Fatal(err)
	panic("unreachable")
}

var noRedirect = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       30 * time.Second,
}

func fetch(t *testing.T, method, address string, body io.Reader, contentType string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, body)
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := noRedirect.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, text
}

var (
	links  = regexp.MustCompile(`https?://\S+`)
	action = regexp.MustCompile(`<form method="post" action="([^"]*)"`)
	hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`)
)

// letterTo waits for the newest mail to an address and returns its text.
func (s *server) letterTo(email string) string {
	s.t.Helper()
	var text string
	until(s.t, "a mail", func() bool {
		var letters []struct{ To, Text string }
		_, body := fetch(s.t, http.MethodGet, s.url+"/dev/mailbox.json", nil, "")
		if err := json.Unmarshal(body, &letters); err != nil {
			s.t.Fatal(err)
		}
		i := slices.IndexFunc(letters, func(l struct{ To, Text string }) bool { return l.To == email })
		if i >= 0 {
			text = letters[i].Text
		}
		return i >= 0
	})
	return text
}

// signIn makes a new person and signs them in as a program without a browser does.
func (s *server) signIn() *user {
	s.t.Helper()
	email := id.New().String() + "@example.com"
	auth := s.url + "/auth/v1"
	ask := fmt.Sprintf(`{"email":%q,"data":{},"create_user":true}`, email)
	if resp, text := fetch(s.t, http.MethodPost, auth+"/otp?redirect_to="+url.QueryEscape(s.url), strings.NewReader(ask), "application/json"); resp.StatusCode != http.StatusOK {
		s.t.Fatalf("otp: %d %s", resp.StatusCode, text)
	}
	link := links.FindString(s.letterTo(email))
	_, page := fetch(s.t, http.MethodGet, link, nil, "")
	form := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(string(page), -1) {
		form.Set(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	target, err := url.Parse(auth + "/verify")
	if err != nil {
		s.t.Fatal(err)
	}
	target, err = target.Parse(html.UnescapeString(action.FindStringSubmatch(string(page))[1]))
	if err != nil {
		s.t.Fatal(err)
	}
	resp, _ := fetch(s.t, http.MethodPost, target.String(), strings.NewReader(form.Encode()), "application/x-www-form-urlencoded")
	_, fragment, _ := strings.Cut(resp.Header.Get("Location"), "#")
	values, err := url.ParseQuery(fragment)
	if err != nil {
		s.t.Fatal(err)
	}
	redeem := fmt.Sprintf(`{"type":"magiclink","token_hash":%q}`, values.Get("token_hash"))
	var session struct {
		AccessToken string `json:"access_token"`
	}
	_, text := fetch(s.t, http.MethodPost, auth+"/verify", strings.NewReader(redeem), "application/json")
	if err := json.Unmarshal(text, &session); err != nil || session.AccessToken == "" {
		s.t.Fatalf("verify: %s", text)
	}
	u := &user{
		Client: &apiclient.Client{Base: s.url + "/api", Token: session.AccessToken, HTTP: &http.Client{Timeout: 30 * time.Second}},
		t:      s.t, srv: s, email: email,
	}
	info, err := u.UserInfo(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	u.TeamID = info.PersonalTeam.ID
	return u
}

// on returns the same person on another node.
func (u *user) on(s *server) *user {
	c := *u.Client
	c.Base = s.url + "/api"
	other := *u
	other.Client, other.srv = &c, s
	return &other
}

// addKey draws a key pair and keeps its public half.
func (u *user) addKey() {
	u.t.Helper()
	private := ed25519.NewKeyFromSeed(id.Bytes(ed25519.SeedSize))
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		u.t.Fatal(err)
	}
	u.signer = signer
	key := steady(u.t, func() (apitype.SSHKey, error) {
		return u.CreateSSHKey(u.t.Context(), "test", string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	})
	u.keyID = key.ID
}

// pay adds money through the test checkout and waits for the credit.
func (u *user) pay(dollars string) {
	u.t.Helper()
	checkout := steady(u.t, func() (apitype.Checkout, error) { return u.CheckoutCredit(u.t.Context(), dollars) })
	steady(u.t, func() (struct{}, error) {
		resp, err := noRedirect.PostForm(checkout.CheckoutURL, url.Values{"outcome": {"pay"}})
		if err == nil {
			err = resp.Body.Close()
		}
		return struct{}{}, err
	})
	until(u.t, "the credit", func() bool {
		rows := steady(u.t, func() ([]apitype.Transaction, error) { return u.Transactions(u.t.Context()) })
		return slices.ContainsFunc(rows, func(r apitype.Transaction) bool { return r.TransactionType == "credit" })
	})
}

// offer returns a single-GPU offer with enough disk at another cloud than those named.
func (u *user) offer(gpuType string, not ...string) apitype.Offer {
	u.t.Helper()
	all := steady(u.t, func() (map[string][]apitype.Offer, error) { return u.Resources(u.t.Context()) })
	for _, o := range all[gpuType] {
		if o.GPUCount == 1 && !o.IsSpot && o.DefaultDiskSize > 100 && !slices.Contains(not, o.Provider) {
			return o
		}
	}
	u.t.Fatalf("no %s offer of a single GPU besides %v", gpuType, not)
	panic("unreachable")
}

// order is the body that asks for a pod.
func (u *user) order(o apitype.Offer, volumeID string) apitype.CreatePod {
	return apitype.CreatePod{
		VolumeID: volumeID, SSHKeyID: u.keyID, TeamID: u.TeamID, CloudID: o.CloudID, GPUType: o.GPUType, Socket: o.Socket,
		Country: o.Country, GPUCount: o.GPUCount, Price: o.Price, Currency: o.Currency, Security: o.Security,
		Provider: o.Provider, IsSpot: o.IsSpot, DataCenterID: o.DataCenterID,
	}
}

// rent creates a pod and waits until it is ready; a repeated call is one order.
func (u *user) rent(o apitype.Offer, volumeID string) apitype.Pod {
	u.t.Helper()
	key := id.New().String()
	made := steady(u.t, func() (apitype.Pod, error) { return u.createOnce(u.order(o, volumeID), key) })
	return u.waitFor(made.ID, "ready")
}

// createOnce creates a pod under an Idempotency-Key.
func (u *user) createOnce(in apitype.CreatePod, key string) (apitype.Pod, error) {
	var out apitype.Pod
	text, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	req, err := http.NewRequestWithContext(u.t.Context(), http.MethodPost, u.Base+"/pods", bytes.NewReader(text))
	if err != nil {
		return out, err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + u.Token}, "Idempotency-Key": {key}}
	resp, err := u.HTTP.Do(req)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		r := &apiclient.Refusal{}
		_ = json.NewDecoder(resp.Body).Decode(r)
		r.Status = resp.StatusCode
		return out, r
	}
	return out, json.NewDecoder(resp.Body).Decode(&out)
}

// waitFor waits until a pod has a status.
func (u *user) waitFor(podID, status string) apitype.Pod {
	u.t.Helper()
	return u.waitForLong(podID, status, patience)
}

func (u *user) waitForLong(podID, status string, patience time.Duration) apitype.Pod {
	u.t.Helper()
	var last apitype.Pod
	untilFor(u.t, patience, "pod "+podID+" to be "+status, func() bool {
		for _, p := range steady(u.t, func() ([]apitype.Pod, error) { return u.Pods(u.t.Context()) }) {
			if p.ID == podID {
				last = p
			}
		}
		if last.Status == "deleted" && status != "deleted" {
			u.t.Fatalf("the pod ended: %s %s", last.StatusReason, last.StatusDetail)
		}
		return last.Status == status
	})
	return last
}

// end deletes a pod and waits until it is gone.
func (u *user) end(podID string) apitype.Pod {
	u.t.Helper()
	steady(u.t, func() (struct{}, error) { return struct{}{}, u.DeletePod(u.t.Context(), podID) })
	return u.waitFor(podID, "deleted")
}

// run runs a command in a pod over SSH and returns its output.
func (u *user) run(p apitype.Pod, command string) string {
	u.t.Helper()
	out, err := u.try(p, command)
	if err != nil {
		u.t.Fatalf("ssh %q: %v\n%s", command, err, out)
	}
	return out
}

func (u *user) try(p apitype.Pod, command string) (string, error) {
	host := "127.0.0.1"
	if u.srv.resolver != nil {
		found, err := u.srv.resolver.LookupHost(u.t.Context(), p.ID[:8]+"."+p.SSHHost+".")
		if err != nil {
			return "", err
		}
		host = found[0]
	}
	client, err := ssh.Dial("tcp", net.JoinHostPort(host, strconv.Itoa(*p.SSHPort)), &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(u.signer)}, Timeout: 20 * time.Second,
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if ssh.FingerprintSHA256(key) != p.HostKeyFingerprint {
				return errors.New("the host key is not the pod's")
			}
			return nil
		},
	})
	if err != nil {
		return "", err
	}
	defer func() { _ = client.Close() }()
	session, err := client.NewSession()
	if err != nil {
		return "", err
	}
	defer func() { _ = session.Close() }() // it ended with the command
	out, err := session.CombinedOutput(command)
	return string(out), err
}

// volumes returns the user's volumes by id.
func (u *user) volume(volumeID string) apitype.Volume {
	u.t.Helper()
	for _, v := range steady(u.t, func() ([]apitype.Volume, error) { return u.Volumes(u.t.Context()) }) {
		if v.ID == volumeID {
			return v
		}
	}
	u.t.Fatalf("volume %s is not listed", volumeID)
	panic("unreachable")
}
