// Package operator shows those who run this Homeport how it does: the clouds,
// the machines, the margins, the jobs that fail and the books. It reads what
// the owners of all that have written down, and never asks a cloud: one that
// hangs delays nobody here. It changes nothing.
package operator

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

// Deps is what the service stands on.
type Deps struct {
	Emails   []string // of the operators, as ParseEmails returns them
	Clock    *clock.Clock
	Offers   *offer.Service
	Pods     *pod.Service
	Wallet   *wallet.Service
	Volumes  *volume.Service
	Payments *payment.Service
	// FailingJobs lists the kinds of jobs that fail at an instant of wall time,
	// the worst first.
	FailingJobs func(ctx context.Context, now time.Time) ([]FailingJob, error)
}

// A Service is the operator's view. It is safe for concurrent use.
type Service struct {
	Deps
	making chan struct{}    // held by who makes margins
	made   map[int]*Margins // by how many days
}

// New returns the service.
func New(d Deps) *Service {
	return &Service{Deps: d, making: make(chan struct{}, 1), made: map[int]*Margins{}}
}

// ParseEmails reads a list of addresses with commas between, without upper case.
func ParseEmails(text string) ([]string, error) {
	var list []string
	var errs []error
	for field := range strings.SplitSeq(text, ",") {
		if field = strings.TrimSpace(field); field == "" {
			continue
		}
		a, err := mail.ParseAddress(field)
		if err != nil || a.Address != field || len(field) > 254 {
			errs = append(errs, fmt.Errorf("%q is not an e-mail address", field))
			continue
		}
		list = append(list, strings.ToLower(field))
	}
	return list, errors.Join(errs...)
}

// Is reports whether a person is an operator. Who is signed in has shown to read
// the mail of their address.
func (s *Service) Is(p team.Person) bool {
	return p.Email != "" && slices.Contains(s.Emails, strings.ToLower(p.Email))
}
