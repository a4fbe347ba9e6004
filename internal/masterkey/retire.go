package masterkey

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/seal"
)

// An Info is how a key stands, without anything of the key.
type Info struct {
	ID        string           `json:"id"` // empty: of a first key that no node has shown yet
	State     string           `json:"state"`
	Held      bool             `json:"held"` // by this process
	Values    int64            `json:"values"`
	Columns   map[string]int64 `json:"columns"` // the same by what they are
	MadeAt    *time.Time       `json:"made_at"`
	CurrentAt *time.Time       `json:"current_at"`
	RetiredAt *time.Time       `json:"retired_at"`
}

// List tells of all keys and how many values are sealed under each, in the order
// in which they were made.
func (r *Ring) List(ctx context.Context) ([]Info, error) {
	rows, err := r.rows(ctx, r.Pool)
	if err != nil {
		return nil, err
	}
	keys, err := r.read()
	if err != nil {
		return nil, err
	}
	counts, err := r.count(ctx)
	if err != nil {
		return nil, err
	}
	infos := []Info{}
	for _, one := range rows {
		_, held := find(keys, one.ID)
		t := counts[one.mark()]
		if t == nil {
			t = tally{}
		}
		infos = append(infos, Info{
			ID: one.name(), State: string(one.State), Held: held, Values: t.total(), Columns: t,
			MadeAt: one.MadeAt, CurrentAt: one.CurrentAt, RetiredAt: one.RetiredAt,
		})
	}
	return infos, nil
}

// A Retirement is what Retire did.
type Retirement struct {
	ID   string `json:"id"`
	Kept string `json:"kept"` // the file in which the key lies now; "" = it was in none
}

const sqlRetire = `update master_key set state = 'retired', retired_at = $2 where id = $1 and state in ('next', 'old')`

// Retire ends a key under which nothing is sealed any more, and moves it out of
// the key file into one of its own: backups of the database from its time need
// it. It may be called again, also on each machine that has a file.
func (r *Ring) Retire(ctx context.Context, name string) (done Retirement, err error) {
	err = r.alone(ctx, func() error {
		rows, err := r.rows(ctx, r.Pool)
		if err != nil {
			return err
		}
		wanted, err := hex.DecodeString(name)
		i := slices.IndexFunc(rows, func(one row) bool { return one.ID != nil && bytes.Equal(one.ID, wanted) })
		if err != nil || i < 0 {
			return fmt.Errorf("there is no master key %q: see the list", name)
		}
		if err := r.mayRetire(ctx, rows[i]); err != nil {
			return err
		}
		if err := r.endKey(ctx, rows[i]); err != nil {
			return err
		}
		fail.Point("keys.retired.committed")
		done.ID = name
		done.Kept, err = r.moveOut(rows[i])
		return err
	})
	return done, err
}

// mayRetire refuses what is in use, in words; the database refuses it too.
func (r *Ring) mayRetire(ctx context.Context, one row) error {
	if one.State == current {
		return fmt.Errorf("the master key %s is the current one: rotate first", one.name())
	}
	if one.State == retired {
		return nil
	}
	counts, err := r.count(ctx)
	if err != nil {
		return err
	}
	if n := counts[one.mark()].total(); n > 0 {
		return fmt.Errorf("%d values are sealed under the master key %s: rotate first", n, one.name())
	}
	nodes, err := r.nodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if seal.Mark(n.Sealing) == one.mark() && one.State == old {
			return fmt.Errorf("node %s still seals under the master key %s: rotate first", n.Host, one.name())
		}
	}
	return nil
}

func (r *Ring) endKey(ctx context.Context, one row) error {
	const foreignKeyViolation = "23503"
	_, err := r.Pool.Exec(ctx, sqlRetire, one.ID, r.Clock.Wall())
	var pe *pgconn.PgError
	if errors.As(err, &pe) && pe.Code == foreignKeyViolation {
		return fmt.Errorf("values are sealed under the master key %s: rotate first", one.name())
	}
	if err != nil {
		return fmt.Errorf("retire the master key %s: %w", one.name(), err)
	}
	return nil
}

// moveOut moves a retired key from the key file to one of its own.
func (r *Ring) moveOut(one row) (kept string, err error) {
	if r.Setting != "" {
		return "", nil
	}
	keys, err := r.read()
	if err != nil {
		return "", err
	}
	k, ok := find(keys, one.ID)
	if !ok {
		return "", nil
	}
	kept = r.keptPath(one.name())
	if err := r.write(kept, []key{k}); err != nil {
		return "", fmt.Errorf("keep the retired master key: %w", err)
	}
	fail.Point("keys.retired.kept")
	rest := slices.DeleteFunc(keys, func(other key) bool { return other.id == k.id })
	if err := r.write(r.Path, rest); err != nil {
		return "", fmt.Errorf("take the retired key out of %s: %w", r.Path, err)
	}
	return kept, nil
}
