package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	hubChannel   = "homeport" // the one PostgreSQL channel; ours are the first line of its payload
	hubBuffer    = 16
	hubBaseDelay = 100 * time.Millisecond
	hubMaxDelay  = 5 * time.Second
)

const sqlNotify = `select pg_notify($1, $2)`

// NotifyTx sends payload to the subscribers of channel in every process, once
// the transaction commits. Equal notifications of one transaction arrive once.
// Channel and payload together are limited to 7,900 bytes, and the channel has
// no line break.
func NotifyTx(ctx context.Context, tx pgx.Tx, channel, payload string) error {
	message := channel + "\n" + payload
	if channel == "" || strings.Contains(channel, "\n") || len(message) > 7900 {
		return fmt.Errorf("notify %q: the channel or its payload of %d bytes cannot be sent", channel, len(payload))
	}
	if _, err := tx.Exec(ctx, sqlNotify, hubChannel, message); err != nil {
		return fmt.Errorf("notify %s: %w", channel, err)
	}
	return nil
}

// A Hub receives the database's notifications on one connection and hands them
// to this process's subscribers. It is a way to wake early, not a queue: a slow
// subscriber loses what its buffer does not hold, a broken connection loses
// what was sent meanwhile. Whoever waits must also look from time to time.
type Hub struct {
	pool   *pgxpool.Pool
	logger *slog.Logger

	mu     sync.Mutex
	subs   map[string]map[chan string]struct{}
	cancel context.CancelFunc
	done   chan struct{}
}

// NewHub returns a hub that has not started.
func NewHub(pool *pgxpool.Pool, logger *slog.Logger) *Hub {
	return &Hub{pool: pool, logger: logger, subs: make(map[string]map[chan string]struct{})}
}

// Start connects, and returns once notifications are received. The hub then
// runs until Stop, or until ctx ends, and connects again as often as it must.
func (h *Hub) Start(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done != nil {
		return errors.New("the hub was started before")
	}
	conn, err := h.listen(ctx)
	if err != nil {
		return err
	}
	ctx, h.cancel = context.WithCancel(ctx)
	h.done = make(chan struct{})
	go h.run(ctx, conn)
	return nil
}

// Stop ends the hub and waits for it within ctx. Stopping twice, or before
// Start, is no error. Subscribers' channels stay open and fall silent.
func (h *Hub) Stop(ctx context.Context) error {
	h.mu.Lock()
	cancel, done := h.cancel, h.done
	h.mu.Unlock()
	if done == nil {
		return nil
	}
	cancel()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the notification hub: %w", ctx.Err())
	}
}

// Subscribe returns the payloads sent to a channel from now on. After the
// connection was lost and found again an empty payload arrives: something may
// have been missed. The caller calls cancel when done; it closes the channel.
func (h *Hub) Subscribe(channel string) (payloads <-chan string, cancel func()) {
	c := make(chan string, hubBuffer)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs[channel] == nil {
		h.subs[channel] = make(map[chan string]struct{})
	}
	h.subs[channel][c] = struct{}{}
	return c, sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.subs[channel], c)
		if len(h.subs[channel]) == 0 {
			delete(h.subs, channel)
		}
		close(c)
	})
}

// listen opens the connection that receives.
func (h *Hub) listen(ctx context.Context) (*pgx.Conn, error) {
	c, err := h.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to listen: %w", err)
	}
	conn := c.Hijack() // it never goes back: it is ours until it breaks
	if _, err := conn.Exec(ctx, "listen "+hubChannel); err != nil {
		closeConn(ctx, conn)
		return nil, fmt.Errorf("listen: %w", err)
	}
	return conn, nil
}

func closeConn(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // broken or not, it is gone
}

// run receives until ctx ends.
func (h *Hub) run(ctx context.Context, conn *pgx.Conn) {
	defer close(h.done)
	for conn != nil {
		err := h.receive(ctx, conn)
		closeConn(ctx, conn)
		if ctx.Err() != nil {
			return
		}
		h.logger.Warn("database notifications interrupted", "error", err)
		conn = h.reconnect(ctx)
	}
}

// receive hands out notifications until the connection breaks or ctx ends.
func (h *Hub) receive(ctx context.Context, conn *pgx.Conn) error {
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if channel, payload, ok := strings.Cut(n.Payload, "\n"); ok {
			h.deliver(channel, payload)
		}
	}
}

// reconnect tries until it succeeds or ctx ends, which is nil.
func (h *Hub) reconnect(ctx context.Context) *pgx.Conn {
	for delay := hubBaseDelay; ; delay = min(2*delay, hubMaxDelay) {
		if sleep(ctx, delay) != nil {
			return nil
		}
		conn, err := h.listen(ctx)
		if err == nil {
			h.logger.Info("database notifications resumed")
			h.deliverAll()
			return conn
		}
	}
}

func (h *Hub) deliver(channel, payload string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.subs[channel] {
		offer(c, payload)
	}
}

func (h *Hub) deliverAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, subs := range h.subs {
		for c := range subs {
			offer(c, "")
		}
	}
}

// offer drops the payload when the subscriber's buffer is full: it has enough
// to wake for.
func offer(c chan<- string, payload string) {
	select {
	case c <- payload:
	default:
	}
}
