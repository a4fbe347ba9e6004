package pod

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/job"
)

// ordersChannel carries the ids of pods whose orders may have changed.
const ordersChannel = "pod_orders"

// nudgeTx makes both sides of a pod look again: the reconciler through the job
// queue, the waiting agent through a notification. Either may be lost.
func (s *Service) nudgeTx(ctx context.Context, tx pgx.Tx, podID uuid.UUID) error {
	if s.Notify != nil {
		if err := s.Notify(ctx, tx, ordersChannel, podID.String()); err != nil {
			return err
		}
	}
	return s.Jobs.AddTx(ctx, tx, ReconcileJob{PodID: podID}, job.Options{})
}

// waiters holds the agents' long polls, by pod.
type waiters struct {
	mu     sync.Mutex
	chans  map[uuid.UUID]chan struct{}
	closed bool
}

func newWaiters() *waiters { return &waiters{chans: map[uuid.UUID]chan struct{}{}} }

// wait returns a channel that closes at the pod's next wake.
func (w *waiters) wait(podID uuid.UUID) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, ok := w.chans[podID]
	if !ok {
		c = make(chan struct{})
		w.chans[podID] = c
	}
	return c
}

// drained reports whether nobody is to wait any more.
func (w *waiters) drained() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// Drain lets every waiting agent go and makes none wait again: the node stops.
func (s *Service) Drain() {
	w := s.orders
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for podID, c := range w.chans {
		close(c)
		delete(w.chans, podID)
	}
}

func (w *waiters) wake(podID uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c, ok := w.chans[podID]; ok {
		close(c)
		delete(w.chans, podID)
	}
}

// FollowOrders wakes this node's waiting agents when another node, or this
// one, changes a pod. It returns when the context ends.
func (s *Service) FollowOrders(ctx context.Context) {
	if s.Listen == nil {
		<-ctx.Done()
		return
	}
	payloads, cancel := s.Listen(ordersChannel)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case text, ok := <-payloads:
			if !ok {
				return
			}
			if podID, err := uuid.Parse(text); err == nil {
				s.orders.wake(podID)
			}
		}
	}
}

// ordersOf is what the agent of a pod is to do now.
func (s *Service) ordersOf(ctx context.Context, p *Pod) (agentapi.Orders, error) {
	var o agentapi.Orders
	keys, err := s.Keys.LinesTx(ctx, s.Pool, []uuid.UUID{p.SSHKeyID})
	if err != nil {
		return o, err
	}
	o.AuthorizedKeys = []string{}
	if line, ok := keys[p.SSHKeyID]; ok {
		o.AuthorizedKeys = append(o.AuthorizedKeys, line)
	}
	o.Notice = s.notice(p)
	if o.Landing, err = s.landing(ctx, p); err != nil {
		return o, err
	}
	switch {
	case p.Status.Ending() && p.FinalWallAt == nil:
		o.Command = agentapi.CommandFinal
	case p.Status.Ending():
		o.Command = agentapi.CommandStop
	}
	text, err := json.Marshal(o)
	if err != nil {
		return o, err
	}
	sum := sha256.Sum256(text)
	o.Version = base64.RawURLEncoding.EncodeToString(sum[:12])
	return o, nil
}

const sqlPodsOfKey = `select id from pod where ssh_key_id = $1 and status <> 'deleted'`

// KeyGoneTx makes the pods of a deleted key drop it: their agents are woken and
// read their orders again.
func (s *Service) KeyGoneTx(ctx context.Context, tx pgx.Tx, keyID uuid.UUID) error {
	rows, _ := tx.Query(ctx, sqlPodsOfKey, keyID)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("pods of key %s: %w", keyID, err)
	}
	for _, podID := range ids {
		if err := s.nudgeTx(ctx, tx, podID); err != nil {
			return err
		}
	}
	return nil
}
