package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// sockets are the machines' sockets that this node serves: a machine's socket
// is served by the one node that holds its serve.lock.
type sockets struct {
	mu     sync.Mutex
	open   map[string]*socket // by machine's folder
	closed bool
}

type socket struct {
	server *http.Server
	unlock func()
}

// close ends the service of one machine.
func (x *sockets) close(dir string) {
	x.mu.Lock()
	k := x.open[dir]
	delete(x.open, dir)
	x.mu.Unlock()
	if k != nil {
		k.close()
	}
}

// closeAll ends all service for good.
func (x *sockets) closeAll() {
	x.mu.Lock()
	all := x.open
	x.open, x.closed = map[string]*socket{}, true
	x.mu.Unlock()
	for _, k := range all {
		k.close()
	}
}

func (k *socket) close() {
	_ = k.server.Close() // the machine's calls are made anew at another node
	k.unlock()
}

// serve listens on a machine's socket, unless another node does. The agent in
// the machine dials the path anew after each break, so a new socket under the
// same name is all a new node needs.
func (s *Sandbox) serve(ctx context.Context, c *cloud, name string) error {
	if s.Agent == nil {
		return nil
	}
	dir := filepath.Join(c.dir, name)
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	if s.sockets.closed || s.sockets.open[dir] != nil {
		return nil
	}
	unlock, err := lockFile(ctx, filepath.Join(dir, serveLock), 0)
	if errors.Is(err, errLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	l, err := listenSocket(filepath.Join(dir, "run"))
	if err != nil {
		unlock()
		return err
	}
	k := &socket{unlock: unlock, server: &http.Server{
		Handler: s.agentHandler(c, name), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
	}}
	if err := s.background(func() { s.accept(k, l) }); err != nil {
		_ = l.Close()
		unlock()
		return nil // another node will
	}
	s.sockets.open[dir] = k
	return nil
}

func (s *Sandbox) accept(k *socket, l net.Listener) {
	if err := k.server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		s.Logger.Error("serve a sandbox machine's socket", "error", err)
	}
}

// agentHandler lets a machine reach the agent API and nothing else.
func (s *Sandbox) agentHandler(c *cloud, name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/agent/v1/") {
			refuse(w, http.StatusNotFound, "not_found")
			return
		}
		f, _, err := s.take(r.Context(), c.Name, OpAgent)
		if err != nil {
			s.Logger.Error("read the sandbox script", "error", err)
			refuse(w, http.StatusServiceUnavailable, "unavailable")
			return
		}
		switch f.Kind {
		case "machine_dies":
			if err := c.crash(r.Context(), name); err != nil {
				s.Logger.Error("end a sandbox machine as scripted", "name", name, "error", err)
			}
			fallthrough
		case "drop":
			refuse(w, http.StatusServiceUnavailable, "unavailable")
			return
		}
		s.Agent.ServeHTTP(w, r)
	})
}

// refuse answers as the agent API does.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "code": code, "detail": http.StatusText(status)})
}

// dirs lists the machines that this node serves.
func (x *sockets) dirs() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	list := make([]string, 0, len(x.open))
	for dir := range x.open {
		list = append(list, dir)
	}
	return list
}
