// Package mail sends letters to users. It owns the shape of a letter, its
// layout and the SMTP sender; what a letter says belongs to the package that
// sends it, and when it is sent to that package's job.
//
// What always holds: one letter has one receiver, no header can be smuggled in
// through an address or a subject, and no error of this package contains an
// address.
package mail

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"homeport.dev/homeport/internal/fault"
)

// Faults of sending.
var (
	// ErrRefused occurs when the receiving side will never take this letter: it
	// answered with a permanent failure, or the letter itself cannot be sent.
	ErrRefused = fault.New(fault.Invalid, "mail_refused", "This address does not accept mail.")
	// ErrUnavailable occurs when the mail server cannot be reached, refuses our
	// sign-in or asks to try later.
	ErrUnavailable = fault.New(fault.Unavailable, "mail_unavailable", "Mail cannot be sent at the moment. Please try again.")
)

// MaxAddress is the longest address a letter is sent to, in bytes.
const MaxAddress = 255

const (
	maxSubject = 200
	maxKey     = 100
)

// A Message is one letter to one receiver.
type Message struct {
	To      string // a bare address: name@host
	Subject string // one line
	Text    string // the text part
	HTML    string // the HTML part; empty = none
	Key     string // names the letter for ever: sending it twice is known as the same one; empty = none
}

// A Sender takes letters. It is safe for concurrent use.
type Sender interface {
	// Send delivers m or returns why not: ErrRefused means that trying again
	// cannot help, ErrUnavailable that it may. A letter whose Key was sent
	// before may be delivered again where the far side cannot tell.
	Send(ctx context.Context, m Message) error
}

// Check refuses, with ErrRefused, a letter that cannot be written down safely.
// Every Sender calls it first.
func (m Message) Check() error {
	switch {
	case !oneLine(m.To) || !plainAddress(m.To):
		return ErrRefused.Because(errors.New("the receiver is not one plain address"))
	case m.Subject == "" || len(m.Subject) > maxSubject || !oneLine(m.Subject):
		return ErrRefused.Because(errors.New("the subject is not one line"))
	case len(m.Key) > maxKey || strings.Trim(m.Key, keyChars) != "":
		return ErrRefused.Because(fmt.Errorf("the key has characters outside %q", keyChars))
	case m.Text == "":
		return ErrRefused.Because(errors.New("the text part is empty"))
	}
	return nil
}

const keyChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// oneLine says that s has no control character, so that it cannot end a header.
func oneLine(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 })
}

// plainAddress says that s is name@host in printable ASCII, without quoting,
// comments or a list.
func plainAddress(s string) bool {
	name, host, ok := strings.Cut(s, "@")
	if !ok || name == "" || host == "" || len(s) > MaxAddress {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),:;<>[\]`, r)
	}) && !strings.Contains(host, "@")
}
