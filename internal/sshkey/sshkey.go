// Package sshkey owns the public SSH keys of teams.
//
// What always holds: a stored line is exactly one key of a strong type, without
// options and comment, in canonical form; a fingerprint is in a team once; a
// private key is neither kept nor logged. Who may log in to which pod is pod's.
package sshkey

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
)

// Faults of this package.
var (
	// ErrNotFound occurs when the team has no such key.
	ErrNotFound = fault.New(fault.NotFound, "ssh_key_not_found", "There is no such SSH key.")
	// ErrNotYours occurs when a member deletes the key of somebody else.
	ErrNotYours = fault.New(fault.Forbidden, "ssh_key_role", "Only the person who added this key or an admin can delete it.")
	// ErrPrivate occurs when a private key was pasted. It is not kept and not logged.
	ErrPrivate = fault.New(fault.Invalid, "ssh_key_private", "This is a private key. Never share it: paste the public key, the line of the file that ends in .pub.")
	// ErrInvalid occurs when the text is not one public key; With says why.
	ErrInvalid = fault.New(fault.Invalid, "ssh_key_invalid", "This is not an SSH public key.")
	// ErrName occurs when the name is too long.
	ErrName = fault.New(fault.Invalid, "ssh_key_name", "The name must have at most 80 characters.")
)

// An SSHKey is a team's public key.
type SSHKey struct {
	ID          uuid.UUID
	TeamID      uuid.UUID
	Name        string
	PublicKey   string // one line, type and key only
	KeyType     string // "ssh-ed25519"
	Fingerprint string // "SHA256:…"
	CreatedAt   time.Time
	CreatedBy   uuid.UUID
}

// Deps is what the service stands on. A nil hook is skipped.
type Deps struct {
	Pool   *pgxpool.Pool
	Clock  *clock.Clock
	Logger *slog.Logger
	// OnDeleteTx follows a deleted key, so that running pods drop it.
	OnDeleteTx func(ctx context.Context, tx pgx.Tx, keyID uuid.UUID) error
}

// A Service carries out the use cases of SSH keys.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service { return &Service{Deps: d} }
