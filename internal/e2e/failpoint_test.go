package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
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
