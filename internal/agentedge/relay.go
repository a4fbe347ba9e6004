package agentedge

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/blob"
)

// storeDial is how long the store may take to accept a connection.
const storeDial = 10 * time.Second

// relay serves GET PathStore: a connection to the object store, for pods that
// have no network. The node sees bytes only; what they may do there the grants
// in them say. store is the only address that can be reached.
func (e *edge) relay(store string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := e.authenticate(r); err != nil {
			e.refuse(w, r, err)
			return
		}
		if r.Header.Get("Upgrade") != agentapi.StoreProtocol {
			e.refuse(w, r, ErrPath)
			return
		}
		there, err := (&net.Dialer{Timeout: storeDial}).DialContext(r.Context(), "tcp", store)
		if err != nil {
			e.refuse(w, r, blob.ErrUnavailable.Because(err))
			return
		}
		defer there.Close()
		here, from, err := http.NewResponseController(w).Hijack()
		if err != nil {
			e.refuse(w, r, fmt.Errorf("take the connection of an agent: %w", err))
			return
		}
		defer here.Close()
		_, err = fmt.Fprintf(here, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", agentapi.StoreProtocol)
		if err == nil {
			carry(r.Context(), here, from.Reader, there)
		}
	}
}

// carry moves bytes both ways until either side ends or ctx does.
func carry(ctx context.Context, here net.Conn, from *bufio.Reader, there net.Conn) {
	end := sync.OnceFunc(func() {
		_ = here.Close()
		_ = there.Close()
	})
	stop := context.AfterFunc(ctx, end)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer end()
		_, _ = io.Copy(there, from) // the end of either side is the end of both
	})
	_, _ = io.Copy(here, there)
	end()
	wg.Wait()
}
