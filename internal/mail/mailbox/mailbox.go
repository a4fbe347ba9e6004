// Package mailbox is the mail server of a laptop: letters are kept in the
// database, where the development door shows them. It owns the table
// mailbox_message. It always holds that a letter whose key was sent before is
// kept once, and that only the newest 500 letters are kept.
package mailbox

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/pg"
)

// Kept is how many letters the mailbox keeps.
const Kept = 500

// A Letter is one kept message, in the shape the development door shows.
type Letter struct {
	ID      uuid.UUID `db:"id" json:"id"`
	To      string    `db:"to_addr" json:"to"`
	Subject string    `db:"subject" json:"subject"`
	Text    string    `db:"body" json:"text"`
	HTML    string    `db:"html" json:"html"`
	SentAt  time.Time `db:"sent_at" json:"sent_at"`
}

// A Mailbox is a mail.Sender that keeps what it is given.
type Mailbox struct {
	pool  *pgxpool.Pool
	clock *clock.Clock
}

var _ mail.Sender = (*Mailbox)(nil)

// New returns the mailbox of a database.
func New(pool *pgxpool.Pool, c *clock.Clock) *Mailbox { return &Mailbox{pool: pool, clock: c} }

const sqlKeepLetter = `
	insert into mailbox_message (id, key, to_addr, subject, body, html, sent_at)
	values (@id, nullif(@key::text, ''), @to, @subject, @text, @html, @now)
	on conflict (key) where key is not null do nothing`

const sqlDropOldLetters = `
	delete from mailbox_message
	where seq <= (select seq from mailbox_message order by seq desc offset $1 limit 1)`

// Send keeps m. The fault is mail.ErrRefused.
func (b *Mailbox) Send(ctx context.Context, m mail.Message) error {
	if err := m.Check(); err != nil {
		return err
	}
	return pg.InTx(ctx, b.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sqlKeepLetter, pgx.NamedArgs{
			"id": id.New(), "key": m.Key, "to": m.To, "subject": m.Subject, "text": m.Text, "html": m.HTML, "now": b.clock.Wall(),
		})
		if err != nil {
			return fmt.Errorf("keep a letter: %w", err)
		}
		if _, err := tx.Exec(ctx, sqlDropOldLetters, Kept); err != nil {
			return fmt.Errorf("drop old letters: %w", err)
		}
		return nil
	})
}

const sqlListLetters = `
	select id, to_addr, subject, body, html, sent_at
	from mailbox_message order by seq desc limit $1`

// List returns the kept letters, newest first; never nil.
func (b *Mailbox) List(ctx context.Context) ([]Letter, error) {
	rows, err := b.pool.Query(ctx, sqlListLetters, Kept)
	if err != nil {
		return nil, fmt.Errorf("list letters: %w", err)
	}
	letters, err := pgx.CollectRows(rows, pgx.RowToStructByName[Letter])
	if err != nil {
		return nil, fmt.Errorf("list letters: %w", err)
	}
	if letters == nil {
		letters = []Letter{}
	}
	return letters, nil
}
