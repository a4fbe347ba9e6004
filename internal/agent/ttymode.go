//go:build linux

package agent

import (
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// The encoded terminal modes of RFC 4254, section 8, as Linux knows them.
var (
	modeChars = map[byte]int{
		1: unix.VINTR, 2: unix.VQUIT, 3: unix.VERASE, 4: unix.VKILL, 5: unix.VEOF, 6: unix.VEOL, 7: unix.VEOL2,
		8: unix.VSTART, 9: unix.VSTOP, 10: unix.VSUSP, 12: unix.VREPRINT, 13: unix.VWERASE, 14: unix.VLNEXT, 18: unix.VDISCARD,
	}
	modeInput = map[byte]uint32{
		30: unix.IGNPAR, 31: unix.PARMRK, 32: unix.INPCK, 33: unix.ISTRIP, 34: unix.INLCR, 35: unix.IGNCR, 36: unix.ICRNL,
		37: unix.IUCLC, 38: unix.IXON, 39: unix.IXANY, 40: unix.IXOFF, 41: unix.IMAXBEL, 42: unix.IUTF8,
	}
	modeLocal = map[byte]uint32{
		50: unix.ISIG, 51: unix.ICANON, 52: unix.XCASE, 53: unix.ECHO, 54: unix.ECHOE, 55: unix.ECHOK, 56: unix.ECHONL,
		57: unix.NOFLSH, 58: unix.TOSTOP, 59: unix.IEXTEN, 60: unix.ECHOCTL, 61: unix.ECHOKE, 62: unix.PENDIN,
	}
	modeOutput = map[byte]uint32{
		70: unix.OPOST, 71: unix.OLCUC, 72: unix.ONLCR, 73: unix.OCRNL, 74: unix.ONOCR, 75: unix.ONLRET,
	}
)

const (
	modeNotSet   = 255 // of a character: it is disabled
	modeFirstBig = 160 // opcodes from here on end the list
)

// setModes gives a terminal the modes that the client's own terminal has.
// Modes Linux does not have are passed over.
func setModes(tty *os.File, modes string) error {
	fd := int(tty.Fd())
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	for b := []byte(modes); len(b) >= 5 && b[0] != 0 && b[0] < modeFirstBig; b = b[5:] {
		op, value := b[0], binary.BigEndian.Uint32(b[1:5])
		if i, ok := modeChars[op]; ok {
			t.Cc[i] = byte(value)
			if value == modeNotSet {
				t.Cc[i] = 0
			}
		}
		flip(&t.Iflag, modeInput[op], value)
		flip(&t.Lflag, modeLocal[op], value)
		flip(&t.Oflag, modeOutput[op], value)
	}
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}

func flip(flags *uint32, bit, on uint32) {
	*flags &^= bit
	if on != 0 {
		*flags |= bit
	}
}
