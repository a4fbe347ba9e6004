//go:build linux

package agent

import (
	"context"
	"os"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"
)

const (
	maxEnv      = 64   // variables one session may pass
	maxEnvBytes = 4096 // of one of them
)

// session is one session channel: at most one process, on a terminal or on
// three pipes.
type session struct {
	conn *sshConn
	ch   ssh.Channel
	gone chan struct{} // closed when the client closed the channel

	env   []string
	term  string
	tty   *terminal // nil: pipes
	slave *os.File  // the terminal's other side, until the process has it
	begin func()    // set by the request that starts the process
	begun bool
	child *child
	wg    sync.WaitGroup
}

// session serves one session channel until it is closed. What it started may
// go on, as with OpenSSH, but a terminal is hung up.
func (c *sshConn) session(_ context.Context, nc ssh.NewChannel) {
	ch, requests, err := nc.Accept()
	if err != nil {
		return
	}
	s := &session{conn: c, ch: ch, gone: make(chan struct{})}
	for r := range requests {
		ok := s.request(r)
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
		if s.begin != nil { // after the reply, which is to come before any output
			s.begin()
			s.begin, s.begun = nil, true
		}
	}
	close(s.gone)
	s.closeTerminal()
	s.wg.Wait()
}

// request serves one request of the channel.
func (s *session) request(r *ssh.Request) bool {
	switch r.Type {
	case "env":
		return s.setEnv(r.Payload)
	case "pty-req":
		return s.openTerminal(r.Payload)
	case "window-change":
		var w window
		return s.tty != nil && ssh.Unmarshal(r.Payload, &w) == nil && s.tty.resize(w) == nil
	case "shell":
		return s.plan(s.shell)
	case "exec":
		var p struct{ Command string }
		return ssh.Unmarshal(r.Payload, &p) == nil && s.plan(func() { s.command(p.Command) })
	case "subsystem":
		var p struct{ Name string }
		return ssh.Unmarshal(r.Payload, &p) == nil && p.Name == "sftp" && s.plan(s.sftp)
	case "signal":
		return s.signal(r.Payload)
	default:
		return false
	}
}

// plan sets what starts the session's one process.
func (s *session) plan(begin func()) bool {
	if s.begun {
		return false
	}
	s.begin = begin
	return true
}

// setEnv takes the client's language, and nothing that could change how the
// login shell behaves.
func (s *session) setEnv(payload []byte) bool {
	var kv struct{ Name, Value string }
	if ssh.Unmarshal(payload, &kv) != nil || s.begun || len(s.env) >= maxEnv {
		return false
	}
	if kv.Name != "LANG" && !strings.HasPrefix(kv.Name, "LC_") {
		return false
	}
	line := kv.Name + "=" + kv.Value
	if strings.Contains(kv.Name, "=") || strings.Contains(line, "\x00") || len(line) > maxEnvBytes {
		return false
	}
	s.env = append(s.env, line)
	return true
}

func (s *session) openTerminal(payload []byte) bool {
	var p struct {
		Term                         string
		Columns, Rows, Width, Height uint32
		Modes                        string
	}
	if s.begun || s.tty != nil || ssh.Unmarshal(payload, &p) != nil {
		return false
	}
	if len(p.Term) > maxEnvBytes || strings.Contains(p.Term, "\x00") {
		return false
	}
	tty, slave, err := openTerminal()
	if err != nil {
		s.conn.server.log.Warn("open a terminal", "error", err)
		return false
	}
	_ = setModes(slave, p.Modes) // a mode that cannot be had is no reason to refuse
	_ = tty.resize(window{p.Columns, p.Rows, p.Width, p.Height})
	s.tty, s.slave, s.term = &tty, slave, p.Term
	return true
}

// signals are those of RFC 4254 that a client may send, and their names.
var signals = map[string]syscall.Signal{
	"ABRT": syscall.SIGABRT, "ALRM": syscall.SIGALRM, "FPE": syscall.SIGFPE, "HUP": syscall.SIGHUP,
	"ILL": syscall.SIGILL, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "PIPE": syscall.SIGPIPE,
	"QUIT": syscall.SIGQUIT, "SEGV": syscall.SIGSEGV, "TERM": syscall.SIGTERM,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
}

func (s *session) signal(payload []byte) bool {
	var p struct{ Name string }
	if ssh.Unmarshal(payload, &p) != nil || s.child == nil {
		return false
	}
	sig, ok := signals[p.Name]
	if ok {
		s.conn.server.procs.signal(s.child, sig)
	}
	return ok
}

// shell starts the login shell.
func (s *session) shell() {
	if s.tty != nil {
		s.greet()
	}
	shell := loginShell()
	s.start(shell, "-"+baseName(shell)) // the dash makes it a login shell
}

// command has the login shell run a command line.
func (s *session) command(line string) {
	shell := loginShell()
	s.start(shell, baseName(shell), "-c", line)
}

// sftp starts an SFTP server as a process of the user's.
func (s *session) sftp() {
	s.start(self, "homeport-sftp", SFTPCommand)
}

// start runs the user's process, or tells the client that it could not.
func (s *session) start(path string, args ...string) {
	cmd := userCommand(s.conn.server.home, path, args)
	cmd.Env = append(cmd.Env, connectionEnv(s.conn.RemoteAddr(), s.conn.LocalAddr())...)
	cmd.Env = append(cmd.Env, s.env...)
	run := s.runOnPipes
	if s.tty != nil {
		run = s.runOnTerminal
	}
	if err := run(cmd); err != nil {
		s.conn.server.log.Warn("start a user's process", "error", err)
		_, _ = s.ch.Stderr().Write([]byte("homeport: the process cannot be started\r\n"))
		s.exit(exitFailed)
		_ = s.ch.Close()
	}
}

// exitFailed is the status of what could not be started: exit code 126.
const exitFailed = syscall.WaitStatus(126 << 8)

// exit tells the client how the process ended.
func (s *session) exit(status syscall.WaitStatus) {
	if !status.Signaled() {
		_, _ = s.ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(status.ExitStatus())}))
		return
	}
	name := "KILL"
	for n, sig := range signals {
		if sig == status.Signal() {
			name = n
		}
	}
	_, _ = s.ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
		Signal  string
		Core    bool
		Message string
		Lang    string
	}{name, status.CoreDump(), status.Signal().String(), ""}))
}
