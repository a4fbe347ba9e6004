//go:build linux

package agent

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"

	"homeport.dev/homeport/internal/agentapi"
)

// dialStore makes a connection to the object store through the node, whatever
// the address says: the node knows one store only.
func (c *client) dialStore(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := c.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	r, err := c.upgrade(ctx, conn)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("reach the store through the node: %w", err)
	}
	return storeConn{Conn: conn, r: r}, nil
}

// upgrade turns a connection to the node into one to the store.
func (c *client) upgrade(ctx context.Context, conn net.Conn) (*bufio.Reader, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+agentapi.PathStore, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", agentapi.StoreProtocol)
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		res.Body.Close()
		return nil, fmt.Errorf("the node answered %d", res.StatusCode)
	}
	return r, nil
}

// A storeConn reads what came with the answer first.
type storeConn struct {
	net.Conn
	r *bufio.Reader
}

// Read reads from the store.
func (c storeConn) Read(p []byte) (int, error) { return c.r.Read(p) }
