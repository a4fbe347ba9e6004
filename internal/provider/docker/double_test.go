package docker_test

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/provider/docker"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

// The calls of the engine that go wrong apart from the contract's operations.
const (
	create = "create"
	place  = "place"
	start  = "start"
)

const image = "pods.example/base:1"

// probeRef is the container that looks at the GPUs.
const probeRef = "0000000000000000000000000000000000000000000000000000000000000000"

// host is a description of the double's host, as Read makes it.
func host(engine string) docker.Host {
	return docker.Host{
		Name: "attic", Engine: engine, Address: "192.0.2.7", Country: "DE", DataCenter: "attic", Image: image, DiskGB: 50,
		Prices: map[string]string{"RTX4090_24GB": "0.35", "T4_16GB": "0.2000001"},
	}
}

// A double is an engine of eight GPUs. In the contract's words a launch is two
// calls here: Inject has each fault at the call that can show it.
type double struct {
	*cloudtest.Cloud
	mu     sync.Mutex
	labels map[string]map[string]string // of each container
	bodies []map[string]any             // of creates, as they came
	before func()                       // called once, before the next container is made
	lacks  string                       // "image" or "network"
	smi    string                       // what nvidia-smi prints
}

// at says at which call a fault of a launch is played; other kinds cannot be
// told here: a start's answer has no body that could come slowly.
var at = map[string]string{
	"error_before": create, "never_boots": create, "boot_fails": create, "no_address": create, "rate_limited": create,
	"rate_limited_unsaid": create, "refused": create, "error_after": start, "late": start, "hang_after": start, "malformed": start, "no_capacity": start,
}

// Inject implements providertest.Control.
func (d *double) Inject(t *testing.T, op, kind string, times int) bool {
	t.Helper()
	if op == cloudtest.Launch {
		if op = at[kind]; op == "" {
			return false
		}
	}
	return d.Cloud.Inject(t, op, kind, times)
}

const smi = `GPU-00000000-0000-0000-0000-000000000001, NVIDIA GeForce RTX 4090, 24564, [N/A]
GPU-00000000-0000-0000-0000-000000000002, NVIDIA GeForce RTX 4090, 24564, [N/A]
GPU-00000000-0000-0000-0000-000000000003, NVIDIA GeForce RTX 4090, 24564, [N/A]
GPU-00000000-0000-0000-0000-000000000004, NVIDIA GeForce RTX 4090, 24564, [N/A]
GPU-00000000-0000-0000-0000-000000000005, NVIDIA GeForce RTX 4090, 24564, [N/A]
GPU-00000000-0000-0000-0000-000000000006, NVIDIA GeForce RTX 4090, 24564, [N/A]
GPU-00000000-0000-0000-0000-000000000007, Tesla T4, 15360, [N/A]
GPU-00000000-0000-0000-0000-000000000008, NVIDIA GeForce GTX 1080, 8192, [N/A]
`

// fresh makes an empty double and an adapter that calls it.
func fresh(t *testing.T) (*docker.Cloud, *double) {
	t.Helper()
	d := &double{labels: map[string]map[string]string{}, smi: strings.ReplaceAll(smi, "\n", "\r\n")}
	d.Cloud = cloudtest.New(t, d.dialect())
	return adapter(t, d, nil), d
}

