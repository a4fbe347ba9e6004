// Package pgtest gives each test its own migrated PostgreSQL database.
//
// The server is the one HOMEPORT_TEST_DATABASE_URL names, by a role that may
// create databases; else every test process starts one of its own, without
// durability, that ends and leaves no file when the process ends, however it
// ends. Nothing needs to be set up or torn down by the caller.
//
// In a synctest bubble: call URL outside, pg.Open inside. The server and its
// connections outlive the bubble.
package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/pg"
)

// New returns a pool on a fresh, migrated database, which is dropped with the
// test.
func New(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return open(t, URL(t))
}

// Empty returns a pool on a fresh database without any table.
func Empty(t testing.TB) *pgxpool.Pool {
	t.Helper()
	s := testServer(t)
	return open(t, s.create(t, "template0"))
}

// URL returns the address of a fresh, migrated database, which is dropped with
// the test: for tests that start whole servers.
func URL(t testing.TB) string {
	t.Helper()
	s := testServer(t)
	return s.create(t, s.template)
}

func open(t testing.TB, dbURL string) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(t.Context(), dbURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closePool(t, pool) })
	return pool
}

// closePool closes a pool and names the test that still uses a connection,
// where Close alone would wait for ever.
func closePool(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		pool.Close()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Errorf("%d database connections are still in use at the end of the test", pool.Stat().AcquiredConns())
	}
}

// A server makes databases from a migrated template.
type server struct {
	admin    *pgxpool.Pool
	address  *url.URL
	template string
	prefix   string
	last     atomic.Int64
	own      *run // kept: the server ends when its pipe is collected
}

var shared = sync.OnceValues(startServer)

func testServer(t testing.TB) *server {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatalf("no database to test with: %v", err)
	}
	return s
}

func startServer() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if given := os.Getenv("HOMEPORT_TEST_DATABASE_URL"); given != "" {
		return useServer(ctx, given)
	}
	own, err := runOwn(ctx)
	if err != nil {
		return nil, err
	}
	s, err := connect(ctx, own.url("postgres"), templateName)
	if err != nil {
		return nil, err
	}
	s.own = own
	return s, nil
}

// connect opens the connections that create and drop databases.
func connect(ctx context.Context, address, template string) (*server, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("read the test database's URL: %w", err)
	}
	admin := *u
	q := admin.Query()
	q.Set("statement_timeout", "0") // a busy machine may take its time to copy a database
	q.Set("pool_max_conns", "4")
	admin.RawQuery = q.Encode()
	pool, err := pg.Open(ctx, admin.String())
	if err != nil {
		return nil, err
	}
	s := &server{admin: pool, address: u, template: template}
	err = pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		s.prefix = fmt.Sprintf("homeport_test_%d_%d", os.Getpid(), c.Conn().PgConn().PID())
		return nil
	})
	return s, err
}

// create makes a database and returns its URL.
func (s *server) create(t testing.TB, template string) string {
	t.Helper()
	name := fmt.Sprintf("%s_%d", s.prefix, s.last.Add(1))
	quoted := pgx.Identifier{name}.Sanitize()
	// Files are copied: the log of a template this small costs more than its checkpoint.
	_, err := s.admin.Exec(t.Context(), "create database "+quoted+
		" template "+pgx.Identifier{template}.Sanitize()+" strategy file_copy")
	if err != nil {
		t.Fatalf("create a test database: %v", err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if _, err := s.admin.Exec(ctx, "drop database if exists "+quoted+" with (force)"); err != nil {
			t.Errorf("drop the test database: %v", err)
		}
	})
	u := *s.address
	u.Path = "/" + name
	return u.String()
}
