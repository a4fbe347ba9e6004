package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/money"
)

// ErrScript occurs when a script names something that does not exist.
var ErrScript = fault.New(fault.Invalid, "sandbox_script", "This sandbox script is not valid.")

// A Script makes the sandbox clouds misbehave. It holds for every node on the
// same folder and survives restarts, until it is cleared or replaced. Without
// one, prices and stock are constant and faults never happen.
type Script struct {
	Provider string         `json:"provider"` // cloud it is for; "" = all
	Faults   []Fault        `json:"faults"`
	Prices   Prices         `json:"prices"`
	Stock    map[string]int `json:"stock"` // GPU type to the GPUs there are in each cloud; absent = plenty
}

// A Fault goes wrong the next Times times its operation is called.
type Fault struct {
	Op      Op     `json:"op"`
	Kind    string `json:"kind"`
	Times   int    `json:"times"`   // calls left; 0 = every call until cleared
	Seconds int    `json:"seconds"` // for slow, late and lag: how long; 0 = that fault's default
}

// Prices of a script.
type Prices struct {
	Factor json.Number `json:"factor,omitempty"` // upstream prices are multiplied by it; "" = 1
}

// Op is an operation that can go wrong.
type Op string

// The operations.
const (
	OpLaunch    Op = "launch"
	OpFind      Op = "find"
	OpTerminate Op = "terminate"
	OpOffers    Op = "offers"
	OpAgent     Op = "agent"
)

// kinds are the ways in which each operation goes wrong.
var kinds = map[Op][]string{
	OpLaunch: {
		"no_capacity", "price_moved", "refused", "funds", "rate_limited", // no machine
		"error_before",                                                  // a plain error, no machine
		"error_after",                                                   // a plain error, and there is a machine
		"hang_after",                                                    // no answer within the caller's patience, and there is a machine
		"late",                                                          // a plain error, the machine appears after Seconds (3)
		"never_boots",                                                   // a machine that stays building
		"boot_fails",                                                    // a machine that failed
		"wrong_gpu", "few_gpus", "no_cuda", "slow_disk", "slow_network", // a machine that is not what was sold
	},
	OpFind:      {"error", "empty", "lag"},                              // lag: machines younger than Seconds (30) are not shown
	OpTerminate: {"refused_not_yet", "error", "slow"},                   // slow: accepted, gone after Seconds (3)
	OpOffers:    {"error", "empty", "malformed", "slow", "price_moved"}, // slow: after Seconds (5); price_moved: 25 % up in this list
	OpAgent:     {"drop", "machine_dies"},                               // drop: 503; machine_dies: with the call its machine ends
}

// Plays reports whether sandbox clouds can go wrong so.
func Plays(op Op, kind string) bool { return slices.Contains(kinds[op], kind) }

// wait is how long a fault's delay is.
func (f Fault) wait(byDefault time.Duration) time.Duration {
	if f.Seconds > 0 {
		return time.Duration(f.Seconds) * time.Second
	}
	return byDefault
}

// SetScript puts a script in force in place of the last one.
func (s *Sandbox) SetScript(ctx context.Context, script Script) error {
	if err := s.checkScript(script); err != nil {
		return err
	}
	return s.changeScript(ctx, func(*Script) (*Script, error) { return &script, nil })
}

// Script returns what is in force, with the calls that are left.
func (s *Sandbox) Script() (Script, error) {
	sc, err := s.readScript()
	if err != nil || sc == nil {
		return Script{}, err
	}
	return *sc, nil
}

// ClearScript ends the script: the clouds behave.
func (s *Sandbox) ClearScript(ctx context.Context) error {
	return s.changeScript(ctx, func(*Script) (*Script, error) { return nil, nil })
}

func (s *Sandbox) checkScript(sc Script) error {
	if _, known := s.clouds[sc.Provider]; sc.Provider != "" && !known {
		return ErrScript.With("There is no sandbox cloud named %q.", sc.Provider)
	}
	for _, f := range sc.Faults {
		if !Plays(f.Op, f.Kind) {
			return ErrScript.With("A sandbox cloud has no fault %q of %q.", f.Kind, f.Op)
		}
		if f.Times < 0 || f.Seconds < 0 {
			return ErrScript.With("The times and seconds of a fault are not negative.")
		}
	}
	if _, err := sc.Prices.apply(money.Rate(money.Dollar)); err != nil {
		return err
	}
	for gpu, n := range sc.Stock {
		if n < 0 {
			return ErrScript.With("The stock of %s is not negative.", gpu)
		}
	}
	return nil
}

// apply multiplies a price by the factor.
func (p Prices) apply(r money.Rate) (money.Rate, error) {
	if p.Factor == "" {
		return r, nil
	}
	f, err := money.Parse(p.Factor.String())
	if err != nil || f <= 0 || f > 1000*money.Dollar {
		return 0, ErrScript.With("The price factor is a number above 0 of at most 6 decimals.")
	}
	return r.Scale(int64(f), int64(money.Dollar)), nil
}

// covers says whether the script is for this cloud; a nil script covers none.
func (sc *Script) covers(cloud string) bool {
	return sc != nil && (sc.Provider == "" || sc.Provider == cloud)
}

// take returns the fault that this call of op meets, counting it; false = none.
// Kinds narrows the choice to some of the operation's faults.
func (s *Sandbox) take(ctx context.Context, cloud string, op Op) (Fault, bool, error) {
	sc, err := s.readScript()
	if err != nil || !sc.covers(cloud) || !slices.ContainsFunc(sc.Faults, func(f Fault) bool { return f.Op == op }) {
		return Fault{}, false, err
	}
	var met Fault
	var hit bool
	err = s.changeScript(ctx, func(sc *Script) (*Script, error) {
		if !sc.covers(cloud) {
			return sc, nil
		}
		i := slices.IndexFunc(sc.Faults, func(f Fault) bool { return f.Op == op })
		if i < 0 {
			return sc, nil
		}
		met, hit = sc.Faults[i], true
		switch met.Times {
		case 0: // for ever
		case 1:
			sc.Faults = slices.Delete(sc.Faults, i, i+1)
		default:
			sc.Faults[i].Times--
		}
		return sc, nil
	})
	return met, hit, err
}

func (s *Sandbox) scriptPath() string { return filepath.Join(s.dir, "script.json") }

// readScript returns the script in force, nil for none.
func (s *Sandbox) readScript() (*Script, error) {
	var sc Script
	found, err := readJSON(s.scriptPath(), &sc)
	if errors.Is(err, errTorn) {
		return nil, nil // a crash of the host ended the script
	}
	if err != nil || !found {
		return nil, err
	}
	return &sc, nil
}

// changeScript replaces the script by what change makes of it, one node at a time.
func (s *Sandbox) changeScript(ctx context.Context, change func(*Script) (*Script, error)) error {
	unlock, err := lockFile(ctx, filepath.Join(s.dir, "script.lock"), patientLock)
	if err != nil {
		return fmt.Errorf("lock the sandbox script: %w", err)
	}
	defer unlock()
	sc, err := s.readScript()
	if err != nil {
		return err
	}
	next, err := change(sc)
	if err != nil {
		return err
	}
	if next == nil {
		if err := os.Remove(s.scriptPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clear the sandbox script: %w", err)
		}
		return nil
	}
	return writeJSON(s.scriptPath(), next)
}
