package sandbox

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/provider"
)

// A claim is a machine's folder while this process builds the machine.
type claim struct {
	record
	dir  string
	lock *os.File
}

func (c *claim) unlock() { _ = c.lock.Close() }

// claim makes the machine's folder under its name, whole or not at all and
// once only, with its lock held. A name that is taken is an ambiguous error:
// its machine exists.
func (c *cloud) claim(ctx context.Context, l provider.Launch, fate string) (*claim, error) {
	release, err := c.s.idsLock(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	tmp, err := os.MkdirTemp(c.dir, newPrefix)
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", l.Name, err)
	}
	cl := &claim{dir: filepath.Join(c.dir, l.Name), record: record{
		Ref: newRef(l.Name, hex.EncodeToString(id.Bytes(4))), Name: l.Name, CreatedAt: c.s.Clock.Wall(),
		GPUType: l.Offer.GPUType, GPUCount: l.Offer.GPUCount, Fate: fate,
	}}
	if err := c.fill(ctx, tmp, cl); err != nil {
		_ = os.RemoveAll(tmp)
		return nil, fmt.Errorf("claim %s: %w", l.Name, err)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, tmp, unix.AT_FDCWD, cl.dir, unix.RENAME_NOREPLACE); err != nil {
		cl.unlock()
		_ = os.RemoveAll(tmp)
		return nil, fmt.Errorf("claim %s: %w", l.Name, err)
	}
	return cl, nil
}

// fill makes the content of a machine's folder.
func (c *cloud) fill(ctx context.Context, tmp string, cl *claim) error {
	var err error
	if cl.lock, err = openLock(ctx, filepath.Join(tmp, lockName), noWait); err != nil {
		return err
	}
	if cl.UIDBase, err = c.s.freeIDs(cl.Name); err == nil {
		err = writeJSON(filepath.Join(tmp, recordFile), cl.record)
	}
	for _, d := range []string{"run", "upper", "m", "state", "workspace"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(tmp, d), 0o755))
	}
	if err != nil {
		cl.unlock()
	}
	return err
}

// The host uids of pods: one range of 65,536 each, above those that
// distributions and systemd give away.
const (
	firstUID = 1_900_000_000
	ranges   = 3_700
)

// idsLock makes the choice of a free range and the claim of it one step, on all nodes.
func (s *Sandbox) idsLock(ctx context.Context) (func(), error) {
	release, err := lockFile(ctx, filepath.Join(s.dir, "ids.lock"), patientLock)
	if err != nil {
		return nil, fmt.Errorf("choose the machine's ids: %w", err)
	}
	return release, nil
}

// freeIDs returns the first uid of a range that no machine has; 0 when the
// node is not root and machines run as its own user.
func (s *Sandbox) freeIDs(name string) (int, error) {
	if rootless() {
		return 0, nil
	}
	taken := map[int]bool{}
	for _, c := range s.clouds {
		list, err := c.machines("")
		if err != nil {
			return 0, err
		}
		for _, r := range list {
			taken[r.UIDBase] = true
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // a hash takes every byte
	start := int(h.Sum32() % ranges)
	for i := range ranges {
		if base := firstUID + (start+i)%ranges*65536; !taken[base] {
			return base, nil
		}
	}
	return 0, errors.New("no free range of user ids")
}

// rootless says whether machines run as the node's own user.
func rootless() bool { return os.Geteuid() != 0 }
