//go:build linux

package agent

import (
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/snapshot"
)

const maxNote = 200 // bytes

// status is what the next heartbeat says.
type status struct {
	mu     sync.Mutex
	lease  agentapi.Lease
	nudge  func() // ends the heartbeat that is under way
	notice string // of the control plane, for the message of the day
}

// message returns what to say now. nudge is called as soon as the phase is
// another one.
func (s *status) message(nudge func()) agentapi.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nudge = nudge
	return s.lease
}

// phases are the phases in their order.
var phases = []agentapi.Phase{agentapi.PhaseMounting, agentapi.PhaseServing, agentapi.PhaseFinal, agentapi.PhaseDone}

// setPhase enters a phase and has it said at once. A phase is never left for
// an earlier one.
func (s *status) setPhase(p agentapi.Phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Index(phases, p) <= slices.Index(phases, s.lease.Phase) {
		return
	}
	s.lease.Phase = p
	s.lease.Progress = agentapi.Progress{}
	if s.nudge != nil {
		s.nudge()
	}
}

func (s *status) setProgress(p snapshot.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease.Progress = agentapi.Progress{
		BytesDone: p.BytesDone, BytesTotal: p.BytesTotal, FilesDone: p.FilesDone, FilesTotal: p.FilesTotal,
		ETASeconds: int64(p.ETA / time.Second),
	}
}

func (s *status) setDirty(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease.DirtyBytes = bytes
}

// setNote keeps the last trouble; "" says that it is over.
func (s *status) setNote(note string) {
	for len(note) > maxNote {
		_, size := utf8.DecodeLastRuneInString(note)
		note = note[:len(note)-size]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease.Note = note
}

// setNotice replaces the control plane's notice and returns the lines of it
// that are new.
func (s *status) setNotice(notice string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := strings.Split(s.notice, "\n")
	s.notice = notice
	var added []string
	for line := range strings.SplitSeq(notice, "\n") {
		if !slices.Contains(old, line) {
			added = append(added, line)
		}
	}
	return strings.Join(added, "\n")
}

// motd is the message of the day.
func (s *status) motd(limits string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notice == "" || limits == "" {
		return s.notice + limits
	}
	return s.notice + "\n" + limits
}
