package pg

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DefaultPoolSize is the largest number of connections one process holds when
// its URL says nothing else with pool_max_conns. It leaves room for three
// processes within PostgreSQL's default of 100.
const DefaultPoolSize = 30

// A Querier runs statements: a pool, a connection or a transaction.
type Querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

var (
	_ Querier = (*pgxpool.Pool)(nil)
	_ Querier = (*pgx.Conn)(nil)
	_ Querier = pgx.Tx(nil)
)

// Open connects to a database and returns once it has answered. Times are read
// as UTC, statements end after 30 seconds. The URL may set pool_max_conns and
// every other parameter of pgxpool.
func Open(ctx context.Context, url string) (*pgxpool.Pool, error) {
	conf, err := poolConfig(url)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, conf)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("reach the database: %w", err)
	}
	return pool, nil
}

func poolConfig(url string) (*pgxpool.Config, error) {
	conf, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read the database URL: %w", err)
	}
	if !strings.Contains(url, "pool_max_conns") {
		conf.MaxConns = DefaultPoolSize
	}
	conf.MaxConns = max(conf.MaxConns, 2) // Migrate holds one and lends one to the job queue
	if conf.ConnConfig.ConnectTimeout == 0 {
		conf.ConnConfig.ConnectTimeout = 10 * time.Second
	}
	conf.AfterConnect = registerTypes
	setDefault(conf.ConnConfig.RuntimeParams, "application_name", "homeport")
	setDefault(conf.ConnConfig.RuntimeParams, "statement_timeout", "30s")
	setDefault(conf.ConnConfig.RuntimeParams, "idle_in_transaction_session_timeout", "60s")
	conf.ConnConfig.RuntimeParams["timezone"] = "UTC"
	return conf, nil
}

func setDefault(params map[string]string, key, value string) {
	if _, ok := params[key]; !ok {
		params[key] = value
	}
}

// registerTypes makes timestamptz values come back in UTC, where pgx would give
// them in the machine's zone, and ids pass as they are.
func registerTypes(_ context.Context, conn *pgx.Conn) error {
	register := func(name string, oid, array uint32, codec pgtype.Codec) {
		one := &pgtype.Type{Name: name, OID: oid, Codec: codec}
		conn.TypeMap().RegisterType(one)
		conn.TypeMap().RegisterType(&pgtype.Type{Name: "_" + name, OID: array, Codec: &pgtype.ArrayCodec{ElementType: one}})
	}
	register("timestamptz", pgtype.TimestamptzOID, pgtype.TimestamptzArrayOID, &pgtype.TimestamptzCodec{ScanLocation: time.UTC})
	register("uuid", pgtype.UUIDOID, pgtype.UUIDArrayOID, uuidCodec{})
	return nil
}
