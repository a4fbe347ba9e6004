// Package dns gives pods their host names. In production a wildcard record or
// a name server does it; on one machine, where names below localhost do not
// resolve, a marked block in the hosts file.
package dns

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Names publishes host names of pods. Both methods are idempotent.
type Names interface {
	// Add makes name lead to the address, a host name or an IP address.
	Add(ctx context.Context, name, address string) error
	// Remove forgets the name.
	Remove(ctx context.Context, name string) error
}

// Resolves reports whether names below host lead somewhere without our help.
func Resolves(ctx context.Context, host string) bool {
	addrs, err := net.DefaultResolver.LookupHost(ctx, "probe."+host)
	return err == nil && len(addrs) > 0
}

// The marks of our block: lines outside it are never touched.
const (
	blockBegin = "# homeport pods: begin"
	blockEnd   = "# homeport pods: end"
)

// HostsFile keeps names in a marked block of a hosts file: one line each.
type HostsFile struct {
	Path string
	mu   sync.Mutex
}

// Add makes name lead to this machine: the names are those of sandbox pods.
func (h *HostsFile) Add(_ context.Context, name, _ string) error {
	return h.edit(func(lines []string) []string {
		line := "127.0.0.1 " + name
		if slices.Contains(lines, line) {
			return lines
		}
		return append(lines, line)
	})
}

// Remove forgets the name.
func (h *HostsFile) Remove(_ context.Context, name string) error {
	return h.edit(func(lines []string) []string {
		return slices.DeleteFunc(lines, func(l string) bool { return strings.HasSuffix(l, " "+name) })
	})
}

// edit rewrites the block under a lock that other nodes on this machine heed.
// The file is written in place: in containers it cannot be replaced.
func (h *HostsFile) edit(change func([]string) []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, err := os.OpenFile(h.Path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("hosts file: %w", err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("hosts file: %w", err)
	}
	text, err := os.ReadFile(h.Path)
	if err != nil {
		return fmt.Errorf("hosts file: %w", err)
	}
	out := rewrite(string(text), change)
	if out == string(text) {
		return nil
	}
	if _, err := f.WriteAt([]byte(out), 0); err != nil {
		return fmt.Errorf("hosts file: %w", err)
	}
	return f.Truncate(int64(len(out)))
}

// rewrite applies change to the lines of the block, and drops an empty block.
func rewrite(text string, change func([]string) []string) string {
	var before, block, after []string
	where := &before
	for _, line := range strings.SplitAfter(text, "\n") {
		switch strings.TrimSpace(line) {
		case blockBegin:
			where = &block
		case blockEnd:
			where = &after
		default:
			if where == &block {
				line = strings.TrimSpace(line)
			}
			if line != "" {
				*where = append(*where, line)
			}
		}
	}
	block = change(block)
	head := strings.Join(before, "")
	if len(block) == 0 {
		return head + strings.Join(after, "")
	}
	if head != "" && !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	return head + blockBegin + "\n" + strings.Join(block, "\n") + "\n" + blockEnd + "\n" + strings.Join(after, "")
}
