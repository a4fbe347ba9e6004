package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/fail"
)

// TestJourneySurvivesAKillAtEachFailpoint kills the server at every registered
// line, lets a supervisor start it again, and proves from outside that the main
// job still ends right: the files are on the other cloud, no machine is left,
// no money is lost or doubled.
func TestJourneySurvivesAKillAtEachFailpoint(t *testing.T) {
	t.Parallel()
	slots := make(chan struct{}, 2) // two servers at once are enough for two cores
	for _, name := range fail.Names {
		if strings.HasPrefix(name, "keys.") {
			continue // see TestMasterKeyIsRotatedUnderAPodAndTwoNodes
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			if strings.HasPrefix(name, "payment.auto.") || strings.HasPrefix(name, "testpay.charged.") {
				killWhileToppingUp(t, name)
				return
			}
			killAt(t, name)
		})
	}
}

func killAt(t *testing.T, name string) {
	s := newServer(t)
	s.start("HOMEPORT_FAILPOINT=" + name)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	s.supervise(ctx)

	u := s.signIn()
	u.pay("25")
	u.addKey()
	v := steady(t, func() (apitype.Volume, error) { return u.CreateVolume(t.Context(), "data") })

	a := u.offer("H100_80GB")
	first := u.rent(a, v.ID)
	u.run(first, "head -c 30000000 /dev/urandom > /workspace/random; sha256sum < /workspace/random > /workspace/sum; sync")
	want := u.run(first, "cat /workspace/sum")
	first = u.end(first.ID)
	if used := u.volume(v.ID).CurrentlyUsed; used {
		t.Error("the volume is not free after the pod ended")
	}

	second := u.rent(u.offer("H100_80GB", a.Provider), v.ID)
	if got := u.run(second, "sha256sum < /workspace/random"); got != want {
		t.Errorf("the other cloud has %q, want %q", got, want)
	}
	advance(t, s, 26*time.Hour) // the wallet runs out on the way
	second = u.waitFor(second.ID, "deleted")
	if second.StatusReason != "balance" {
		t.Errorf("the second pod ended for %q, want balance", second.StatusReason)
	}
	advance(t, s, 24*time.Hour) // over a UTC midnight: settlement of the storage that goes on
	u.checkMoneyAfterLanding(first, second, v.ID)
	checkNothingLeft(t, s)
	if s.deaths.Load() != 1 {
		t.Errorf("the server died %d times, want once: the failpoint is not on the way", s.deaths.Load())
	}
}

// killWhileToppingUp does the same while a saved card pays: it pays once.
func killWhileToppingUp(t *testing.T, name string) {
	s := newServer(t)
	s.start("HOMEPORT_FAILPOINT=" + name)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	s.supervise(ctx)

	u := s.signIn()
	u.pay("25")
	team := "?team_id=" + url.QueryEscape(u.TeamID)
	call := func(method, path string, in, out any) {
		t.Helper()
		steady(t, func() (struct{}, error) { return struct{}{}, u.Call(t.Context(), method, path+team, in, out) })
	}
	var checkout apitype.Checkout
	call(http.MethodPost, "/wallet/card", nil, &checkout)
	steady(t, func() (struct{}, error) {
		resp, err := noRedirect.PostForm(checkout.CheckoutURL, url.Values{"outcome": {"pay"}})
		if err == nil {
			err = resp.Body.Close()
		}
		return struct{}{}, err
	})
	var auto apitype.AutoTopUp
	until(t, "the card to be saved", func() bool {
		call(http.MethodGet, "/wallet/auto-topup", nil, &auto)
		return auto.Card != nil
	})
	call(http.MethodPut, "/wallet/auto-topup", map[string]any{"enabled": true, "threshold": 30, "amount": 10, "monthly_cap": 100}, &auto)
	untilFor(t, 2*time.Minute, "the automatic top-up", func() bool {
		b := steady(t, func() (apitype.Balance, error) { return u.Balance(t.Context()) })
		return b.Balance == "35"
	})
	until(t, "the server to have died", func() bool { return s.deaths.Load() == 1 })
	call(http.MethodGet, "/wallet/auto-topup", nil, &auto)
	rows := steady(t, func() ([]apitype.Transaction, error) { return u.Transactions(t.Context()) })
	if len(rows) != 2 || auto.MonthCharged != "10" || auto.State != "on" {
		t.Errorf("%d credits, %s charged this month, and they are %s", len(rows), auto.MonthCharged, auto.State)
	}
}

// advance moves business time; a server that dies on the way did so after the
// move was committed or before, so the wish is repeated as an instant, not a step.
func advance(t *testing.T, s *server, by time.Duration) {
	t.Helper()
	offset := func() float64 {
		var c struct {
			Offset float64 `json:"offset_seconds"`
		}
		steady(t, func() (struct{}, error) {
			resp, err := noRedirect.Get(s.url + "/dev/clock")
			if err != nil {
				return struct{}{}, err
			}
			defer resp.Body.Close()
			return struct{}{}, json.NewDecoder(resp.Body).Decode(&c)
		})
		return c.Offset
	}
	want := offset() + by.Seconds()
	until(t, "business time to move", func() bool {
		missing := want - offset()
		if missing <= 0.001 {
			return true
		}
		body := fmt.Sprintf(`{"advance_seconds":%f}`, missing)
		resp, err := noRedirect.Post(s.url+"/dev/clock", "application/json", bytes.NewReader([]byte(body)))
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// checkMoneyAfterLanding proves the books of a team whose wallet was used up:
// what was paid is what the pods and the volume cost, to the micro-dollar, but
// for storage that went on after zero.
func (u *user) checkMoneyAfterLanding(first, second apitype.Pod, volumeID string) {
	u.t.Helper()
	u.checkMoney("25", []apitype.Pod{first, second}, volumeID)
	rows := steady(u.t, func() ([]apitype.Transaction, error) { return u.Transactions(u.t.Context()) })
	credits := 0
	for _, r := range rows {
		if r.TransactionType == "credit" {
			credits++
		}
	}
	if credits != 1 {
		u.t.Errorf("%d credits for one payment", credits)
	}
}

// checkNothingLeft proves that no machine and no open instance is left.
func checkNothingLeft(t *testing.T, s *server) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.database())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var open []string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		rows, _ := conn.Query(t.Context(), `select name || ' ' || state || ' ' || reason || ' tries ' || tries from instance where state <> 'gone'`)
		if open, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			t.Fatal(err)
		}
		if len(open) == 0 && len(s.machines()) == 0 {
			return
		}
	}
	for _, m := range s.machines() {
		files, _ := filepath.Glob(filepath.Join(m, "*"))
		t.Errorf("a machine is left: %v", files)
	}
	t.Errorf("instances that are not gone: %v", open)
}
