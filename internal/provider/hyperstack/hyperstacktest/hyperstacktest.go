// Package hyperstacktest is Hyperstack's double: what it sells and keeps, its
// paths and its words.
package hyperstacktest

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

// Of the account, and of its API.
const (
	Key  = "hyperstack-test-0123456789" // the one that the double lets in
	Base = "/v1"                        // of its paths
)

// files are what the double knows of its cloud, written by hand.
//
//go:embed testdata
var files embed.FS

// An Account is what Hyperstack sells, and keeps beside the machines.
type Account struct {
	Flavors, Images map[string]any
	Prices          []map[string]any
	Instance        map[string]any
	OnPage          int // at most so many are shown at once

	mu                 sync.Mutex
	Environments, Keys []map[string]any
	made               atomic.Int64
}

// NewAccount makes one without machines.
func NewAccount(t testing.TB) *Account {
	t.Helper()
	a := &Account{OnPage: 20}
	for name, v := range map[string]any{"flavors": &a.Flavors, "images": &a.Images, "pricebook": &a.Prices, "instance": &a.Instance} {
		cloudtest.ReadFS(t, files, "testdata/"+name+".json", v)
	}
	return a
}

// ForgetKeys takes all keys away, as somebody who tidies up.
func (a *Account) ForgetKeys() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Keys = nil
}

// Failure is how Hyperstack refuses.
func Failure(status int, reason, message string) cloudtest.Answer {
	b, _ := json.Marshal(map[string]any{"status": false, "error_reason": reason, "message": message})
	return cloudtest.Answer{Status: status, Body: string(b)}
}

func refuse(w http.ResponseWriter, status int, reason, message string) {
	cloudtest.Reply(w, status, json.RawMessage(Failure(status, reason, message).Body))
}

// Dialect is how Hyperstack speaks.
func Dialect(a *Account) cloudtest.Dialect {
	return cloudtest.Dialect{
		Base:       Base,
		Authorized: func(r *http.Request) bool { return r.Header.Get("api_key") == Key },
		Operation: func(r *http.Request) string {
			switch path := strings.TrimPrefix(r.URL.Path, Base); {
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
			"balance/error":             Failure(500, "unknown", "Something went wrong."),
			"launch/no_capacity":        Failure(400, "bad_request", "Not Enough Stock of H100-80G-PCIe. Unable to launch virtual-machines."),
			"launch/refused":            Failure(400, "bad_request", "Flavor is not compatible with the image."),
			"launch/funds":              Failure(400, "bad_request", "Insufficient credit. Please add credits to your account."),
			"offers/empty":              {Status: 200, Body: `{"status":true,"message":"","data":[]}`},
			"terminate/refused_not_yet": Failure(400, "bad_request", "The virtual machine is currently being created and cannot be deleted yet."),
		},
		Kinds: []string{"launch/price_moved"},
		Routes: func(c *cloudtest.Cloud, mux *http.ServeMux) {
			d := &double{c, a}
			show := func(v any) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) { cloudtest.Reply(w, http.StatusOK, v) }
			}
			mux.HandleFunc("GET "+Base+"/billing/user-credit/credit", show(map[string]any{"status": true, "message": "", "data": map[string]any{
				"credit": 120.8008281904610115, "threshold": 0.0, "can_create_instance": true,
			}}))
			mux.HandleFunc("GET "+Base+"/core/flavors", show(a.Flavors))
			mux.HandleFunc("GET "+Base+"/core/images", show(a.Images))
			mux.HandleFunc("GET "+Base+"/pricebook", d.pricebook)
			mux.HandleFunc("GET "+Base+"/core/environments", d.listEnvironments)
			mux.HandleFunc("POST "+Base+"/core/environments", d.addEnvironment)
			mux.HandleFunc("GET "+Base+"/core/keypairs", d.listKeys)
			mux.HandleFunc("POST "+Base+"/core/keypairs", d.addKey)
			mux.HandleFunc("POST "+Base+"/core/virtual-machines", d.create)
			mux.HandleFunc("GET "+Base+"/core/virtual-machines", d.machines)
			mux.HandleFunc("DELETE "+Base+"/core/virtual-machines/{id}", d.end)
		},
	}
}

// double answers as Hyperstack does.
type double struct {
	*cloudtest.Cloud
	*Account
}

func (d *double) pricebook(w http.ResponseWriter, r *http.Request) {
	var book []map[string]any
	for _, p := range d.Prices {
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
	from := min((n-1)*d.OnPage, len(all))
	list := append([]map[string]any{}, all[from:min(from+d.OnPage, len(all))]...)
	cloudtest.Reply(w, http.StatusOK, map[string]any{"status": true, "message": "", "page": n, "page_size": d.OnPage, "count": len(list), member: list})
}

func (d *double) listEnvironments(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.page(w, r, "environments", d.Environments)
}

func (d *double) listKeys(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.page(w, r, "keypairs", d.Keys)
}

func (d *double) addEnvironment(w http.ResponseWriter, r *http.Request) {
	var in struct{ Name, Region string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Name == "" || in.Region == "" {
		refuse(w, http.StatusBadRequest, "bad_request", "a member is missing")
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if has(d.Environments, in.Name) {
		refuse(w, http.StatusConflict, "already_exist", "An environment of this name exists.")
		return
	}
	one := map[string]any{"id": len(d.Environments) + 1, "name": in.Name, "region": in.Region, "created_at": "2026-01-01T00:00:00Z"}
	d.Environments = append(d.Environments, one)
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
	i := slices.IndexFunc(d.Environments, func(e map[string]any) bool { return e["name"] == in.Environment })
	if i < 0 {
		refuse(w, http.StatusNotFound, "not_found", "Environment does not exist.")
		return
	}
	if d.keyIn(in.Environment, in.Name) {
		refuse(w, http.StatusConflict, "already_exist", "A keypair of this name exists.")
		return
	}
	one := map[string]any{"id": len(d.Keys) + 1, "name": in.Name, "public_key": in.PublicKey, "environment": d.Environments[i], "fingerprint": "", "created_at": "2026-01-01T00:00:00Z"}
	d.Keys = append(d.Keys, one)
	cloudtest.Reply(w, http.StatusOK, map[string]any{"status": true, "message": "", "keypair": one})
}

func has(list []map[string]any, name string) bool {
	return slices.ContainsFunc(list, func(m map[string]any) bool { return m["name"] == name })
}

func (a *Account) keyIn(environment, name string) bool {
	return slices.ContainsFunc(a.Keys, func(k map[string]any) bool {
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
	known := has(d.Environments, in.Environment) && d.keyIn(in.Environment, in.Key)
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
	one, state := maps.Clone(d.Instance), d.StateOf(m)
	id, _ := strconv.Atoi(m.Ref)
	maps.Copy(one, map[string]any{
		"id": id, "name": m.Name, "status": words[state][0], "vm_state": words[state][1], "image": map[string]any{"name": m.Words["image"]},
		"keypair": map[string]any{"name": m.Words["key"]}, "created_at": m.CreatedAt.Format(time.RFC3339),
	})
	if state == cloudtest.Up {
		one["floating_ip"], one["floating_ip_status"] = m.At(n, 22).Addr(), "ATTACHED"
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