// adapter makes another adapter on the double, as another node has one.
func adapter(t *testing.T, d *double, change func(*docker.Host)) *docker.Cloud {
	t.Helper()
	h := host("tcp://" + strings.TrimPrefix(d.URL, "http://"))
	if change != nil {
		change(&h)
	}
	c, err := docker.New(docker.Config{Host: h, Clock: d.Clock, Logger: cloudtest.Logger(t, "token")})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// problem is how the engine refuses.
func problem(status int, text string) cloudtest.Answer {
	b, _ := json.Marshal(map[string]string{"message": text})
	return cloudtest.Answer{Status: status, Body: string(b)}
}

func (d *double) dialect() cloudtest.Dialect {
	const noDriver = `could not select device driver "nvidia" with capabilities: [[gpu compute utility video graphics]]`
	refusals := map[string]cloudtest.Answer{
		"create/refused":            problem(400, "invalid reference format"),
		"create/no_image":           problem(404, "No such image: "+image),
		"create/quota":              problem(400, "--storage-opt is supported only for overlay over xfs with 'pquota' mount option"),
		"place/full":                problem(500, "write /var/lib/docker/overlay2/x/opt/homeport/start: no space left on device"),
		"place/read_only":           problem(403, "container rootfs is marked read-only"),
		"start/no_capacity":         problem(500, "nvidia-container-cli: device error: GPU-00000000-0000-0000-0000-000000000001: unknown device: unknown"),
		"start/port":                problem(500, "driver failed programming external connectivity on endpoint x: Bind for 0.0.0.0:20001 failed: port is already allocated"),
		"start/no_driver":           problem(500, noDriver),
		"start/no_network":          problem(404, "network homeport not found"),
		"terminate/refused_not_yet": problem(409, "You cannot remove a running container. Stop the container before attempting removal or force remove"),
		"terminate/already":         problem(409, "removal of container x is already in progress"),
		"find/null":                 {Status: 200, Body: "null"},
	}
	var kinds []string
	for _, op := range []string{create, place, start} {
		for _, kind := range []string{"error_before", "error_after", "late", "hang_after", "malformed", "slow_body", "never_boots", "boot_fails", "no_address", "rate_limited", "rate_limited_unsaid"} {
			kinds = append(kinds, op+"/"+kind)
		}
	}
	return cloudtest.Dialect{
		Authorized: func(*http.Request) bool { return true }, // by the connection
		Operation:  operation, Refusals: refusals, Kinds: kinds,
		Routes: func(_ *cloudtest.Cloud, mux *http.ServeMux) {
			mux.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.41") })
			for path, f := range map[string]http.HandlerFunc{
				"GET /info": d.info, "GET /containers/json": d.list, "POST /containers/create": d.create, "POST /containers/{id}/start": d.start,
				"PUT /containers/{id}/archive": d.place,
				"GET /containers/{id}/logs":    d.logs, "DELETE /containers/{id}": d.end, "GET /networks/{name}": d.network,
				"POST /networks/create": d.newNetwork, "GET /images/": d.image, "POST /images/create": d.pull,
			} {
				method, rest, _ := strings.Cut(path, " ")
				mux.HandleFunc(method+" /v1.41"+rest, f)
			}
		},
	}
}

func operation(r *http.Request) string {
	path := strings.TrimPrefix(r.URL.Path, "/v1.41")
	switch {
	case path == "/info":
		return cloudtest.Offers
	case path == "/containers/create" && !strings.HasPrefix(r.URL.Query().Get("name"), "hp-probe-"):
		return create
	case strings.Contains(path, probeRef):
		return "" // a look at the GPUs is no launch
	case strings.HasSuffix(path, "/archive"):
		return place
	case strings.HasSuffix(path, "/start"):
		return start
	case path == "/containers/json" && strings.Contains(r.URL.Query().Get("filters"), `"name"`):
		return cloudtest.Find
	case r.Method == http.MethodDelete:
		return cloudtest.Terminate
	}
	return ""
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, text string) {
	reply(w, status, map[string]string{"message": text})
}

func (d *double) info(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{"OSType": "linux", "NCPU": 32, "MemTotal": 128_000_000_000})
}

func (d *double) image(w http.ResponseWriter, r *http.Request) {
	if d.lack("image") || !strings.HasSuffix(r.URL.Path, "/"+image+"/json") {
		refuse(w, http.StatusNotFound, "No such image: "+image)
		return
	}
	reply(w, http.StatusOK, map[string]any{"Id": "sha256:1"})
}

func (d *double) pull(w http.ResponseWriter, _ *http.Request) {
	d.set("")
	_, _ = io.WriteString(w, `{"status":"Pulling"}`+"\n"+`{"status":"Done"}`+"\n")
}

func (d *double) network(w http.ResponseWriter, _ *http.Request) {
	if d.lack("network") {
		refuse(w, http.StatusNotFound, "network homeport not found")
		return
	}
	reply(w, http.StatusOK, map[string]any{"Name": "homeport"})
}

func (d *double) newNetwork(w http.ResponseWriter, r *http.Request) {
	var in struct{ Options map[string]string }
	if json.NewDecoder(r.Body).Decode(&in) != nil || in.Options["com.docker.network.bridge.enable_icc"] != "false" {
		refuse(w, http.StatusBadRequest, "pods would see each other")
		return
	}
	d.set("")
	reply(w, http.StatusCreated, map[string]any{"Id": "1"})
}

// set has the host lack something.
func (d *double) set(lacks string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lacks = lacks
}

func (d *double) lack(what string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lacks == what
}

