package app

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/seal"
)

// openDatabase starts or finds the database and brings its schema up to date.
func (a *App) openDatabase(ctx context.Context) error {
	address := a.config.DatabaseURL
	if address == "" {
		var err error
		a.embedded, err = pg.StartEmbedded(ctx, pg.EmbeddedConfig{
			StateDir: a.config.StateDir, BinDir: a.config.PostgresBin, NPMDirs: npmDirs(), Logger: a.logger,
		})
		if err != nil {
			return err
		}
		address = a.embedded.URL()
	}
	return a.connect(ctx, address)
}

func (a *App) connect(ctx context.Context, address string) error {
	var err error
	if a.pool, err = pg.Open(ctx, address); err != nil {
		return err
	}
	if err := pg.Migrate(ctx, a.pool); err != nil {
		return err
	}
	return a.followClock(ctx)
}

// npmDirs are the folders in which the packaged PostgreSQL may lie.
func npmDirs() []string {
	dirs := []string{"web/node_modules"}
	if exe, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Join(filepath.Dir(exe), "..", "web", "node_modules"))
	}
	return dirs
}

// followClock makes the clock follow the database's, and the moves of business
// time that any node makes.
func (a *App) followClock(ctx context.Context) error {
	before := a.clock.Wall()
	server, err := pg.ServerTime(ctx, a.pool)
	if err != nil {
		return err
	}
	// A reading lies somewhere within its round trip; small differences are noise.
	trip := a.clock.Wall().Sub(before)
	if skew := server.Sub(before.Add(trip / 2)); skew.Abs() > trip+10*time.Millisecond {
		a.clock.SetSkew(a.clock.Skew() + skew)
	}
	offset, err := pg.ClockOffset(ctx, a.pool)
	if err != nil {
		return err
	}
	a.clock.SetOffset(offset)
	return nil
}

// masterKey is the configured one, or the one drawn into the state folder.
func (a *App) masterKey() ([]byte, error) {
	text := a.config.MasterKey
	path := filepath.Join(a.config.StateDir, "master.key")
	if text == "" {
		drawn := hex.EncodeToString(id.Bytes(seal.KeySize)) + "\n"
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			_, err = f.WriteString(drawn)
			err = errors.Join(err, f.Sync(), f.Close())
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("master key: %w", err)
		}
		read, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("master key: %w", err)
		}
		text = strings.TrimSpace(string(read))
	}
	key, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("master key in %s is not hex", path)
	}
	return key, nil
}

// derived makes a key for one purpose from the master key.
func derived(master []byte, purpose string) []byte {
	m := hmac.New(sha256.New, master)
	m.Write([]byte(purpose))
	return m.Sum(nil)
}
