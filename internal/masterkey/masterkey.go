// Package masterkey owns the master keys under which an installation's secrets
// are sealed: the file in which they lie, the record in the database of which
// ones there are, and the way from one to the next.
//
// A key goes through four states. A next key is known to the database and seals
// nothing yet; it becomes current once every node that serves holds it. The
// current key seals. An old key opens what it sealed. A retired key has no value
// left and never gets one again: the columns of sealed values refer to the keys
// that are usable. Key material is never in the database, a log or an answer.
package masterkey

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/seal"
)

// Deps are what a Ring is made of.
type Deps struct {
	Pool   *pgxpool.Pool
	Clock  *clock.Clock
	Logger *slog.Logger
	// Setting holds the keys in hex where they are configured, separated by
	// commas or blanks. Empty: they lie in the file Path, one a line.
	Setting string
	Path    string
	// Columns are all places of sealed values.
	Columns []seal.Column
	// Wait bounds how long Rotate waits for other nodes; 0 = 30 s.
	Wait time.Duration
}

// A Ring is what one process knows of the keys. It is safe for concurrent use.
type Ring struct {
	Deps
	box  *seal.Box
	node uuid.UUID
	host string

	mu     sync.Mutex
	usable [][]byte // the current key first
	onUse  func()
	err    error // of the last look
}

// A state is how a key stands.
type state string

const (
	next    state = "next"
	current state = "current"
	old     state = "old"
	retired state = "retired"
)

// A row is a key as the database knows it.
type row struct {
	Mark      []byte     `db:"mark"`
	ID        []byte     `db:"id"` // nil: of a first key that no node has shown yet
	State     state      `db:"state"`
	MadeAt    *time.Time `db:"made_at"`
	CurrentAt *time.Time `db:"current_at"`
	RetiredAt *time.Time `db:"retired_at"`
}

func (r row) mark() seal.Mark { return seal.Mark(r.Mark) }

// name is how people call the key.
func (r row) name() string {
	if r.ID == nil {
		return "of no name yet"
	}
	return seal.Mark(r.ID).String()
}

// Open reads the keys, drawing the first one of a new installation, and holds
// that they are those of this database: with others, or with fewer than what is
// sealed needs, it changes nothing and says what is missing.
func Open(ctx context.Context, d Deps) (*Ring, error) {
	r := &Ring{Deps: d, box: seal.NewEmpty(), node: id.New()}
	r.host, _ = os.Hostname() // a label: without it the node's id is shown
	if r.Wait == 0 {
		r.Wait = 30 * time.Second
	}
	keys, err := r.read()
	if errors.Is(err, fs.ErrNotExist) {
		if err := r.mayDraw(ctx); err != nil {
			return nil, err
		}
		if err := drawFirst(r.Path); err != nil {
			return nil, fmt.Errorf("draw a master key: %w", err)
		}
		keys, err = r.read()
	}
	if err != nil {
		return nil, err
	}
	if err := r.adopt(ctx, keys); err != nil {
		return nil, err
	}
	missing, err := r.load(ctx, keys)
	if err != nil {
		return nil, err
	}
	return r, r.checkMissing(ctx, missing)
}

// Box seals under the current key, whichever that is.
func (r *Ring) Box() *seal.Box { return r.box }

// Derived makes a key for one purpose from each usable master key: the current
// one's comes first.
func (r *Ring) Derived(purpose string) [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	made := make([][]byte, len(r.usable))
	for i, secret := range r.usable {
		made[i] = derived(secret, purpose)
	}
	return made
}

// OnUse calls fn now, and whenever the usable keys may be others.
func (r *Ring) OnUse(fn func()) {
	r.mu.Lock()
	r.onUse = fn
	r.mu.Unlock()
	fn()
}

// Err says why this process cannot use the installation's keys; nil = it can.
func (r *Ring) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// nodeLives is how long after its last word a node counts.
const nodeLives = 10 * time.Second

const sqlBeat = `
insert into master_key_node (node_id, host, held, sealing, seen_wall_at) values (@node, @host, @held, @sealing, @now)
on conflict (node_id) do update set held = excluded.held, sealing = excluded.sealing, seen_wall_at = excluded.seen_wall_at`

const sqlForgetNodes = `delete from master_key_node where seen_wall_at < $1`

