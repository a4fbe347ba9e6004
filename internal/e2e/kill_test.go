package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/blob/blobtest"
	"homeport.dev/homeport/internal/id"
)

// TestKillsAtRandomLoseNoCommit takes one volume from pod to pod, between
// clouds, while the node, the store and the agent are ended with kill -9 at
// random instants of each restore and each final sync. Each pod finds the last
// committed files, byte for byte; and only a pod whose agent was killed may end
// without a commit.
func TestKillsAtRandomLoseNoCommit(t *testing.T) {
	t.Parallel()
	people, rounds, seed := 1, 2, uint64(time.Now().UnixNano())
	if n, err := strconv.Atoi(os.Getenv("HOMEPORT_SIM_ROUNDS")); err == nil {
		people, rounds = n, 20 // a session ends after a while
	}
	if n, err := strconv.ParseUint(os.Getenv("HOMEPORT_SIM_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("HOMEPORT_SIM_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, seed))

	store := blobtest.NewServer(t, false)
	s := newServer(t)
	s.env = append(s.env, "HOMEPORT_S3_ENDPOINT="+store.Endpoint, "HOMEPORT_S3_BUCKET="+store.Bucket,
		"HOMEPORT_S3_KEY_ID="+store.KeyID, "HOMEPORT_S3_SECRET="+store.Secret)
	s.start()
	var kills struct{ node, store, agent, lost, uncommitted int }
	kill := func() {
		pause(rnd, 300*time.Millisecond)
		if rnd.IntN(2) == 0 {
			kills.node++
			s.end(syscall.SIGKILL)
			pause(rnd, 200*time.Millisecond)
			s.start()
			return
		}
		kills.store++
		store.Kill()
		pause(rnd, 200*time.Millisecond)
		store.Start()
	}
	voyage := func() {
		u := s.signIn()
		u.pay("25")
		u.addKey()
		v, err := u.CreateVolume(t.Context(), "data")
		if err != nil {
			t.Fatal(err)
		}
		held, last := "", ""
		for round := range rounds {
			offer, key := u.offer("H100_80GB", last), id.New().String()
			last = offer.Provider
			made := steady(t, func() (apitype.Pod, error) { return u.createOnce(u.order(offer, v.ID), key) })
			for range rnd.IntN(3) {
				kill()
			}
			p := u.waitForLong(made.ID, "ready", 3*time.Minute)
			if got := u.run(p, sums); round == 0 {
				held = got // an empty volume
			} else if got != held {
				t.Fatalf("round %d: the pod holds\n%s\ncommitted was\n%s", round, got, held)
			}
			u.run(p, changes(rnd))
			now, before := u.run(p, sums), headOf(t, s, v.ID)

			steady(t, func() (struct{}, error) { return struct{}{}, u.DeletePod(t.Context(), p.ID) })
			dies := false
			if rnd.IntN(3) == 0 {
				pause(rnd, 100*time.Millisecond)
				if dies = tryKillAgent(s, p.ID) == nil; dies { // or it ended by itself
					kills.agent++
				}
			}
			for range rnd.IntN(3) {
				kill()
				if headOf(t, s, v.ID) == before {
					kills.uncommitted++
				}
			}
			u.waitForLong(p.ID, "deleted", 5*time.Minute)
			switch committed := headOf(t, s, v.ID) != before; {
			case committed:
				held = now
			case dies:
				kills.lost++
			default:
				t.Fatalf("round %d: the last files of pod %s were not committed", round, p.ID)
			}
		}
	}
	for range people {
		voyage()
	}
	if got := string(s.command("volume", "damage")); got != "0 damaged objects\n" {
		t.Errorf("damage: %s", got)
	}
	checkNothingLeft(t, s)
	t.Attr("measured", fmt.Sprintf("%d volumes, %d pods each; kills of the node %d, the store %d, the agent %d, %d of them before the commit of a sync; %d pods whose agent was killed ended without a commit, no other",
		people, rounds, kills.node, kills.store, kills.agent, kills.uncommitted+kills.lost, kills.lost))
}

// pause waits for a random time below most.
func pause(rnd *rand.Rand, most time.Duration) {
	<-time.After(time.Duration(rnd.Int64N(int64(most))))
}

// changes is a command that makes, rewrites, moves and removes files.
func changes(rnd *rand.Rand) string {
	command := "cd /workspace && mkdir -p d0 d1 d2"
	for range 6 + rnd.IntN(10) {
		file := func() string { return fmt.Sprintf("d%d/f%d", rnd.IntN(3), rnd.IntN(9)) }
		switch rnd.IntN(6) {
		case 0:
			command += " && rm -f " + file()
		case 1:
			command += fmt.Sprintf(" && { [ ! -e %[1]s ] || mv -f %[1]s %[2]s; }", file(), file()+"m")
		case 2:
			command += fmt.Sprintf(" && echo %d >>%s", rnd.Uint32(), file())
		default:
			command += fmt.Sprintf(" && head -c %d /dev/urandom >%s", rnd.IntN(1<<(10+rnd.IntN(16))), file())
		}
	}
	return command + fmt.Sprintf(" && echo %d >now && sync", rnd.Uint64())
}
