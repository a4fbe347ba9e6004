package mailbox_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/mail/mailbox"
	"homeport.dev/homeport/internal/pg/pgtest"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestLettersAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	now := clock.Fixed(start)
	box := mailbox.New(pgtest.New(t), now.Clock)
	if letters, err := box.List(t.Context()); err != nil || letters == nil || len(letters) != 0 {
		t.Fatalf("List of an empty mailbox = %v, %v", letters, err)
	}
	for i := range 3 {
		now.Advance(time.Second)
		m := mail.Message{To: fmt.Sprintf("u%d@x.io", i), Subject: "S", Text: "T", HTML: "<p>"}
		if err := box.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	letters, err := box.List(t.Context())
	if err != nil || len(letters) != 3 {
		t.Fatalf("List = %v, %v", letters, err)
	}
	if letters[0].To != "u2@x.io" || letters[2].To != "u0@x.io" || !letters[0].SentAt.Equal(start.Add(3*time.Second)) {
		t.Errorf("List = %+v", letters)
	}
	body, err := json.Marshal(letters[0])
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"id":%q,"to":"u2@x.io","subject":"S","text":"T","html":"\u003cp\u003e","sent_at":"2026-03-01T12:00:03Z"}`, letters[0].ID)
	if string(body) != want {
		t.Errorf("JSON = %s, want %s", body, want)
	}
}

func TestALetterSentTwiceIsKeptOnce(t *testing.T) {
	t.Parallel()
	box := mailbox.New(pgtest.New(t), clock.Fixed(start).Clock)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if err := box.Send(t.Context(), mail.Message{To: "a@x.io", Subject: "S", Text: "T", Key: "k-1"}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if letters, err := box.List(t.Context()); err != nil || len(letters) != 1 {
		t.Errorf("List = %d letters, %v; want 1", len(letters), err)
	}
}

func TestOnlyTheNewestLettersAreKept(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	box := mailbox.New(pool, clock.Fixed(start).Clock)
	_, err := pool.Exec(t.Context(), `
		insert into mailbox_message (id, to_addr, subject, body, html, sent_at)
		select gen_random_uuid(), 'old@x.io', 'S', 'T', '', $1 from generate_series(1, 600)`, start)
	if err != nil {
		t.Fatal(err)
	}
	if err := box.Send(t.Context(), mail.Message{To: "new@x.io", Subject: "S", Text: "T"}); err != nil {
		t.Fatal(err)
	}
	var kept int
	if err := pool.QueryRow(t.Context(), `select count(*) from mailbox_message`).Scan(&kept); err != nil {
		t.Fatal(err)
	}
	letters, err := box.List(t.Context())
	if err != nil || kept != mailbox.Kept || len(letters) != mailbox.Kept || letters[0].To != "new@x.io" {
		t.Errorf("kept %d, listed %d, %v", kept, len(letters), err)
	}
}

func TestTheMailboxRefusesWhatAMailServerWould(t *testing.T) {
	t.Parallel()
	box := mailbox.New(pgtest.New(t), clock.Fixed(start).Clock)
	err := box.Send(t.Context(), mail.Message{To: "a@x.io\r\nBcc: b@x.io", Subject: "S", Text: "T"})
	if !errors.Is(err, mail.ErrRefused) {
		t.Errorf("Send = %v, want ErrRefused", err)
	}
}
