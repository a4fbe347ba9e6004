package hyperstack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/hyperstack"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

const (
	testKey   = "hyperstack-test-0123456789"
	base      = "/v1"
	publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBootstrapKeyOfNoAccount0000000000000000 homeport"
	token     = "token-of-the-instance"
)

// fresh makes an empty double of Hyperstack and an adapter that calls it.
func fresh(t *testing.T) (*caller, *cloudtest.Cloud) {
	t.Helper()
	c, double := freshOf(t, dialect(newAccount(t)))
	return c, double
}

func freshOf(t *testing.T, d cloudtest.Dialect) (*caller, *cloudtest.Cloud) {
	t.Helper()
	c := &caller{}
	operation := d.Operation
	d.Operation = func(r *http.Request) string {
		if op := operation(r); op != cloudtest.Check || c.launching.Load() > 0 {
			return op
		}
		return "prices"
	}
	double := cloudtest.New(t, d)
	var err error
	c.Cloud, err = hyperstack.New(hyperstack.Config{
		Key: testKey, BaseURL: double.URL, PublicKey: publicKey, Limiter: cloudapi.NewLocal(double.Clock), Clock: double.Clock,
		Logger: cloudtest.Logger(t, testKey, token),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, double
}

// caller is the adapter, and tells the double when it launches: the prices are
// read by the same request as for the offers.
type caller struct {
	*hyperstack.Cloud
	launching atomic.Int32
}

// Launch implements provider.Adapter.
func (c *caller) Launch(ctx context.Context, l provider.Launch) (provider.Machine, error) {
	c.launching.Add(1)
	defer c.launching.Add(-1)
	return c.Cloud.Launch(ctx, l)
}

// account is what Hyperstack sells, and keeps beside the machines.
type account struct {
	flavors, images map[string]any
	prices          []map[string]any
	instance        map[string]any
	onPage          int // at most so many are shown at once

	mu                sync.Mutex
	environments, key []map[string]any
	made              atomic.Int64
}

func newAccount(t *testing.T) *account {
	t.Helper()
	a := &account{onPage: 20}
	for name, v := range map[string]any{"flavors": &a.flavors, "images": &a.images, "pricebook": &a.prices, "instance": &a.instance} {
		cloudtest.Read(t, filepath.Join("testdata", name+".json"), v)
	}
	return a
}

// failure is how Hyperstack refuses.
func failure(status int, reason, message string) cloudtest.Answer {
	b, _ := json.Marshal(map[string]any{"status": false, "error_reason": reason, "message": message})
	return cloudtest.Answer{Status: status, Body: string(b)}
}

func refuse(w http.ResponseWriter, status int, reason, message string) {
	cloudtest.Reply(w, status, json.RawMessage(failure(status, reason, message).Body))
}

// dialect is how Hyperstack speaks.
func dialect(a *account) cloudtest.Dialect {
	return cloudtest.Dialect{
		Base:       base,
		Authorized: func(r *http.Request) bool { return r.Header.Get("api_key") == testKey },
		Operation: func(r *http.Request) string {
			switch path := strings.TrimPrefix(r.URL.Path, base); {
			case path == "/billing/user-credit/credit":
				return "balance"
			case path == "/pricebook":
				return cloudtest.Check
			case path == "/core/flavors" && r.URL.RawQuery == "":
				return cloudtest.Offers
			case path == "/core/virtual-machines" && r.Method == http.MethodPost:
				return cloudtest.Launch
			case path == "/core/virtual-machines":
				return cloudtest.Find
			case r.Method == http.MethodDelete:
				return cloudtest.Terminate
			default:
				return r.Method + path
			}
		},
		Refusals: map[string]cloudtest.Answer{
			"balance/debt":              {Status: 200, Body: `{"status":true,"message":"","data":{"credit":-3.5,"threshold":0,"can_create_instance":false}}`},
			"balance/none":              {Status: 200, Body: `{"status":true,"message":"","data":{}}`},
			"balance/error":             failure(500, "unknown", "Something went wrong."),
			"launch/no_capacity":        failure(400, "bad_request", "Not Enough Stock of H100-80G-PCIe. Unable to launch virtual-machines."),
			"launch/refused":            failure(400, "bad_request", "Flavor is not compatible with the image."),
			"launch/funds":              failure(400, "bad_request", "Insufficient credit. Please add credits to your account."),
			"offers/empty":              {Status: 200, Body: `{"status":true,"message":"","data":[]}`},
			"terminate/refused_not_yet": failure(400, "bad_request", "The virtual machine is currently being created and cannot be deleted yet."),
		},
		Kinds: []string{"launch/price_moved"},
		Routes: func(c *cloudtest.Cloud, mux *http.ServeMux) {
			d := &double{c, a}
			show := func(v any) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) { cloudtest.Reply(w, http.StatusOK, v) }
			}
			mux.HandleFunc("GET "+base+"/billing/user-credit/credit", show(map[string]any{"status": true, "message": "", "data": map[string]any{
				"credit": 120.8008281904610115, "threshold": 0.0, "can_create_instance": true,
			}}))
			mux.HandleFunc("GET "+base+"/core/flavors", show(a.flavors))
			mux.HandleFunc("GET "+base+"/core/images", show(a.images))
			mux.HandleFunc("GET "+base+"/pricebook", d.pricebook)
			mux.HandleFunc("GET "+base+"/core/environments", d.listEnvironments)
			mux.HandleFunc("POST "+base+"/core/environments", d.addEnvironment)
			mux.HandleFunc("GET "+base+"/core/keypairs", d.listKeys)
			mux.HandleFunc("POST "+base+"/core/keypairs", d.addKey)
			mux.HandleFunc("POST "+base+"/core/virtual-machines", d.create)
			mux.HandleFunc("GET "+base+"/core/virtual-machines", d.machines)
			mux.HandleFunc("DELETE "+base+"/core/virtual-machines/{id}", d.end)
		},
	}
}