// create makes one container of a name, and only one.
func (d *double) create(w http.ResponseWriter, r *http.Request) {
	var in map[string]any
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, "bad body")
		return
	}
	name := r.URL.Query().Get("name")
	if strings.HasPrefix(name, "hp-probe-") {
		reply(w, http.StatusCreated, map[string]any{"Id": probeRef})
		return
	}
	d.mu.Lock()
	before := d.before
	d.before = nil
	d.mu.Unlock()
	if before != nil {
		before()
	}
	d.mu.Lock()
	d.bodies = append(d.bodies, in)
	taken := slices.Contains(d.Cloud.Machines(nil), name)
	var ref string
	if !taken {
		ref = strings.ReplaceAll(id.New().String()+id.New().String(), "-", "")
		d.labels[ref] = map[string]string{}
		for k, v := range in["Labels"].(map[string]any) {
			d.labels[ref][k] = v.(string)
		}
		d.Add(r, cloudtest.Machine{Ref: ref, Name: name, Words: map[string]string{}})
	}
	d.mu.Unlock()
	if taken {
		refuse(w, http.StatusConflict, `Conflict. The container name "/`+name+`" is already in use by container "x".`)
		return
	}
	reply(w, http.StatusCreated, map[string]any{"Id": ref, "Warnings": []string{}})
}

// place keeps the file of the archive as what the container starts with.
func (d *double) place(w http.ResponseWriter, r *http.Request) {
	in := tar.NewReader(r.Body)
	for {
		h, err := in.Next()
		if err != nil {
			refuse(w, http.StatusBadRequest, "no file, or no archive")
			return
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		text, err := io.ReadAll(in)
		at := fmt.Sprintf("%s/%s %o", strings.TrimSuffix(r.URL.Query().Get("path"), "/"), h.Name, h.Mode)
		if err != nil || !d.Change(r.PathValue("id"), func(m *cloudtest.Machine) { m.Words["file"], m.Start = at, string(text) }) {
			refuse(w, http.StatusNotFound, "No such container")
		}
		return
	}
}

func (d *double) start(w http.ResponseWriter, r *http.Request) {
	ref := r.PathValue("id")
	if ref != probeRef && !d.Change(ref, func(m *cloudtest.Machine) { m.Words["started"] = "yes" }) {
		refuse(w, http.StatusNotFound, "No such container: "+ref)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (d *double) logs(w http.ResponseWriter, _ *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = io.WriteString(w, d.smi)
}

// list shows what the filters ask for.
func (d *double) list(w http.ResponseWriter, r *http.Request) {
	var filters map[string]map[string]bool
	if text := r.URL.Query().Get("filters"); text != "" && json.Unmarshal([]byte(text), &filters) != nil {
		refuse(w, http.StatusBadRequest, "invalid filter")
		return
	}
	list := []map[string]any{}
	for _, m := range d.Listed(r) {
		d.mu.Lock()
		labels := d.labels[m.Ref]
		d.mu.Unlock()
		fits := true
		for label := range filters["label"] {
			_, has := labels[label]
			fits = fits && has
		}
		for name := range filters["name"] {
			fits = fits && strings.HasPrefix(m.Name, strings.ReplaceAll(strings.TrimPrefix(name, "^/?"), `\`, ""))
		}
		if fits {
			list = append(list, d.body(m, labels))
		}
	}
	reply(w, http.StatusOK, list)
}

// body is a container as the engine lists it.
func (d *double) body(m cloudtest.Machine, labels map[string]string) map[string]any {
	one := map[string]any{
		"Id": m.Ref, "Names": []string{"/" + m.Name}, "Labels": labels, "Created": m.CreatedAt.Unix(), "State": "created", "Status": "Created", "Ports": []any{},
	}
	switch state := d.StateOf(m); {
	case state == cloudtest.Ending:
		one["State"], one["Status"] = "removing", "Removal In Progress"
	case m.Words["started"] == "":
	case state == cloudtest.Building:
		one["State"], one["Status"] = "restarting", "Restarting (1) 1 second ago"
	case state == cloudtest.Failed:
		one["State"], one["Status"] = "exited", "Exited (137) 1 second ago"
	case state == cloudtest.Up:
		one["State"], one["Status"] = "running", "Up 1 second"
		one["Ports"] = []map[string]any{{"IP": "0.0.0.0", "PrivatePort": 22, "PublicPort": 49153, "Type": "tcp"}, {"PrivatePort": 8888, "Type": "tcp"}}
	default:
		one["State"], one["Status"] = "running", "Up 1 second"
	}
	return one
}

func (d *double) end(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("id") == probeRef {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if q := r.URL.Query(); q.Get("force") != "1" || q.Get("v") != "1" {
		refuse(w, http.StatusConflict, "You cannot remove a running container, or its volumes stay")
		return
	}
	if !d.End(r, r.PathValue("id")) {
		refuse(w, http.StatusNotFound, "No such container")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
