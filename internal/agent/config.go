//go:build linux

package agent

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/clock"
)

// Config is what an agent is started with. Everything else comes with the
// control plane's Welcome.
type Config struct {
	BaseURL string                                                            // of the control plane, without a trailing slash
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error) // how the control plane is reached; nil: TCP
	Token   string                                                            // bearer of every call

	SSH       []net.Listener // accepted from only while the pod serves
	StateDir  string         // the agent's own folder, outside Workspace; made if it is not there
	Workspace string         // where the volume goes; made if it is not there
	Home      string         // of root; default /root
	Limits    string         // what is enforced here, for the message of the day
	Landing   string         // the file that tells scripts of the pod's near end; empty: none
	Version   string         // of the agent

	// Alone says that every descendant of this process belongs to the pod, so
	// that all of them end with it. As PID 1 it always does.
	Alone bool
	// Evicted, when closed, says that the machine is about to be taken away:
	// the last sync is made at once.
	Evicted <-chan struct{}
	// Hardware, where the machine is simulated, is what it is found to be; nil:
	// look.
	Hardware *agentapi.Checked
	// Ready is called once, when the agent has taken over.
	Ready func()

	Clock  *clock.Clock // default: the machine's
	Logger *slog.Logger // default: silent
}

func (c Config) withDefaults() (Config, error) {
	if c.BaseURL == "" || c.Token == "" || c.StateDir == "" || c.Workspace == "" {
		return c, errors.New("agent: BaseURL, Token, StateDir and Workspace are needed")
	}
	if c.Home == "" {
		c.Home = "/root"
	}
	if c.Clock == nil {
		c.Clock = clock.New()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Ready == nil {
		c.Ready = func() {}
	}
	return c, nil
}
