//go:build linux

package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"homeport.dev/homeport/internal/agentapi"
)

// landingMoved is by how much the pod's end has to move before it is told
// again: it moves a little whenever what the team uses does.
const landingMoved = time.Minute

// landing is what is known of the pod's end.
type landing struct {
	changed chan struct{} // of one place: look again

	mu    sync.Mutex
	known *agentapi.Landing
}

// set takes over what the control plane says; nil: no end is near.
func (l *landing) set(known *agentapi.Landing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == known || l.known != nil && known != nil && *l.known == *known {
		return
	}
	l.known = known
	select {
	case l.changed <- struct{}{}:
	default: // it is about to look
	}
}

func (l *landing) get() *agentapi.Landing {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known
}

// greeting is the landing's part of the message of the day.
func (l *landing) greeting(now time.Time) string {
	known := l.get()
	if !near(known, now) {
		return ""
	}
	return "\n\n" + landingText(known, now)
}

// near says that the pod ends soon enough to be told.
func near(l *agentapi.Landing, now time.Time) bool {
	return l != nil && l.At.After(now) && l.At.Sub(now) <= agentapi.LandingNotice
}

// heed says what to tell who is logged in, "" for nothing, and what they then
// know: each landing is told once, and once that it was called off.
func heed(known, told *agentapi.Landing, now time.Time) (text string, knows *agentapi.Landing) {
	switch {
	case near(known, now) && told != nil && told.Reason == known.Reason && known.At.Sub(told.At).Abs() < landingMoved:
		return "", told
	case near(known, now):
		return landingText(known, now), known
	case told != nil && told.At.After(now):
		return "Homeport: this pod is not switched off at " + told.At.Format("15:04 MST") + " any more.", nil
	}
	return "", told
}

// followLanding tells of the pod's end on the terminals, once in time, and in a
// file while it is near.
func (a *agent) followLanding(ctx context.Context) {
	defer a.writeLanding(nil)
	var told *agentapi.Landing
	for {
		now, known := a.cfg.Clock.Wall(), a.landing.get()
		text, knows := heed(known, told, now)
		told = knows
		wait := time.Duration(-1)
		if near(known, now) {
			a.writeLanding(known)
		} else {
			a.writeLanding(nil)
			if known != nil && known.At.After(now) {
				wait = known.At.Sub(now) - agentapi.LandingNotice
			}
		}
		if text != "" {
			a.sshd.announce(text)
		}
		if !a.awaitLanding(ctx, wait) {
			return
		}
	}
}

// awaitLanding waits until there is something to look at: a change, or the end
// of wait, unless that is negative. It says false when the pod ends.
func (a *agent) awaitLanding(ctx context.Context, wait time.Duration) bool {
	var due <-chan time.Time
	if wait >= 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-a.final:
		return false
	case <-a.landing.changed:
	case <-due:
	}
	return true
}

// landingText is what people read of the pod's end.
func landingText(l *agentapi.Landing, now time.Time) string {
	why, what := "the team's balance is used up then", "Add funds"
	if l.Reason == agentapi.LandsOnLimit {
		why, what = "the team's spend limit for this month is used up", "See the spending"
	}
	return fmt.Sprintf("Homeport: this pod is switched off %s, at %s: %s.\n"+
		"/workspace is synced a last time and kept; everything else is deleted.\n%s: %s",
		remaining(l.At.Sub(now)), l.At.UTC().Format("15:04 MST"), why, what, l.URL)
}

// remaining writes a short stretch of time in whole minutes, rounded up.
func remaining(d time.Duration) string {
	switch minutes := (d + time.Minute - 1) / time.Minute; {
	case d < time.Minute:
		return "in less than a minute"
	case minutes == 1:
		return "in 1 minute"
	default:
		return fmt.Sprintf("in %d minutes", minutes)
	}
}

// writeLanding keeps the file for scripts: lines that a shell can read, while
// the end is near, and else no file. It is replaced as a whole, and a link that
// somebody put in its place is not followed.
func (a *agent) writeLanding(l *agentapi.Landing) {
	path := a.cfg.Landing
	if path == "" {
		return
	}
	if l == nil {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			a.log.Warn("remove the notice of the pod's end", "error", err)
		}
		return
	}
	text := fmt.Sprintf("landing_at=%s\nreason=%s\nurl='%s'\n", l.At.UTC().Format(time.RFC3339), l.Reason, l.URL)
	if err := replaceFile(path, text); err != nil {
		a.log.Warn("write the notice of the pod's end", "error", err)
	}
}

func replaceFile(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".homeport-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
