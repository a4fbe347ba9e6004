package payment

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"unicode/utf8"

	"homeport.dev/homeport/internal/fault"
)

// Faults of acknowledging a difference between the two books.
var (
	// ErrNoProblem occurs for a subject about which the books do not differ.
	ErrNoProblem = fault.New(fault.NotFound, "clearing_problem_not_found", "The books do not differ about this.")
	// ErrNote occurs without a note or a name, or with one that is too long.
	ErrNote = fault.New(fault.Invalid, "clearing_note_invalid", "Please say what it is, in at most 500 characters, and who you are, in at most 100.")
)

const sqlAcknowledge = `
insert into clearing_acknowledgement (processor, subject, kind, off_usd_micro, found_at, acknowledged_at, acknowledged_by, note)
select processor, subject, kind, off_usd_micro, found_at, $3, $4, $5 from clearing_problem
where processor = $1 and subject = $2 and ended_at is null
on conflict (processor, subject, found_at, kind, off_usd_micro) do update set note = clearing_acknowledgement.note`

// Acknowledge notes that an operator looked into a difference between the two
// books and knows what it is: it stays listed, and counts no more unless it
// changes or comes back after it ended. Nothing is adjusted. Of one that was
// acknowledged before, the first note stays. The faults are ErrNoProblem,
// ErrNote and ErrNotSetUp.
func (s *Service) Acknowledge(ctx context.Context, subject, note, by string) error {
	if s.Processor == nil {
		return ErrNotSetUp
	}
	note, by = strings.TrimSpace(note), strings.TrimSpace(by)
	if note == "" || by == "" || utf8.RuneCountInString(note) > 500 || utf8.RuneCountInString(by) > 100 {
		return ErrNote
	}
	tag, err := s.Pool.Exec(ctx, sqlAcknowledge, s.Processor.Source(), subject, s.Clock.Now(), by, note)
	if err != nil {
		return fmt.Errorf("acknowledge %s: %w", subject, err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNoProblem
	}
	s.Logger.InfoContext(ctx, "a difference of the books was acknowledged", slog.String("subject", subject), slog.String("by", by))
	return nil
}
