package testpay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stripe/stripe-go/v85/webhook"
)

// A DeliverJob asks for one event to be delivered at once.
type DeliverJob struct {
	EventID string `json:"event_id"`
}

// Kind is the job's name in the queue.
func (DeliverJob) Kind() string { return "testpay_deliver" }

const (
	deliverBatch = 20
	firstRetry   = time.Second
	lastRetry    = 5 * time.Minute
)

// An outgoing is an event that was taken for one try.
type outgoing struct {
	ID       string `db:"id"`
	Payload  []byte `db:"payload"`
	Attempts int    `db:"attempts"`
}

const sqlTakeEvent = `
update testpay_event set attempts = attempts + 1, due_at = $2
where id = $1 and due_at <= $3
returning id, payload, attempts`

// Deliver posts an event to the webhook, unless it was delivered or another
// node is at it. A try that fails is repeated by DeliverDue until the webhook
// answers 200.
func (p *Processor) Deliver(ctx context.Context, j DeliverJob) error {
	wall := p.Clock.Wall()
	rows, err := p.Pool.Query(ctx, sqlTakeEvent, j.EventID, wall.Add(p.Client.Timeout+firstRetry), wall)
	if err != nil {
		return fmt.Errorf("take test event %s: %w", j.EventID, err)
	}
	taken, err := pgx.CollectRows(rows, pgx.RowToStructByName[outgoing])
	if err != nil {
		return fmt.Errorf("take test event %s: %w", j.EventID, err)
	}
	if len(taken) == 0 {
		return nil
	}
	return p.try(ctx, taken[0])
}

const sqlListDue = `select id from testpay_event where due_at <= $1 order by due_at, id limit $2`

// DeliverDue delivers the events whose time has come. Call it each second.
func (p *Processor) DeliverDue(ctx context.Context) error {
	rows, err := p.Pool.Query(ctx, sqlListDue, p.Clock.Wall(), deliverBatch)
	if err != nil {
		return fmt.Errorf("list test events: %w", err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("list test events: %w", err)
	}
	var failed []error
	for _, event := range events {
		failed = append(failed, p.Deliver(ctx, DeliverJob{EventID: event}))
	}
	return errors.Join(failed...)
}

const sqlEventDelivered = `
update testpay_event set due_at = case when copies > 0 then $2::timestamptz end, copies = greatest(copies - 1, 0)
where id = $1`

const sqlEventRetry = `update testpay_event set due_at = $2 where id = $1 and due_at is not null`

// try posts an event once and records what came of it.
func (p *Processor) try(ctx context.Context, e outgoing) error {
	failed := p.post(ctx, e)
	if failed == nil {
		if _, err := p.Pool.Exec(ctx, sqlEventDelivered, e.ID, p.Clock.Wall()); err != nil {
			return fmt.Errorf("record the delivery of test event %s: %w", e.ID, err)
		}
		return nil
	}
	pause := min(lastRetry, firstRetry<<min(e.Attempts-1, 10))
	if _, err := p.Pool.Exec(ctx, sqlEventRetry, e.ID, p.Clock.Wall().Add(pause)); err != nil {
		return errors.Join(failed, fmt.Errorf("put test event %s off: %w", e.ID, err))
	}
	return failed
}

// post signs an event and sends it over HTTP, as Stripe does.
func (p *Processor) post(ctx context.Context, e outgoing) error {
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{
		Payload: e.Payload, Secret: p.secret, Timestamp: p.Clock.Wall(),
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.WebhookURL, bytes.NewReader(e.Payload))
	if err != nil {
		return fmt.Errorf("deliver test event %s: %w", e.ID, err)
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("Stripe-Signature", signed.Header)
	res, err := p.Client.Do(req)
	if err != nil {
		return fmt.Errorf("deliver test event %s: %w", e.ID, err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)); err != nil {
		return fmt.Errorf("deliver test event %s: %w", e.ID, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("deliver test event %s: the webhook answered %d", e.ID, res.StatusCode)
	}
	return nil
}
