package app

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"homeport.dev/homeport/internal/pg"
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
