package docker_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/docker"
	"homeport.dev/homeport/internal/provider/docker/dockertest"
	"homeport.dev/homeport/internal/provider/providertest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

// A relay stands before a real engine and goes wrong as the double does. What
// the engine holds is asked past it.
type relay struct {
	double
	engine *dockertest.Engine
}

// fates are faults of a machine's life, or of a list, that a real engine cannot
// be told to have.
var fates = []string{"never_boots", "boot_fails", "no_address", "empty", "lag", "slow", "gone"}

// Inject implements providertest.Control.
func (r *relay) Inject(t *testing.T, op, kind string, times int) bool {
	t.Helper()
	if slices.Contains(fates, kind) && (op != cloudtest.Offers || kind != "slow") && (op != cloudtest.Terminate || kind != "gone") {
		return false
	}
	return r.double.Inject(t, op, kind, times)
}

// Machines implements providertest.Control.
func (r *relay) Machines(t *testing.T) []string {
	t.Helper()
	res, err := r.engine.ContainerList(context.WithoutCancel(t.Context()), client.ContainerListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range res.Items {
		names = append(names, strings.TrimPrefix(c.Names[0], "/"))
	}
	return names
}

// relayTo makes an adapter that speaks to a real engine through a relay.
func relayTo(t *testing.T, e *dockertest.Engine) (*docker.Cloud, *relay) {
	t.Helper()
	r := &relay{engine: e}
	d := r.dialect()
	d.Routes = func(_ *cloudtest.Cloud, mux *http.ServeMux) {
		mux.Handle("/", &httputil.ReverseProxy{
			Rewrite: func(p *httputil.ProxyRequest) { p.Out.URL.Scheme, p.Out.URL.Host = "http", "engine" },
			Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", e.Socket)
			}},
		})
	}
	r.Cloud = cloudtest.New(t, d)
	h := host("tcp://" + strings.TrimPrefix(r.URL, "http://"))
	h.Address, h.Image = "127.0.0.1", dockertest.Image
	h.Simulate = []docker.Devices{{Type: "RTX4090_24GB", Socket: "PCIe", Count: 4}}
	c, err := docker.New(docker.Config{Host: h, Clock: clock.New(), Logger: cloudtest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c, r
}

// TestRealEngineKeepsTheContract runs the contract with its faults on dockerd.
// One engine serves all of it, a test at a time.
func TestRealEngineKeepsTheContract(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t)
	turn := make(chan struct{}, 1)
	providertest.Run(t, func(t *testing.T) (provider.Adapter, providertest.Control) {
		turn <- struct{}{}
		c, r := relayTo(t, e)
		t.Cleanup(func() {
			e.Clear()
			<-turn
		})
		return c, r
	})
}
