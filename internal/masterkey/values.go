package masterkey

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/seal"
)

// batchSize is how many values are sealed again in one transaction.
const batchSize = 200

// maxNamed is how many values that do not open are named.
const maxNamed = 20

// A tally is how many values of each column one key sealed.
type tally map[string]int64

func (t tally) total() (n int64) {
	for _, one := range t {
		n += one
	}
	return n
}

// count counts all sealed values by their marks.
func (r *Ring) count(ctx context.Context) (map[seal.Mark]tally, error) {
	counts := map[seal.Mark]tally{}
	for _, c := range r.Columns {
		var mark []byte
		var n int64
		rows, err := r.Pool.Query(ctx, c.Count)
		if err != nil {
			return nil, fmt.Errorf("count the %s: %w", c.Name, err)
		}
		_, err = pgx.ForEachRow(rows, []any{&mark, &n}, func() error {
			m := seal.Mark(mark)
			if counts[m] == nil {
				counts[m] = tally{}
			}
			counts[m][c.Name] = n
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("count the %s: %w", c.Name, err)
		}
	}
	return counts, nil
}

// A value is one sealed value.
type value struct {
	Row    string
	Sealed []byte
}

func listTx(ctx context.Context, tx pgx.Tx, c seal.Column, after string, mark []byte, limit int) ([]value, error) {
	rows, err := tx.Query(ctx, c.List, after, mark, limit)
	if err != nil {
		return nil, fmt.Errorf("list the %s: %w", c.Name, err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowToStructByPos[value])
	if err != nil {
		return nil, fmt.Errorf("list the %s: %w", c.Name, err)
	}
	return values, nil
}

// sample returns one sealed value; false where nothing is sealed yet.
func (r *Ring) sample(ctx context.Context) (c seal.Column, v value, found bool, err error) {
	err = pg.InTx(ctx, r.Pool, func(tx pgx.Tx) error {
		for _, c = range r.Columns {
			values, err := listTx(ctx, tx, c, c.First, []byte{}, 1)
			if err != nil {
				return err
			}
			if len(values) > 0 {
				v, found = values[0], true
				return nil
			}
		}
		return nil
	})
	return c, v, found, err
}

// mayDraw refuses to draw a first key beside secrets that another one sealed.
func (r *Ring) mayDraw(ctx context.Context) error {
	rows, err := r.rows(ctx, r.Pool)
	if err != nil {
		return err
	}
	name := ""
	for _, one := range rows {
		if one.State == current && one.ID != nil {
			name = " " + one.name()
		}
	}
	if name == "" {
		_, _, found, err := r.sample(ctx)
		if err != nil || !found {
			return err
		}
	}
	return fmt.Errorf("%s is missing, and this database is sealed under the master key%s: put the file back from a backup; no other was drawn", r.Path, name)
}

const sqlAdopt = `update master_key set id = $2, made_at = $3, current_at = $3 where mark = $1 and id is null`

// adopt tells the database once which key is the first: the one that opens what
// is sealed, or where nothing is the one that is there.
func (r *Ring) adopt(ctx context.Context, keys []key) error {
	rows, err := r.rows(ctx, r.Pool)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(rows, func(one row) bool { return one.ID == nil }) {
		return nil
	}
	c, v, found, err := r.sample(ctx)
	if err != nil {
		return err
	}
	first := 0
	if found {
		first = slices.IndexFunc(keys, func(k key) bool { return opens(k, v.Sealed, c.Purpose(v.Row)) })
	}
	if first < 0 {
		return fmt.Errorf("no key in %s opens what this database has sealed (%s): put back the one that did", r.source(), c.Name)
	}
	none := seal.Mark{}
	if _, err := r.Pool.Exec(ctx, sqlAdopt, none[:], keys[first].id[:], r.Clock.Wall()); err != nil {
		return fmt.Errorf("name the first master key: %w", err)
	}
	return nil
}

func opens(k key, sealed []byte, purpose string) bool {
	box, err := seal.New(k.secret)
	if err != nil {
		return false
	}
	_, err = box.Open(sealed, purpose)
	return err == nil
}

// A pass is what one look at all values did.
type pass struct {
	sealed int64
	failed []string // that do not open
}

// resealAll seals everything under the current key, in as many looks as it takes
// to find nothing: nodes may still add to the old one.
func (r *Ring) resealAll(ctx context.Context) (total pass, err error) {
	for {
		var p pass
		for _, c := range r.Columns {
			if err := r.resealColumn(ctx, c, &p); err != nil {
				return total, err
			}
		}
		total.sealed, total.failed = total.sealed+p.sealed, p.failed
		if p.sealed == 0 {
			return total, nil
		}
	}
}

func (r *Ring) resealColumn(ctx context.Context, c seal.Column, p *pass) error {
	mark := r.box.Current()
	for after := c.First; ; {
		var listed int
		var failed []string
		last := after
		err := pg.InTx(ctx, r.Pool, func(tx pgx.Tx) error {
			failed = nil
			values, err := listTx(ctx, tx, c, after, mark[:], batchSize)
			if err != nil {
				return err
			}
			batch := &pgx.Batch{}
			for _, v := range values {
				plain, err := r.box.Open(v.Sealed, c.Purpose(v.Row))
				if err != nil {
					failed = append(failed, c.Name+" of "+v.Row)
					continue
				}
				batch.Queue(c.Keep, v.Row, r.box.Seal(plain, c.Purpose(v.Row)))
			}
			if listed = len(values); listed > 0 {
				last = values[listed-1].Row
			}
			if batch.Len() == 0 {
				return nil
			}
			return tx.SendBatch(ctx, batch).Close()
		})
		if err != nil {
			return fmt.Errorf("seal the %s again: %w", c.Name, err)
		}
		p.sealed += int64(listed - len(failed))
		p.failed = append(p.failed, failed...)
		if listed > 0 {
			fail.Point("keys.batch.committed")
		}
		if listed < batchSize {
			return nil
		}
		after = last
	}
}

// err names what did not open.
func (p pass) err() error {
	if len(p.failed) == 0 {
		return nil
	}
	var errs []error
	for _, one := range p.failed[:min(len(p.failed), maxNamed)] {
		errs = append(errs, errors.New(one))
	}
	return fmt.Errorf("%d values open under none of the keys and stay as they are: %w", len(p.failed), errors.Join(errs...))
}
