package e2e_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/apiclient"
	"homeport.dev/homeport/internal/apitype"
)

// subjects are those of the letters about money that a person got, the oldest
// first. Each has exactly one link.
func (u *user) subjects(s *server) []string {
	u.t.Helper()
	var letters []struct{ To, Subject, Text string }
	_, body := fetch(u.t, http.MethodGet, s.url+"/dev/mailbox.json", nil, "")
	if err := json.Unmarshal(body, &letters); err != nil {
		u.t.Fatal(err)
	}
	var out []string
	for _, l := range slices.Backward(letters) {
		if l.To != u.email || strings.Contains(l.Subject, "Sign in") {
			continue
		}
		if found := links.FindAllString(l.Text, -1); len(found) != 1 || !strings.HasPrefix(found[0], s.url+"/billing?team_id=") {
			u.t.Errorf("%q has the links %q", l.Subject, found)
		}
		subject, _, _ := strings.Cut(l.Subject, " for ")
		subject, _, _ = strings.Cut(subject, " of "+strings.Split(u.email, "@")[0])
		out = append(out, subject)
	}
	return out
}

func (u *user) wantSubjects(s *server, want ...string) {
	u.t.Helper()
	until(u.t, "the letters "+strings.Join(want, ", "), func() bool { return len(u.subjects(s)) >= len(want) })
	got := u.subjects(s)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		u.t.Errorf("letters %q, want %q", got, want)
	}
}

// A team runs out of money, leaves its storage unpaid until it is frozen, pays,
// and goes on with what it wrote last.
func TestTheLandingAtZeroKeepsTheData(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	u := s.signIn()
	u.pay("5")
	u.addKey()
	v := steady(t, func() (apitype.Volume, error) { return u.CreateVolume(t.Context(), "data") })
	pod := u.rent(u.offer("H100_80GB"), v.ID)
	u.run(pod, "head -c 12000000 /dev/urandom > /workspace/random; sha256sum < /workspace/random > /workspace/sum; sync")
	want := u.run(pod, "cat /workspace/sum")
	u.wantSubjects(s, "Less than 24 hours of balance left")

	advance(t, s, 10*time.Hour)
	pod = u.waitFor(pod.ID, "deleted")
	if pod.StatusReason != "balance" {
		t.Errorf("the pod ended for %q, want balance", pod.StatusReason)
	}
	landing := []string{"Less than 24 hours of balance left", "Less than 1 hour of balance left", "Less than 15 minutes of balance left", "The balance"}
	u.wantSubjects(s, landing...)
	u.checkMoney("5", []apitype.Pod{pod}, v.ID)

	advance(t, s, 8*24*time.Hour)
	u.wantSubjects(s, append(slices.Clone(landing), "The storage")...)
	b := steady(t, func() (apitype.Balance, error) { return u.Balance(t.Context()) })
	if !strings.HasPrefix(string(b.Balance), "-") || b.SpendingPerHour != "0" {
		t.Errorf("balance %s, spending %s while the storage is frozen", b.Balance, b.SpendingPerHour)
	}
	u.checkMoney("5", []apitype.Pod{pod}, v.ID)
	var refused *apiclient.Refusal
	if _, err := u.CreatePod(t.Context(), u.order(u.offer("H100_80GB"), v.ID)); !errors.As(err, &refused) || refused.Status != http.StatusPaymentRequired {
		t.Errorf("a pod on frozen storage: %v", err)
	}

	u.pay("20")
	until(t, "the frozen volume to be free", func() bool {
		_, err := u.CreatePod(t.Context(), u.order(u.offer("H100_80GB"), v.ID))
		return err == nil
	})
	pods := steady(t, func() ([]apitype.Pod, error) { return u.Pods(t.Context()) })
	again := u.waitFor(pods[0].ID, "ready")
	if got := u.run(again, "sha256sum < /workspace/random"); got != want {
		t.Errorf("after the landing the volume has %q, want %q", got, want)
	}
	u.checkMoney("25", []apitype.Pod{pod, again}, v.ID)
}
