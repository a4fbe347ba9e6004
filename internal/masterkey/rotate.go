package masterkey

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/seal"
)

// A Rotation is what Rotate did.
type Rotation struct {
	Key      string   `json:"key"`      // the current one
	Fresh    bool     `json:"fresh"`    // it was made current just now
	Resealed int64    `json:"resealed"` // values
	Old      []string `json:"old"`      // keys to retire
}

// errBusy occurs when keys are rotated or retired by another process.
var errBusy = errors.New("the master keys are being rotated or retired by another command")

// rotateLock is the advisory lock of whoever changes the keys.
const rotateLock = 7_305_003

const sqlTryLock = `select pg_try_advisory_lock($1)`

const sqlUnlock = `select pg_advisory_unlock($1)`

// alone runs fn while no other process changes the keys. One that died gives its
// lock back as soon as the database has noticed.
func (r *Ring) alone(ctx context.Context, fn func() error) error {
	c, err := r.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect to lock the master keys: %w", err)
	}
	conn := c.Hijack() // closing it gives back the lock, come what may
	defer conn.Close(context.WithoutCancel(ctx))
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := r.Clock.Wall().Add(r.Wait); ; {
		var locked bool
		if err := conn.QueryRow(ctx, sqlTryLock, int64(rotateLock)).Scan(&locked); err != nil {
			return fmt.Errorf("lock the master keys: %w", err)
		}
		if locked {
			break
		}
		if r.Clock.Wall().After(end) {
			return errBusy
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	err = fn()
	if _, failed := conn.Exec(ctx, sqlUnlock, int64(rotateLock)); failed != nil && err == nil {
		return fmt.Errorf("unlock the master keys: %w", failed)
	}
	return err
}

// Rotate makes a new key the current one and seals everything again under it.
// While an old key is not retired it begins no other rotation, but ends that
// one: it may be called again after it died at any line.
func (r *Ring) Rotate(ctx context.Context) (done Rotation, err error) {
	err = r.alone(ctx, func() error {
		rows, err := r.rows(ctx, r.Pool)
		if err != nil {
			return err
		}
		if !hasState(rows, old) {
			if err := r.begin(ctx, rows); err != nil {
				return err
			}
			done.Fresh = true
		}
		return r.finish(ctx, &done)
	})
	return done, err
}

func hasState(rows []row, s state) bool {
	for _, one := range rows {
		if one.State == s {
			return true
		}
	}
	return false
}

// begin makes the next key current once every node holds it.
func (r *Ring) begin(ctx context.Context, rows []row) error {
	k, err := r.nextKey(ctx, rows)
	if err != nil {
		return err
	}
	why, err := r.await(ctx, func(n node) bool { return n.holds(k.id) })
	if err != nil {
		return err
	}
	if why != "" {
		return fmt.Errorf("%s: the new key %s is not there yet, and seals nothing. Give every node the line of that key (%s of this one), and run this again",
			why, k.id, r.source())
	}
	err = pg.InTx(ctx, r.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlMakeOld); err != nil {
			return err
		}
		made, err := tx.Exec(ctx, sqlMakeCurrent, k.id[:], r.Clock.Wall())
		if err == nil && made.RowsAffected() != 1 {
			return errBusy // this process lost its lock while it waited
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("make the master key %s current: %w", k.id, err)
	}
	fail.Point("keys.current.committed")
	return nil
}

const sqlMakeOld = `update master_key set state = 'old' where state = 'current'`

const sqlMakeCurrent = `update master_key set state = 'current', current_at = $2 where id = $1 and state = 'next'`

const sqlAddNext = `insert into master_key (mark, id, state, made_at) values ($1, $1, 'next', $2)`

// nextKey is the key of a rotation that was begun, or one that was given and not
// used so far, or a new one. It lies in the file before the database knows it.
func (r *Ring) nextKey(ctx context.Context, rows []row) (key, error) {
	keys, err := r.read()
	if err != nil {
		return key{}, err
	}
	known := map[string]bool{}
	for _, one := range rows {
		if one.State == next {
			k, ok := find(keys, one.ID)
			if !ok {
				return key{}, fmt.Errorf("a rotation to the master key %s was begun, which is not in %s: put its line back, or retire that key", one.name(), r.source())
			}
			return k, nil
		}
		known[one.name()] = true
	}
	k, fresh := key{}, false
	for _, given := range keys {
		if !known[given.id.String()] {
			k, fresh = given, true
		}
	}
	if !fresh {
		if r.Setting != "" {
			return key{}, fmt.Errorf("%s holds no new key: append a comma and 64 hex digits drawn at random to it on every node, start them again one after another, and run this again", setting)
		}
		k = drawn()
		if err := r.write(r.Path, append(keys, k)); err != nil {
			return key{}, fmt.Errorf("keep a new master key: %w", err)
		}
		fail.Point("keys.next.written")
	}
	if _, err := r.Pool.Exec(ctx, sqlAddNext, k.id[:], r.Clock.Wall()); err != nil {
		return key{}, fmt.Errorf("tell the database of the master key %s: %w", k.id, err)
	}
	fail.Point("keys.next.committed")
	return k, nil
}

// finish seals everything under the current key, waits until every node does,
// and looks again.
func (r *Ring) finish(ctx context.Context, done *Rotation) error {
	keys, err := r.read()
	if err != nil {
		return err
	}
	if _, err := r.load(ctx, keys); err != nil {
		return err
	}
	mark := r.box.Current()
	done.Key = mark.String()
	first, err := r.resealAll(ctx)
	done.Resealed = first.sealed
	if err != nil {
		return err
	}
	why, err := r.await(ctx, func(n node) bool { return seal.Mark(n.Sealing) == mark })
	if err != nil {
		return err
	}
	if why != "" {
		return fmt.Errorf("%s: it still seals under an old key. Give it the current one, and run this again", why)
	}
	second, err := r.resealAll(ctx)
	done.Resealed += second.sealed
	if err != nil {
		return err
	}
	rows, err := r.rows(ctx, r.Pool)
	if err != nil {
		return err
	}
	done.Old = []string{}
	for _, one := range rows {
		if one.State == old {
			done.Old = append(done.Old, one.name())
		}
		if one.State == current {
			done.Key = one.name()
		}
	}
	return second.err()
}

// A node is one that serves.
type node struct {
	NodeID  [16]byte
	Host    string
	Held    [][]byte
	Sealing []byte
}

func (n node) holds(m seal.Mark) bool {
	for _, one := range n.Held {
		if seal.Mark(one) == m {
			return true
		}
	}
	return false
}

const sqlListNodes = `select node_id, host, held, sealing from master_key_node where seen_wall_at > $1 order by host, node_id`

func (r *Ring) nodes(ctx context.Context) ([]node, error) {
	rows, err := r.Pool.Query(ctx, sqlListNodes, r.Clock.Wall().Add(-nodeLives))
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	nodes, err := pgx.CollectRows(rows, pgx.RowToStructByName[node])
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	return nodes, nil
}

// await waits until all nodes that serve are as they should be, and names those
// that are not in time.
func (r *Ring) await(ctx context.Context, good func(node) bool) (why string, err error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := r.Clock.Wall().Add(r.Wait); ; {
		nodes, err := r.nodes(ctx)
		if err != nil {
			return "", err
		}
		var bad []string
		for _, n := range nodes {
			if !good(n) {
				bad = append(bad, fmt.Sprintf("%s (%x)", n.Host, n.NodeID[:4]))
			}
		}
		switch {
		case len(bad) == 0:
			return "", nil
		case r.Clock.Wall().After(end):
			return "node " + strings.Join(bad, ", "), nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-tick.C:
		}
	}
}
