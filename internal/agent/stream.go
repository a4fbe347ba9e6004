//go:build linux

package agent

import (
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// runOnTerminal starts cmd on the session's terminal and moves what passes
// there, until the process ended or the client left.
func (s *session) runOnTerminal(cmd *exec.Cmd) error {
	cmd.Env = append(cmd.Env, "TERM="+s.term, "SSH_TTY="+s.slave.Name())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.slave, s.slave, s.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setctty: true}
	child, err := s.conn.server.procs.start(cmd)
	s.slave.Close()
	s.slave = nil
	if err != nil {
		return err
	}
	s.child = child
	s.conn.server.onTerminal(s, true)
	s.wg.Go(func() { _, _ = io.Copy(s.tty, s.ch) }) // ends with the channel or the terminal
	copied := make(chan struct{})
	s.wg.Go(func() {
		s.tty.copyTo(s.ch)
		close(copied)
	})
	s.wg.Go(func() {
		select {
		case <-child.done:
			s.tty.drain()
			<-copied
			s.exit(child.status)
		case <-s.gone:
		}
		s.conn.server.onTerminal(s, false)
		_ = s.ch.Close()
		s.tty.Close() // hangs up what is left on it
	})
	return nil
}

// closeTerminal hangs up a terminal whose client left.
func (s *session) closeTerminal() {
	if s.tty != nil {
		s.tty.Close()
	}
	if s.slave != nil {
		s.slave.Close()
	}
}

// runOnPipes starts cmd on three pipes.
func (s *session) runOnPipes(cmd *exec.Cmd) error {
	var p pipes
	if err := p.open(); err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.theirs[0], p.theirs[1], p.theirs[2]
	child, err := s.conn.server.procs.start(cmd)
	closeFiles(p.theirs)
	if err != nil {
		closeFiles(p.ours)
		return err
	}
	s.child = child
	s.wg.Go(func() { s.copyPipes(child, p.ours) })
	return nil
}

// copyPipes moves a process's three streams. As with OpenSSH, whoever holds
// the output keeps the session open; when the client leaves, the process goes
// on until it writes.
func (s *session) copyPipes(child *child, p [3]*os.File) {
	var in, out sync.WaitGroup
	in.Go(func() {
		_, _ = io.Copy(p[0], s.ch)
		p[0].Close()
	})
	out.Go(func() {
		_, _ = io.Copy(s.ch, p[1])
		p[1].Close()
	})
	out.Go(func() {
		_, _ = io.Copy(s.ch.Stderr(), p[2])
		p[2].Close()
	})
	written := make(chan struct{})
	s.wg.Go(func() {
		out.Wait()
		close(written)
	})
	select {
	case <-written:
		select {
		case <-child.done:
			s.exit(child.status)
		case <-s.gone:
		}
	case <-s.gone:
	}
	_ = s.ch.Close()
	closeFiles(p)
	in.Wait()
}

// pipes are the three streams of a process, seen from both sides.
type pipes struct{ ours, theirs [3]*os.File }

func (p *pipes) open() error {
	for i := range p.ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeFiles(p.ours)
			closeFiles(p.theirs)
			return err
		}
		p.ours[i], p.theirs[i] = r, w
		if i == 0 { // the process reads this one
			p.ours[i], p.theirs[i] = w, r
		}
	}
	return nil
}

func closeFiles(files [3]*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
