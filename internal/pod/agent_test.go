package pod_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/snapshot"
)

// An agent plays the pod's side: it calls what the agent API calls, and syncs
// with the real engine.
type agent struct {
	*harbour
	machine *machine
	token   string
	welcome agentapi.Welcome
	root    string
	state   string
	head    *snapshot.Head
}

// boot is the agent of a machine. It has said nothing yet.
func (h *harbour) boot(m *machine) *agent {
	return &agent{harbour: h, machine: m, token: m.launch.Bootstrap.Token, root: h.t.TempDir(), state: h.t.TempDir()}
}

// right proves the agent's token.
func (a *agent) right() (*pod.Agent, error) { return a.Authenticate(a.t.Context(), a.token) }

func (a *agent) hello() error {
	right, err := a.right()
	if err != nil {
		return err
	}
	a.welcome, err = a.Hello(a.t.Context(), right, agentapi.Hello{Version: "test"})
	return err
}

func (a *agent) report() error {
	right, err := a.right()
	if err != nil {
		return err
	}
	return a.Restored(a.t.Context(), right, agentapi.Restored{Epoch: a.welcome.Volume.Epoch})
}

// lease is a heartbeat that does not wait.
func (a *agent) lease(phase agentapi.Phase, done int64) (agentapi.Orders, error) {
	right, err := a.right()
	if err != nil {
		return agentapi.Orders{}, err
	}
	return a.Lease(a.t.Context(), right, agentapi.Lease{
		Phase: phase, Progress: agentapi.Progress{BytesDone: done, BytesTotal: 1_000_000_000_000},
	})
}

// mount says hello, restores and opens SSH.
func (a *agent) mount() {
	a.t.Helper()
	a.must(a.hello())
	a.must(a.report())
	a.open()
}

// open serves SSH log-ins as the pod's own server does.
func (a *agent) open() {
	a.t.Helper()
	host, err := ssh.ParsePrivateKey([]byte(a.welcome.HostKey))
	a.must(err)
	probe, _, _, _, err := ssh.ParseAuthorizedKey([]byte(a.welcome.ProbeKey))
	a.must(err)
	a.machine.door.serve(serveSSH(host, probe))
}

// serveSSH lets root in with one key and hangs up then.
func serveSSH(host ssh.Signer, allowed ssh.PublicKey) func(net.Conn) {
	config := &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if c.User() != "root" || !bytes.Equal(key.Marshal(), allowed.Marshal()) {
			return nil, os.ErrPermission
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	return func(conn net.Conn) {
		server, _, requests, err := ssh.NewServerConn(conn, config)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		_ = server.Close()
	}
}

// ready brings a pod all the way: rented, launched, mounted, reached.
func (h *harbour) ready(scopePod func() *pod.Pod) (*pod.Pod, *agent) {
	h.t.Helper()
	p := scopePod()
	h.work()
	for _, c := range []*cloud{h.a, h.b} {
		for _, m := range c.all {
			if podOf(m.Name) == "hp-"+h.env4()+"-"+p.ID.String()[:8] {
				a := h.boot(m)
				a.mount()
				h.work()
				return p, a
			}
		}
	}
	h.t.Fatal("no machine was launched")
	return nil, nil
}

func (h *harbour) env4() string {
	h.t.Helper()
	var env4 string
	h.must(h.pool.QueryRow(h.t.Context(), "select env4 from installation").Scan(&env4))
	return env4
}

// Get and Put move objects with the grants of the agent API.
func (a *agent) grant(ctx context.Context, op agentapi.Op) (string, error) {
	right, err := a.right()
	if err != nil {
		return "", err
	}
	g, err := a.harbour.Sign(ctx, right, agentapi.Sign{Epoch: a.welcome.Volume.Epoch, Ops: []agentapi.Op{op}})
	if err != nil {
		return "", err
	}
	return g.Grants[0].URL, nil
}

func (a *agent) Get(ctx context.Context, kind snapshot.Kind, id snapshot.ID, offset, length int64) (io.ReadCloser, error) {
	key, err := a.grant(ctx, agentapi.Op{Object: agentapi.Object{ID: id.String(), Kind: agentapi.Kind(kind)}})
	if err != nil {
		return nil, err
	}
	return a.store.Get(ctx, key, offset, length)
}

func (a *agent) Put(ctx context.Context, o snapshot.Object, body []byte) error {
	key, err := a.grant(ctx, agentapi.Op{Put: true, Object: wire(o)})
	if err != nil {
		return err
	}
	return a.store.Put(ctx, key, body)
}

func wire(o snapshot.Object) agentapi.Object {
	return agentapi.Object{ID: o.ID.String(), Kind: agentapi.Kind(o.Kind), Size: o.Size}
}

// write puts a file into /workspace.
func (a *agent) write(name, text string) {
	a.t.Helper()
	a.must(os.WriteFile(filepath.Join(a.root, name), []byte(text), 0o600))
}

// draft stores what is new in /workspace and returns the commit of it.
func (a *agent) draft(final bool) (agentapi.Commit, error) {
	a.t.Helper()
	var key snapshot.Key
	a.must(json.Unmarshal(a.welcome.Volume.Key, &key))
	s, err := snapshot.NewSyncer(a.t.Context(), snapshot.SyncerOptions{
		Objects: a, Key: key, ChunkerKey: a.welcome.Volume.ChunkerKey, Root: a.root, State: a.state, Head: a.head,
		Hostname: "pod", Now: a.clock.Wall,
	})
	if err != nil {
		return agentapi.Commit{}, err
	}
	defer s.Close()
	c, err := s.Run(a.t.Context(), snapshot.RunOptions{Force: true})
	if err != nil {
		return agentapi.Commit{}, err
	}
	in := agentapi.Commit{
		Epoch: a.welcome.Volume.Epoch, SnapshotID: c.SnapshotID.String(), Snapshot: c.Snapshot, Tree: c.Tree.String(), Final: final,
	}
	if !c.Parent.IsZero() {
		in.Parent = c.Parent.String()
	}
	for _, o := range c.Objects {
		in.Objects = append(in.Objects, wire(o))
	}
	return in, nil
}

// sync commits /workspace as it is.
func (a *agent) sync(final bool) error {
	a.t.Helper()
	in, err := a.draft(final)
	if err != nil {
		return err
	}
	right, err := a.right()
	if err != nil {
		return err
	}
	done, err := a.Commit(a.t.Context(), right, in)
	if err != nil {
		return err
	}
	snap, err := snapshot.ParseID(done.Head.Snapshot)
	a.must(err)
	tree, err := snapshot.ParseID(done.Head.Tree)
	a.must(err)
	a.head = &snapshot.Head{Snapshot: snap, Tree: tree, Time: done.Head.Time}
	return nil
}
