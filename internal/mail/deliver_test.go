package mail_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"homeport.dev/homeport/internal/mail"
)

// An office answers each letter the same.
type office struct {
	err  error
	sent []mail.Message
}

func (o *office) Send(_ context.Context, m mail.Message) error {
	o.sent = append(o.sent, m)
	return o.err
}

func TestARefusedLetterIsDoneAndAnotherIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ answer, want error }{
		{nil, nil},
		{mail.ErrRefused, nil},
		{mail.ErrUnavailable, mail.ErrUnavailable},
	} {
		var log strings.Builder
		o := &office{err: tt.answer}
		err := mail.Deliver(t.Context(), o, slog.New(slog.NewTextHandler(&log, nil)),
			mail.Layout{Title: "Hello", Paragraphs: []string{"World"}}, "ada@example.com", "A subject", "key-1")
		if !errors.Is(err, tt.want) || len(o.sent) != 1 || o.sent[0].Key != "key-1" || o.sent[0].To != "ada@example.com" {
			t.Errorf("answer %v: %v, sent %+v", tt.answer, err, o.sent)
		}
		if logged := strings.Contains(log.String(), "refused"); logged != errors.Is(tt.answer, mail.ErrRefused) || strings.Contains(log.String(), "ada@") {
			t.Errorf("answer %v: logged %q", tt.answer, log.String())
		}
	}
}

func TestNamesInLetters(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Deep Sea Lab": "Deep Sea Lab", "See HTTPS://evil.test": "a team", "WWW.evil.test": "a team", "": "",
	} {
		if got := mail.Harmless(name, "a team"); got != want {
			t.Errorf("%q is shown as %q, want %q", name, got, want)
		}
	}
	for text, want := range map[string]string{"": "", "harbour": "harbour", "harbours": "harbou…", "the sea at night": "the se…"} {
		if got := mail.Cut(text, 7); got != want {
			t.Errorf("%q is cut to %q, want %q", text, got, want)
		}
	}
}
