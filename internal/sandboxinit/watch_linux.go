package sandboxinit

import (
	"context"
	"os"
	"syscall"
	"time"
)

// Times of the watch: a pod whose folder was removed is gone well within 60 s.
const (
	watchEvery = 5 * time.Second
	farewell   = 2 * time.Second // from the end of the context to the end of the process
)

// watch ends the pod when the folder that the host shares with it was removed:
// nobody could end it otherwise. The end of PID 1 ends every process and mount.
func watch(ctx context.Context, stop context.CancelFunc, dir string) {
	go func() { // ends with the process
		t := time.NewTicker(watchEvery)
		defer t.Stop()
		for !removed(dir) {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
		}
		stop()
		time.AfterFunc(farewell, func() { os.Exit(1) })
	}()
}

// removed says whether the folder, still held by a mount, has no name any more.
func removed(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return true
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 0
}
