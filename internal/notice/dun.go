package notice

import (
	"strconv"
	"time"

	"homeport.dev/homeport/internal/team"
)

// OfDun is the notice of what a team is told of its unpaid subscription.
func OfDun(d team.Dun) Notice {
	n := Notice{TeamID: d.TeamID, Kind: PlanUnpaid, Key: graceKey(d.Until), PostedAt: d.At, Facts: Facts{EndsAt: &d.Until}}
	if d.Last {
		n.Kind = PlanEnds
	}
	return n
}

func graceKey(until time.Time) string { return strconv.FormatInt(until.UnixMicro(), 10) }

// planNotice picks the newest notice of the grace that a team is in, from a
// list with the newest first.
func planNotice(all []Notice, until *time.Time) []Notice {
	if until == nil {
		return nil
	}
	for _, n := range all {
		if (n.Kind == PlanUnpaid || n.Kind == PlanEnds) && n.Key == string(n.Kind)+":"+graceKey(*until) {
			return []Notice{n}
		}
	}
	return nil
}
