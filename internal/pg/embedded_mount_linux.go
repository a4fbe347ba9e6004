package pg

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// mountPoint returns a folder that the server's user can reach, over which the
// state folder is mounted for the server's eyes only, when the way to the state
// folder itself is closed to it: below root's home, say. "" when there is none.
func mountPoint(cred *syscall.Credential, taken string) string {
	for _, dir := range []string{"/mnt", "/media", "/srv", "/opt"} {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() || !reachable(dir, cred) {
			continue
		}
		if taken == dir || strings.HasPrefix(taken, dir+"/") {
			continue
		}
		return dir
	}
	return ""
}

// enterMount gives the calling thread a view of the file system of its own, in
// which dir lies at point. The thread is locked and can be used for nothing
// else: it must end with its goroutine.
func enterMount(dir, point string) error {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("open a private view of %s: %w", dir, err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	if err := unix.Mount(dir, point, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("show %s at %s: %w", dir, filepath.Clean(point), err)
	}
	return nil
}
