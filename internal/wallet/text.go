package wallet

import (
	"fmt"
	"time"
)

// title names what a row of usage is about.
func (k Kind) title() string {
	if k == PodRuntime {
		return "Pod runtime"
	}
	return "Storage"
}

// refunded is the sentence of a refund: "Refund: Pod runtime: 2x H100 80GB, not
// used after 14 Mar 17:00:05 UTC".
func (k Kind) refunded(what string, end time.Time) string {
	return "Refund: " + join(k.title(), what) + ", not used after " + end.Format("2 Jan 15:04:05 MST")
}

// usedFor is the sentence of a day's usage: "Pod runtime: 2x H100 80GB, 3 h 12 min".
func (k Kind) usedFor(what string, ran time.Duration) string {
	return join(k.title(), what) + ", " + spell(ran)
}

func join(title, what string) string {
	if what == "" {
		return title
	}
	return title + ": " + what
}

// spell writes a duration for people.
func spell(d time.Duration) string {
	hours, minutes, seconds := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case hours > 0 && minutes > 0:
		return fmt.Sprintf("%d h %d min", hours, minutes)
	case hours > 0:
		return fmt.Sprintf("%d h", hours)
	case minutes > 0 && seconds > 0:
		return fmt.Sprintf("%d min %d s", minutes, seconds)
	case minutes > 0:
		return fmt.Sprintf("%d min", minutes)
	}
	return fmt.Sprintf("%d s", seconds)
}
