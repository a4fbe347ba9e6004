//go:build linux

package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is the master side of a pseudo terminal. It is opened without
// blocking, so that a read of it can be ended while a background process still
// holds the other side.
type terminal struct{ *os.File }

// openTerminal makes a pseudo terminal and returns its two sides.
func openTerminal() (terminal, *os.File, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return terminal{}, nil, fmt.Errorf("open /dev/ptmx: %w", err)
	}
	master := os.NewFile(uintptr(fd), "/dev/ptmx")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		master.Close()
		return terminal{}, nil, fmt.Errorf("unlock the terminal: %w", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		master.Close()
		return terminal{}, nil, fmt.Errorf("number the terminal: %w", err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		master.Close()
		return terminal{}, nil, fmt.Errorf("open the terminal: %w", err)
	}
	return terminal{master}, slave, nil
}

// window is a terminal's size, as RFC 4254 sends it.
type window struct{ Columns, Rows, Width, Height uint32 }

// resize tells the processes on the terminal its size.
func (t terminal) resize(w window) error {
	raw, err := t.SyscallConn()
	if err != nil {
		return err
	}
	size := &unix.Winsize{Row: clamp16(w.Rows), Col: clamp16(w.Columns), Xpixel: clamp16(w.Width), Ypixel: clamp16(w.Height)}
	var set error
	if err := raw.Control(func(fd uintptr) { set = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size) }); err != nil {
		return err
	}
	return set
}

func clamp16(n uint32) uint16 { return uint16(min(n, 0xffff)) }

// copyTo copies what is written on the terminal until everyone on it is gone,
// w does not take more, or drain was called; then what is there still goes out.
func (t terminal) copyTo(w io.Writer) {
	buf := make([]byte, 32<<10)
	for {
		n, err := t.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.copyRest(w, buf)
			return
		}
		if err != nil { // EIO: nobody holds the other side any more
			return
		}
	}
}

// drain makes copyTo end as soon as nothing more can be read.
func (t terminal) drain() { _ = t.SetReadDeadline(time.Unix(1, 0)) }

func (t terminal) copyRest(w io.Writer, buf []byte) {
	if t.SetReadDeadline(time.Time{}) != nil {
		return
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return
	}
	for {
		var n int
		var readErr error
		err := raw.Read(func(fd uintptr) bool {
			n, readErr = unix.Read(int(fd), buf)
			return true // never wait
		})
		if err != nil || readErr != nil || n <= 0 {
			return
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return
		}
	}
}