// Follow looks at the keys again and tells the other nodes what this one holds.
// A node that serves calls it every second or two. One that lacks the current
// key goes on under the key that it has, which stays readable, and says so.
func (r *Ring) Follow(ctx context.Context) error {
	keys, err := r.read()
	if err == nil {
		_, err = r.load(ctx, keys)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.mu.Lock()
	r.err = err
	r.mu.Unlock()
	held := make([][]byte, len(keys))
	for i, k := range keys {
		held[i] = k.id[:]
	}
	sealing, now := r.box.Current(), r.Clock.Wall()
	_, beat := r.Pool.Exec(ctx, sqlBeat, pgx.NamedArgs{
		"node": r.node, "host": r.host, "held": held, "sealing": sealing[:], "now": now,
	})
	if beat == nil {
		_, beat = r.Pool.Exec(ctx, sqlForgetNodes, now.Add(-time.Hour))
	}
	return errors.Join(err, beat)
}

// Leave says that this node serves no more.
func (r *Ring) Leave(ctx context.Context) error {
	if _, err := r.Pool.Exec(ctx, sqlLeave, r.node); err != nil {
		return fmt.Errorf("leave the nodes' list of keys: %w", err)
	}
	return nil
}

const sqlLeave = `delete from master_key_node where node_id = $1`

const sqlListKeys = `
select mark, id, state, made_at, current_at, retired_at from master_key
order by made_at nulls first, mark`

func (r *Ring) rows(ctx context.Context, q pg.Querier) ([]row, error) {
	found, err := q.Query(ctx, sqlListKeys)
	if err != nil {
		return nil, fmt.Errorf("list the master keys: %w", err)
	}
	rows, err := pgx.CollectRows(found, pgx.RowToStructByName[row])
	if err != nil {
		return nil, fmt.Errorf("list the master keys: %w", err)
	}
	return rows, nil
}

// load takes the keys into use that are held and not retired, and returns those
// in use that are not held. Without the current one it changes nothing.
func (r *Ring) load(ctx context.Context, keys []key) (missing []row, err error) {
	rows, err := r.rows(ctx, r.Pool)
	if err != nil {
		return nil, err
	}
	var usable [][]byte
	var sealing *row
	for i, one := range rows {
		if one.State == retired {
			continue
		}
		k, ok := find(keys, one.ID)
		if !ok {
			missing = append(missing, one)
			continue
		}
		if one.State == current {
			sealing, usable = &rows[i], append([][]byte{k.secret}, usable...)
		} else {
			usable = append(usable, k.secret)
		}
		if err := r.box.Add(one.mark(), k.secret); err != nil {
			return nil, err
		}
	}
	for _, k := range keys { // also what another process makes current before the next look
		if slices.ContainsFunc(rows, func(one row) bool { return bytes.Equal(one.ID, k.id[:]) }) {
			continue
		}
		usable = append(usable, k.secret)
		if err := r.box.Add(k.id, k.secret); err != nil {
			return nil, err
		}
	}
	if sealing == nil {
		return nil, r.errMissing(rows, keys)
	}
	if err := r.box.SealUnder(sealing.mark()); err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.usable = usable
	onUse := r.onUse
	r.mu.Unlock()
	if onUse != nil {
		onUse()
	}
	return missing, nil
}

// errMissing says which key seals this database, and which ones there are.
func (r *Ring) errMissing(rows []row, keys []key) error {
	var held []string
	for _, k := range keys {
		held = append(held, k.id.String())
	}
	for _, one := range rows {
		if one.State == current {
			return fmt.Errorf("this database is sealed under the master key %s, and %s holds %s: put the line of that key there, from a backup or from %s",
				one.name(), r.source(), strings.Join(held, ", "), r.keptPath(one.name()))
		}
	}
	return errors.New("the database knows no current master key")
}

// checkMissing refuses to go on without an old key that something is sealed
// under.
func (r *Ring) checkMissing(ctx context.Context, missing []row) error {
	if len(missing) == 0 {
		return nil
	}
	counts, err := r.count(ctx)
	if err != nil {
		return err
	}
	for _, one := range missing {
		if n := counts[one.mark()].total(); n > 0 {
			return fmt.Errorf("%d values are sealed under the master key %s, which is not in %s: put its line back, from a backup or from %s",
				n, one.name(), r.source(), r.keptPath(one.name()))
		}
		r.Logger.WarnContext(ctx, "a master key is not here, and nothing is sealed under it", "key", one.name(), "state", string(one.State))
	}
	return nil
}
