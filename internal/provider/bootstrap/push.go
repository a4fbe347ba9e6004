package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"homeport.dev/homeport/internal/provider"
)

// tryEvery is how long a push waits between two tries.
const tryEvery = 5 * time.Second

// A Pusher brings the payload to machines of clouds that take no script. Key is
// the account's bootstrap key: the cloud puts it on every machine, and no
// user's key is ever given to a cloud.
type Pusher struct {
	Key ssh.Signer
	// Keys, where it is set, counts more than Key: the account's bootstrap key as
	// it is now, and those that machines may have been made with.
	Keys  func() []ssh.Signer
	Every time.Duration // between two tries; 0 = 5 s
}

// keys are those that let in, the one that clouds are told first.
func (p Pusher) keys() []ssh.Signer {
	if p.Keys != nil {
		return p.Keys()
	}
	return []ssh.Signer{p.Key}
}

// PublicKey is the key's line for authorized_keys.
func (p Pusher) PublicKey() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(p.keys()[0].PublicKey()))) + " homeport"
}

// command runs the payload on its standard input as root, and ends it in time
// with all that it started: when a connection breaks a machine tells its
// programs nothing. Whoever is not root could not end what sudo started, so
// that timeout is root's, too. The agent is no child of it any more.
var command = fmt.Sprintf(`exec sh -c 's=; [ "$(id -u)" = 0 ] || s="sudo -n"; exec $s timeout -k %d %d sh -s'`,
	int(killAfter.Seconds()), int((provider.PushLives - killAfter).Seconds()))

// killAfter is how long the payload has for its end.
const killAfter = 5 * time.Second

// Push runs the payload on a machine as root, or as a user who has sudo, and
// tries again until it ran or ctx ends: a new machine refuses connections, and
// then the key, for a while. It ends with the first try of which nobody knows
// whether its payload still runs: two of them would be in each other's way.
// Nothing vouches for the host key of a machine that was made a minute ago; what
// is given away is the token of this one instance.
func (p Pusher) Push(ctx context.Context, m provider.Machine, b provider.Bootstrap) error {
	script, err := render(b, machine)
	if err != nil {
		return err
	}
	if m.Host == "" || m.SSHPort == 0 {
		return provider.ErrNotLetIn.Because(fmt.Errorf("machine %s has no address yet", m.Name))
	}
	every := p.Every
	if every == 0 {
		every = tryEvery
	}
	var why error
	for {
		err := p.once(ctx, m, script)
		if err == nil {
			return nil
		}
		ran := !errors.Is(err, provider.ErrNotLetIn)
		// What became of a payload stands, and a log-in that was cut short says
		// nothing of the machine.
		if why == nil || errors.Is(why, provider.ErrNotLetIn) && (ran || ctx.Err() == nil) {
			why = err
		}
		var status *ssh.ExitError
		if ran && !errors.As(err, &status) {
			return fmt.Errorf("push the agent to %s: %w", m.Name, why)
		}
		t := time.NewTimer(every)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("push the agent to %s: %w", m.Name, why)
		}
	}
}

func (p Pusher) once(ctx context.Context, m provider.Machine, script string) error {
	client, err := p.dial(ctx, m)
	if err != nil {
		return provider.ErrNotLetIn.Because(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	defer stop()
	defer func() { _ = client.Close() }()
	session, err := client.NewSession()
	if err != nil {
		return provider.ErrNotLetIn.Because(fmt.Errorf("open a session: %w", err))
	}
	defer func() { _ = session.Close() }()
	session.Stdin = strings.NewReader(script)
	out, err := session.CombinedOutput(command)
	if err != nil {
		return errors.Join(fmt.Errorf("run the payload: %w", err), said(out))
	}
	return nil
}

// said is the end of what a machine printed, as an error.
func said(out []byte) error {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(out), "")), " ")
	if text == "" {
		return nil
	}
	return errors.New(text[max(0, len(text)-200):])
}

func (p Pusher) dial(ctx context.Context, m provider.Machine) (*ssh.Client, error) {
	user := m.SSHUser
	if user == "" {
		user = "root"
	}
	address := net.JoinHostPort(m.Host, strconv.Itoa(m.SSHPort))
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	// The handshake knows no context: the connection ends with it instead.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	c, channels, requests, err := ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(p.keys()...)}, Timeout: 20 * time.Second,
		HostKeyCallback: ssh.InsecureIgnoreHostKey(), //nolint:gosec // see Push: a new machine's key is known to nobody
	})
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("log in as %s: %w", user, err)
	}
	return ssh.NewClient(c, channels, requests), nil
}