// double answers as Hyperstack does.
type double struct {
	*cloudtest.Cloud
	*account
}

func (d *double) pricebook(w http.ResponseWriter, r *http.Request) {
	var book []map[string]any
	for _, p := range d.prices {
		one := maps.Clone(p)
		if v, ok := p["value"].(float64); ok && cloudtest.Fault(r) != "" {
			one["value"] = float64(cloudtest.Price(r, int64(math.Round(v*1e6)))) / 1e6
		}
		book = append(book, one)
	}
	cloudtest.Reply(w, http.StatusOK, book)
}

// page answers with the page that is asked for, of fewer than are asked for.
func (d *double) page(w http.ResponseWriter, r *http.Request, member string, all []map[string]any) {
	n, _ := strconv.Atoi(r.URL.Query().Get("page"))
	from := min((n-1)*d.onPage, len(all))
	list := append([]map[string]any{}, all[from:min(from+d.onPage, len(all))]...)
	cloudtest.Reply(w, http.StatusOK, map[string]any{"status": true, "message": "", "page": n, "page_size": d.onPage, "count": len(list), member: list})
}

func (d *double) listEnvironments(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.page(w, r, "environments", d.environments)
}

func (d *double) listKeys(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.page(w, r, "keypairs", d.key)
}

func (d *double) addEnvironment(w http.ResponseWriter, r *http.Request) {
	var in struct{ Name, Region string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Name == "" || in.Region == "" {
		refuse(w, http.StatusBadRequest, "bad_request", "a member is missing")
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if has(d.environments, in.Name) {
		refuse(w, http.StatusConflict, "already_exist", "An environment of this name exists.")
		return
	}
	one := map[string]any{"id": len(d.environments) + 1, "name": in.Name, "region": in.Region, "created_at": "2026-01-01T00:00:00Z"}
	d.environments = append(d.environments, one)
	cloudtest.Reply(w, http.StatusOK, map[string]any{"status": true, "message": "", "environment": one})
}

func (d *double) addKey(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name        string
		Environment string `json:"environment_name"`
		PublicKey   string `json:"public_key"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Name == "" || in.PublicKey == "" {
		refuse(w, http.StatusBadRequest, "bad_request", "a member is missing")
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.environments, func(e map[string]any) bool { return e["name"] == in.Environment })
	if i < 0 {
		refuse(w, http.StatusNotFound, "not_found", "Environment does not exist.")
		return
	}
	if d.keyIn(in.Environment, in.Name) {
		refuse(w, http.StatusConflict, "already_exist", "A keypair of this name exists.")
		return
	}
	one := map[string]any{"id": len(d.key) + 1, "name": in.Name, "public_key": in.PublicKey, "environment": d.environments[i], "fingerprint": "", "created_at": "2026-01-01T00:00:00Z"}
	d.key = append(d.key, one)
	cloudtest.Reply(w, http.StatusOK, map[string]any{"status": true, "message": "", "keypair": one})
}

func has(list []map[string]any, name string) bool {
	return slices.ContainsFunc(list, func(m map[string]any) bool { return m["name"] == name })
}

func (a *account) keyIn(environment, name string) bool {
	return slices.ContainsFunc(a.key, func(k map[string]any) bool {
		return k["name"] == name && k["environment"].(map[string]any)["name"] == environment
	})
}

func (d *double) create(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name        string
		Environment string `json:"environment_name"`
		Flavor      string `json:"flavor_name"`
		Image       string `json:"image_name"`
		Key         string `json:"key_name"`
		Count       int
		UserData    string `json:"user_data"`
		FloatingIP  bool   `json:"assign_floating_ip"`
		Random      *bool  `json:"enable_port_randomization"`
		Rules       []struct {
			Min int `json:"port_range_min"`
		} `json:"security_rules"`
	}
	err := json.NewDecoder(r.Body).Decode(&in)
	d.mu.Lock()
	known := has(d.environments, in.Environment) && d.keyIn(in.Environment, in.Key)
	d.mu.Unlock()
	if err != nil || !known || in.Count != 1 || in.Name == "" || in.Flavor == "no-such-offer" || !in.FloatingIP || in.Random == nil || *in.Random ||
		len(in.Rules) != 1 || in.Rules[0].Min != 22 || !strings.Contains(in.Image, "CUDA") {
		refuse(w, http.StatusBadRequest, "bad_request", fmt.Sprintf("a member is missing or not good: %v", err))
		return
	}
	m := d.Add(r, cloudtest.Machine{
		Ref: strconv.FormatInt(500_000+d.made.Add(1), 10), Name: in.Name, Config: in.Flavor, Region: in.Environment, Start: in.UserData,
		Words: map[string]string{"image": in.Image, "key": in.Key},
	})
	cloudtest.Reply(w, http.StatusOK, map[string]any{"status": true, "message": "", "instances": []any{d.show(1, *m)}})
}

var words = map[cloudtest.State][2]string{ // status and vm_state
	cloudtest.Building: {"BUILD", "building"}, cloudtest.Up: {"ACTIVE", "active"}, cloudtest.NoAddress: {"ACTIVE", "active"},
	cloudtest.Failed: {"ERROR", "error"}, cloudtest.Ending: {"DELETING", "active"},
}

// show is the nth machine as Hyperstack shows it.
func (d *double) show(n int, m cloudtest.Machine) map[string]any {
	one, state := maps.Clone(d.instance), d.StateOf(m)
	id, _ := strconv.Atoi(m.Ref)
	maps.Copy(one, map[string]any{
		"id": id, "name": m.Name, "status": words[state][0], "vm_state": words[state][1], "image": map[string]any{"name": m.Words["image"]},
		"keypair": map[string]any{"name": m.Words["key"]}, "created_at": m.CreatedAt.Format(time.RFC3339),
	})
	if state == cloudtest.Up {
		one["floating_ip"], one["floating_ip_status"] = fmt.Sprintf("192.0.2.%d", n), "ATTACHED"
	}
	return one
}

func (d *double) machines(w http.ResponseWriter, r *http.Request) {
	var list []map[string]any
	for i, m := range d.Listed(r) {
		list = append(list, d.show(i+1, m))
	}
	d.page(w, r, "instances", list)
}

func (d *double) end(w http.ResponseWriter, r *http.Request) {
	if !d.End(r, r.PathValue("id")) {
		refuse(w, http.StatusNotFound, "not_found", "Virtual machine not found.")
		return
	}
	cloudtest.Reply(w, http.StatusOK, map[string]any{"status": true, "message": "Virtual machine is being deleted."})
}
