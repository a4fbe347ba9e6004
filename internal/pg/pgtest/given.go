package pgtest

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/pg"
)

// templateLock keeps test processes from building one template twice.
const templateLock = 7_305_002

// useServer prepares a server that runs already: it makes the template for
// this schema unless an earlier run did.
func useServer(ctx context.Context, address string) (*server, error) {
	key, err := pg.SchemaKey()
	if err != nil {
		return nil, err
	}
	s, err := connect(ctx, address, "homeport_template_"+key[:16])
	if err != nil {
		return nil, err
	}
	err = s.admin.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		if _, err := c.Exec(ctx, "select pg_advisory_lock($1)", templateLock); err != nil {
			return err
		}
		defer c.Exec(context.WithoutCancel(ctx), "select pg_advisory_unlock($1)", templateLock) //nolint:errcheck // the connection's end frees it too
		return s.ensureTemplate(ctx, c.Conn())
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the template database: %w", err)
	}
	return s, nil
}

func (s *server) ensureTemplate(ctx context.Context, c *pgx.Conn) error {
	var exists bool
	err := c.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", s.template).Scan(&exists)
	if err != nil || exists {
		return err
	}
	building := pgx.Identifier{s.template + "_new"}.Sanitize()
	if _, err := c.Exec(ctx, "drop database if exists "+building+" with (force)"); err != nil {
		return err
	}
	if _, err := c.Exec(ctx, "create database "+building+" template template0"); err != nil {
		return err
	}
	u := *s.address
	u.Path = "/" + s.template + "_new"
	if err := migrate(ctx, u.String()); err != nil {
		return err
	}
	_, err = c.Exec(ctx, "alter database "+building+" rename to "+pgx.Identifier{s.template}.Sanitize())
	return err
}

// migrate runs the migrations and leaves no connection behind: a template with
// one cannot be copied.
func migrate(ctx context.Context, address string) error {
	pool, err := pg.Open(ctx, address)
	if err != nil {
		return err
	}
	defer pool.Close()
	return pg.Migrate(ctx, pool)
}
