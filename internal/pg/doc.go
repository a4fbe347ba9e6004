// Package pg is the ground every other package's SQL stands on: it opens the
// database, runs transactions, migrates the schema, wakes waiters, and runs the
// embedded server of an installation that names no database.
//
// It owns the tables schema_migration, clock_offset and lease, and knows
// nothing of the product. What always holds: every connection speaks UTC, every
// statement ends within 30 seconds, a schema is only ever moved forward by the
// files it was moved by before, and a data directory is never initialised over.
package pg
