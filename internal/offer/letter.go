package offer

import (
	"context"
	"strconv"
	"time"

	"homeport.dev/homeport/internal/mail"
)

// A BrokenJob asks for the letter that tells the operator of a cloud whose
// offers went off sale.
type BrokenJob struct {
	Adapter string    `json:"adapter"`
	Reason  string    `json:"reason"`
	Trouble string    `json:"trouble"`
	At      time.Time `json:"at"`
}

// Kind names the job.
func (BrokenJob) Kind() string { return "offer.broken" }

// SendBroken sends a BrokenJob's letter, if there is somebody to send it to. It
// may run twice: the letter then has the same key. The fault
// mail.ErrUnavailable means that it should run again.
func (s *Service) SendBroken(ctx context.Context, j BrokenJob) error {
	if s.Operator == "" {
		return nil
	}
	title := j.Adapter + " is off sale: its calls fail"
	what := "Too many calls to " + j.Adapter + " failed. Its offers are off sale, nothing new is launched there, and pods that run there go on. It is tried again by itself."
	if j.Reason == BrokenByFunds {
		title = j.Adapter + " is off sale: our account is out of funds"
		what = j.Adapter + " refuses to launch machines because our account there is out of funds. Its offers are off sale. Add funds there; within an hour they come back by themselves. Some clouds end running machines of an account without funds."
	}
	paragraphs := []string{what, "Off sale since " + j.At.Format("2006-01-02 15:04:05 UTC") + "."}
	if j.Trouble != "" {
		paragraphs = append(paragraphs, "It said: "+mail.Cut(j.Trouble, maxTrouble))
	}
	key := "broken-" + j.Adapter + "-" + strconv.FormatInt(j.At.UnixMicro(), 10)
	l := mail.Layout{Title: title, Paragraphs: paragraphs, Action: &mail.Action{Label: "Show the clouds", URL: s.PublicURL + "/operator#clouds"}}
	return mail.Deliver(ctx, s.Mail, s.Logger, l, s.Operator, title, key)
}
