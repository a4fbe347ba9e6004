package pod

import (
	"homeport.dev/homeport/internal/fault"
)

// A Status is a step of a pod's life, as the dashboard shows it.
type Status string

// The statuses of server rule 9.
const (
	Pending      Status = "pending"       // no machine asked for yet
	Starting     Status = "starting"      // a machine is asked for, its agent is not in
	Mounting     Status = "mounting"      // the agent restores /workspace
	Ready        Status = "ready"         // our own SSH log-in worked and /workspace is there
	SwitchingOff Status = "switching_off" // the platform asked for the end
	Deleting     Status = "deleting"      // the user asked for the end
	Deleted      Status = "deleted"
)

// An Event is something that happened to a pod.
type Event string

// The events.
const (
	Launched Event = "launched" // a provider was asked for a machine
	AgentIn  Event = "agent in" // the agent said hello
	Reached  Event = "reached"  // our SSH log-in worked
	NextTry  Event = "next try" // this machine will not do, another is tried
	UserEnd  Event = "user end" // the user asked for the end
	Stop     Event = "stop"     // the platform asked for the end
	Finished Event = "finished" // synced, or nothing to sync
)

// ErrTransition occurs when a pod cannot do what was asked in its present status.
var ErrTransition = fault.New(fault.Conflict, "pod_state", "The pod cannot do that in its present state.")

// transitions is the whole life of a pod (server rule 9). A pair that is
// absent is refused; nothing leaves Deleted, Deleting never becomes SwitchingOff.
var transitions = map[Status]map[Event]Status{
	Pending:      {Launched: Starting, UserEnd: Deleting, Stop: SwitchingOff},
	Starting:     {AgentIn: Mounting, NextTry: Pending, UserEnd: Deleting, Stop: SwitchingOff},
	Mounting:     {Reached: Ready, NextTry: Pending, UserEnd: Deleting, Stop: SwitchingOff},
	Ready:        {UserEnd: Deleting, Stop: SwitchingOff},
	SwitchingOff: {Finished: Deleted},
	Deleting:     {Finished: Deleted},
	Deleted:      {},
}

// After returns the status that follows s when e happens. The fault is
// ErrTransition.
func (s Status) After(e Event) (Status, error) {
	next, ok := transitions[s][e]
	if !ok {
		return s, ErrTransition
	}
	return next, nil
}

// SettingUp reports whether the pod has not been ready yet and may still be.
func (s Status) SettingUp() bool { return s == Pending || s == Starting || s == Mounting }

// Ending reports whether the pod is on its way out.
func (s Status) Ending() bool { return s == SwitchingOff || s == Deleting }

// over reports whether the pod has ended or is on its way out, and its name with
// it: that of a pod that was started again is its successor's.
func (p *Pod) over() bool { return p.Status.Ending() || p.Status == Deleted && p.RelaunchedAs == nil }

// Reasons a pod is where it is: stable words of status_reason.
const (
	ReasonUser       = "user"         // its user deleted it
	ReasonBalance    = "balance"      // the wallet is empty
	ReasonSpendLimit = "spend_limit"  // the month's limit is reached
	ReasonSetup      = "setup_failed" // no machine could be made ready
	ReasonLost       = "machine_lost" // the machine is gone
	ReasonDamaged    = "volume_damaged"
)
