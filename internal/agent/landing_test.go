//go:build linux

package agent

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/agentapi"
)

func TestALandingIsToldOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) *agentapi.Landing {
		return &agentapi.Landing{At: now.Add(d), Reason: agentapi.LandsOnBalance, URL: "https://homeport.example/billing"}
	}
	limit := in(10 * time.Minute)
	limit.Reason = agentapi.LandsOnLimit
	for name, one := range map[string]struct {
		known, told *agentapi.Landing
		want        string // a part of the text; empty: nothing is told
		knows       *agentapi.Landing
	}{
		"nothing is known":          {nil, nil, "", nil},
		"an hour away":              {in(time.Hour), nil, "", nil},
		"15 minutes away":           {in(15 * time.Minute), nil, "in 15 minutes, at 12:15 UTC", in(15 * time.Minute)},
		"known late":                {in(30 * time.Second), nil, "in less than a minute, at 12:00 UTC", in(30 * time.Second)},
		"told already":              {in(10 * time.Minute), in(10 * time.Minute), "", in(10 * time.Minute)},
		"it moved by seconds":       {in(10*time.Minute + 59*time.Second), in(10 * time.Minute), "", in(10 * time.Minute)},
		"it moved":                  {in(8 * time.Minute), in(10 * time.Minute), "in 8 minutes", in(8 * time.Minute)},
		"another reason":            {limit, in(10 * time.Minute), "the team's spend limit for this month is used up", limit},
		"called off":                {nil, in(10 * time.Minute), "not switched off at 12:10 UTC any more", nil},
		"put off":                   {in(50 * time.Minute), in(10 * time.Minute), "not switched off at 12:10 UTC any more", nil},
		"over, and the pod is, too": {nil, in(-time.Second), "", in(-time.Second)},
	} {
		text, knows := heed(one.known, one.told, now)
		if (one.want == "") != (text == "") || !strings.Contains(text, one.want) {
			t.Errorf("%s: told %q, want %q", name, text, one.want)
		}
		if (knows == nil) != (one.knows == nil) || knows != nil && *knows != *one.knows {
			t.Errorf("%s: knows %v, want %v", name, knows, one.knows)
		}
	}
}

// A terminal is a session on one, with what was written on it.
type shown struct {
	in  io.WriteCloser
	out *bufio.Reader
}

// terminal runs a command on a terminal and waits for its first line.
func (r *rig) terminal(command string) shown {
	r.t.Helper()
	cmd := r.ssh("-tt", pod, command)
	in, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	s := shown{in, bufio.NewReader(pipe)}
	s.wantLine(r.t, "in\r\n")
	return s
}

func (s shown) wantLine(t testing.TB, want string) {
	t.Helper()
	if line, err := s.out.ReadString('\n'); line != want {
		t.Fatalf("the terminal shows %q (%v), want %q", line, err, want)
	}
}

func TestTheEndOfAPodIsSeenByWhoIsInIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	file := filepath.Join(r.dir, "landing")
	r.start(func(c *Config) { c.Landing = file })
	r.node.awaitPhase(agentapi.PhaseServing)
	on := r.terminal("echo in; read x")
	quiet := r.ssh(pod, "echo in; read x") // a script: no terminal
	stdin, err := quiet.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	go func() {
		out, _ := quiet.CombinedOutput()
		said <- string(out)
	}()

	at := time.Now().Add(14*time.Minute - time.Second).UTC().Truncate(time.Second)
	clock := at.Format("15:04 UTC")
	tell := func(at time.Time) func(*agentapi.Orders) {
		return func(o *agentapi.Orders) {
			o.Landing = &agentapi.Landing{At: at, Reason: agentapi.LandsOnBalance, URL: "https://homeport.example/billing?team_id=1"}
		}
	}
	r.node.order(tell(at))
	for _, want := range []string{
		"\r\n", "Homeport: this pod is switched off in 14 minutes, at " + clock + ": the team's balance is used up then.\r\n",
		"/workspace is synced a last time and kept; everything else is deleted.\r\n",
		"Add funds: https://homeport.example/billing?team_id=1\r\n",
	} {
		on.wantLine(t, want)
	}
	awaitFile(t, file)
	want := "landing_at=" + at.Format(time.RFC3339) + "\nreason=balance\nurl='https://homeport.example/billing?team_id=1'\n"
	if text, err := os.ReadFile(file); err != nil || string(text) != want {
		t.Errorf("the file says %q (%v), want %q", text, err, want)
	}
	if got := r.output("", pod, ". "+file+" && echo $url $reason"); got != "https://homeport.example/billing?team_id=1 balance\n" {
		t.Errorf("a shell reads %q of the file", got)
	}
	if out := r.output("exit\n", "-tt", pod); !strings.Contains(out, "switched off in 14 minutes, at "+clock) {
		t.Errorf("who logs in now reads %q", out)
	}

	r.node.order(tell(at.Add(30 * time.Second))) // a little later: nothing new for people
	r.node.order(func(o *agentapi.Orders) { o.Landing = nil })
	on.wantLine(t, "\r\n")
	on.wantLine(t, "Homeport: this pod is not switched off at "+clock+" any more.\r\n")
	if out := r.output("exit\n", "-tt", pod); strings.Contains(out, "switched off") {
		t.Errorf("who logs in after the payment reads %q", out)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	for _, in := range []io.Writer{on.in, stdin} {
		_, _ = io.WriteString(in, "\n")
	}
	if out := <-said; out != "in\n" {
		t.Errorf("a session without a terminal got %q", out)
	}
}

func TestALinkInPlaceOfTheFileIsNotFollowed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	precious, file := filepath.Join(dir, "precious"), filepath.Join(dir, "landing")
	if err := os.WriteFile(precious, []byte("keep"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(precious, file); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(file, "text"); err != nil {
		t.Fatal(err)
	}
	if kept, _ := os.ReadFile(precious); string(kept) != "keep" {
		t.Errorf("the link's target holds %q", kept)
	}
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the file is %v (%v)", info, err)
	}
}
