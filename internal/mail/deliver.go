package mail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// Attempts is how often the job of a letter is tried, with growing pauses: over
// two days of a mail server that is down.
const Attempts = 15

// Deliver writes a letter and sends it. One that its receiver will never take
// is logged and done with. The fault is ErrUnavailable: then it should be tried
// again, with the same key.
func Deliver(ctx context.Context, sender Sender, logger *slog.Logger, l Layout, to, subject, key string) error {
	m, err := l.Message(to, subject, key)
	if err == nil {
		err = sender.Send(ctx, m)
	}
	if errors.Is(err, ErrRefused) {
		logger.WarnContext(ctx, "a letter was refused", "letter", key, "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("send letter %s: %w", key, err)
	}
	return nil
}

// Harmless is a name that a user gave as a letter may show it: one that holds
// an address of the web would become a link there, and instead stands for it.
func Harmless(name, instead string) string {
	lower := strings.ToLower(name)
	if strings.Contains(lower, "://") || strings.Contains(lower, "www.") {
		return instead
	}
	return name
}

// Cut shortens a text for people, as in a subject, to a number of characters.
func Cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return strings.TrimSpace(string(runes[:most-1])) + "…"
}
