package cloudtest

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
)

// Logger returns a logger whose test fails when a secret is written to it.
func Logger(t testing.TB, secrets ...string) *slog.Logger {
	t.Helper()
	w := &guard{t: t, secrets: secrets}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type guard struct {
	t       testing.TB
	mu      sync.Mutex
	secrets []string
}

// Write implements io.Writer.
func (g *guard) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.secrets {
		if bytes.Contains(p, []byte(s)) {
			g.t.Errorf("a secret is in the log: %s", bytes.ReplaceAll(p, []byte(s), []byte("[secret]")))
		}
	}
	return len(p), nil
}
