// Package verdatest is Verda's double: what it sells and keeps, its paths and its
// words.
package verdatest

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

// Of the account, and of its API.
const (
	ClientID     = "client-0123456789" // with the secret the one that the double lets in
	ClientSecret = "secret-0123456789" // of the key that the double lets in
	Base         = "/v1"               // of its paths
)

// files are what the double knows of its cloud, written by hand.
//
//go:embed testdata
var files embed.FS

// An Account is what Verda keeps beside the machines, and what it sells.
type Account struct {
	Catalogue
	Instance map[string]any
	Life     int  // of a token, in seconds; 0 = not said
	NoRenew  bool // refresh tokens are refused

	mu      sync.Mutex
	scripts map[string]map[string]any // by id
	good    map[string]bool           // access tokens
	renew   string                    // the refresh token
	grants  []string                  // how tokens were asked for
	looks   int                       // at images, which come before a look at the price
}

// A Catalogue is what is for sale, in Verda's words.
type Catalogue struct {
	Types       []map[string]any `json:"types"`
	Stock       []map[string]any `json:"stock"`
	Locations   []map[string]any `json:"locations"`
	VolumeTypes []map[string]any `json:"volume_types"`
	Images      []map[string]any `json:"images"`
}

// NewAccount makes one without machines.
func NewAccount(t testing.TB) *Account {
	t.Helper()
	a := &Account{Life: 3600, scripts: map[string]map[string]any{}, good: map[string]bool{}}
	cloudtest.ReadFS(t, files, "testdata/catalogue.json", &a.Catalogue)
	cloudtest.ReadFS(t, files, "testdata/instance.json", &a.Instance)
	return a
}

// ScriptNames are those of the scripts that Verda keeps.
func (a *Account) ScriptNames() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var names []string
	for _, s := range a.scripts {
		names = append(names, s["name"].(string))
	}
	slices.Sort(names)
	return names
}

// KeepScript has Verda keep a script that is not ours.
func (a *Account) KeepScript(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scripts[name] = map[string]any{"id": name, "name": name, "script": "#!/bin/sh"}
}

// Withdraw has all tokens refused from now on.
func (a *Account) Withdraw() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.good)
	a.renew = ""
}

// Granted says how tokens were asked for.
func (a *Account) Granted() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.grants)
}

// Problem is how Verda refuses.
func Problem(status int, code, message string) cloudtest.Answer {
	b, _ := json.Marshal(map[string]string{"code": code, "message": message})
	return cloudtest.Answer{Status: status, Body: string(b)}
}

// Dialect is how Verda speaks.
func Dialect(a *Account) cloudtest.Dialect {
	return cloudtest.Dialect{
		Base: Base,
		Authorized: func(r *http.Request) bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return r.URL.Path == Base+"/oauth2/token" || a.good[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		},
		Operation: func(r *http.Request) string {
			switch path := strings.TrimPrefix(r.URL.Path, Base); {
			case path == "/instance-types" && a.look():
				return cloudtest.Check
			case path == "/instance-types":
				return cloudtest.Offers
			case path == "/balance":
				return "balance"
			case path == "/instances" && r.Method == http.MethodPost:
				return cloudtest.Launch
			case path == "/instances" && r.Method == http.MethodPut:
				return cloudtest.Terminate
			case path == "/instances":
				return cloudtest.Find
			}
			return ""
		},
		Refusals: map[string]cloudtest.Answer{
			"balance/debt":              {Status: 200, Body: `{"amount":-0.0000001,"currency":"USD"}`},
			"balance/euro":              {Status: 200, Body: `{"amount":10,"currency":"eur"}`},
			"balance/none":              {Status: 200, Body: `{"currency":"usd"}`},
			"balance/error":             Problem(500, "internal", "Something went wrong."),
			"launch/no_capacity":        Problem(503, "service_unavailable", "No capacity available"),
			"launch/refused":            Problem(400, "invalid_request", "Operating system is not valid for this instance type"),
			"launch/funds":              Problem(402, "insufficient_funds", "Your balance is too low."),
			"offers/empty":              {Status: 200, Body: "[]"},
			"terminate/refused_not_yet": Problem(403, "forbidden_action", "Can't discontinue a provisioning instance"),
		},
		Kinds: []string{"launch/price_moved", "terminate/partial"},
		Routes: func(c *cloudtest.Cloud, mux *http.ServeMux) {
			d := double{c, a}
			mux.HandleFunc("POST "+Base+"/oauth2/token", d.token)
			mux.HandleFunc("GET "+Base+"/balance", func(w http.ResponseWriter, _ *http.Request) {
				cloudtest.Reply(w, 200, map[string]any{"amount": 310.25, "currency": "usd"})
			})
			mux.HandleFunc("GET "+Base+"/instance-types", d.types)
			mux.HandleFunc("GET "+Base+"/instance-availability", d.stock)
			mux.HandleFunc("GET "+Base+"/locations", func(w http.ResponseWriter, _ *http.Request) { cloudtest.Reply(w, 200, a.Locations) })
			mux.HandleFunc("GET "+Base+"/volume-types", func(w http.ResponseWriter, _ *http.Request) { cloudtest.Reply(w, 200, a.VolumeTypes) })
			mux.HandleFunc("GET "+Base+"/images", d.images)
			mux.HandleFunc("POST "+Base+"/scripts", d.addScript)
			mux.HandleFunc("GET "+Base+"/scripts", d.listScripts)
			mux.HandleFunc("DELETE "+Base+"/scripts/{id}", d.deleteScript)
			mux.HandleFunc("POST "+Base+"/instances", d.create)
			mux.HandleFunc("GET "+Base+"/instances", d.list)
			mux.HandleFunc("GET "+Base+"/instances/{id}", d.one)
			mux.HandleFunc("PUT "+Base+"/instances", d.act)
		},
	}
}

// look reports whether a list of types is the look before a launch: Verda has
// none at one type, but one at its images comes before.
func (a *Account) look() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.looks == 0 {
		return false
	}
	a.looks--
	return true
}

// double answers as Verda does, and takes nothing but what is known of it.
type double struct {
	*cloudtest.Cloud
	*Account
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	cloudtest.Reply(w, status, map[string]string{"code": code, "message": message})
}

// take decodes a request of which every member is known.
func take(w http.ResponseWriter, r *http.Request, v any) bool {
	in := json.NewDecoder(r.Body)
	in.DisallowUnknownFields()
	if err := in.Decode(v); err != nil {
		refuse(w, 400, "invalid_request", err.Error())
		return false
	}
	return true
}

func (d double) token(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Grant   string `json:"grant_type"`
		ID      string `json:"client_id"`
		Secret  string `json:"client_secret"`
		Refresh string `json:"refresh_token"`
	}
	if !take(w, r, &in) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.grants = append(d.grants, in.Grant)
	renews := in.Grant == "refresh_token" && in.Refresh == d.renew && d.renew != "" && !d.NoRenew
	if in.ID != ClientID || in.Secret != ClientSecret || !renews && in.Grant != "client_credentials" {
		refuse(w, 401, "unauthorized_request", fmt.Sprintf("not good: %s %s %s", in.ID, in.Secret, in.Refresh))
		return
	}
	access := "access-" + id.New().String()
	d.good[access], d.renew = true, "refresh-"+id.New().String()
	answer := map[string]any{"access_token": access, "refresh_token": d.renew, "token_type": "Bearer", "scope": "cloud-api-v1"}
	if d.Life > 0 {
		answer["expires_in"] = d.Life
	}
	cloudtest.Reply(w, 200, answer)
}

func (d double) types(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "currency=usd" {
		refuse(w, 400, "invalid_request", "currency")
		return
	}
	list := []map[string]any{}
	for _, t := range d.Types {
		one := maps.Clone(t)
		if price, err := money.ParseUp(fmt.Sprint(t["price_per_hour"])); err == nil && cloudtest.Fault(r) != "" {
			one["price_per_hour"] = money.USD(cloudtest.Price(r, int64(price))).Decimal()
		}
		list = append(list, one)
	}
	cloudtest.Reply(w, 200, list)
}

func (d double) stock(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "is_spot=false" {
		refuse(w, 400, "invalid_request", "is_spot")
		return
	}
	cloudtest.Reply(w, 200, d.Stock)
}

func (d double) images(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	d.looks++
	d.mu.Unlock()
	list := []map[string]any{}
	for _, i := range d.Images {
		// Old GPUs take no new images.
		if old := strings.Contains(r.URL.Query().Get("instance_type"), "V100"); !old || strings.Contains(i["image_type"].(string), "22.04") {
			list = append(list, i)
		}
	}
	cloudtest.Reply(w, 200, list)
}

func (d double) addScript(w http.ResponseWriter, r *http.Request) {
	var in struct{ Name, Script string }
	if !take(w, r, &in) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	made := id.New().String()
	d.scripts[made] = map[string]any{"id": made, "name": in.Name, "script": in.Script}
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte(made))
}

func (d double) listScripts(w http.ResponseWriter, _ *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := []map[string]any{}
	for _, s := range d.scripts {
		list = append(list, s)
	}
	cloudtest.Reply(w, 200, list)
}

func (d double) deleteScript(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.scripts[r.PathValue("id")] == nil {
		refuse(w, 404, "not_found", "Invalid script id")
		return
	}
	delete(d.scripts, r.PathValue("id"))
}

func (d double) create(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Type        string    `json:"instance_type"`
		Image       string    `json:"image"`
		Hostname    string    `json:"hostname"`
		Description string    `json:"description"`
		Location    string    `json:"location_code"`
		Keys        *[]string `json:"ssh_key_ids"`
		Script      string    `json:"startup_script_id"`
		Spot        bool      `json:"is_spot"`
		Contract    string    `json:"contract"`
		Pricing     string    `json:"pricing"`
		Volume      struct {
			Name string `json:"name"`
			Size int    `json:"size"`
		} `json:"os_volume"`
	}
	if !take(w, r, &in) {
		return
	}
	has := func(list []map[string]any, member, value string) bool {
		return slices.ContainsFunc(list, func(m map[string]any) bool { return m[member] == value })
	}
	d.mu.Lock()
	script := d.scripts[in.Script]
	d.mu.Unlock()
	if !has(d.Types, "instance_type", in.Type) || !has(d.Images, "image_type", in.Image) || !has(d.Locations, "code", in.Location) ||
		script == nil || in.Keys == nil || in.Hostname == "" || in.Description == "" || in.Contract != "PAY_AS_YOU_GO" ||
		in.Pricing != "FIXED_PRICE" || in.Volume.Name == "" || in.Volume.Size < 50 {
		refuse(w, 400, "invalid_request", "a member is missing or not good")
		return
	}
	m := d.Add(r, cloudtest.Machine{
		Name: in.Hostname, Config: in.Type, Region: in.Location, Start: script["script"].(string),
		Words: map[string]string{"script": in.Script, "image": in.Image, "volume": id.New().String()},
	})
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write([]byte(m.Ref))
}

var words = map[cloudtest.State]string{
	cloudtest.Building: "provisioning", cloudtest.Up: "running", cloudtest.NoAddress: "running", cloudtest.Failed: "no_capacity", cloudtest.Ending: "deleting",
}

func (d double) show(m cloudtest.Machine, i int) map[string]any {
	one, state := maps.Clone(d.Instance), d.StateOf(m)
	maps.Copy(one, map[string]any{
		"id": m.Ref, "hostname": m.Name, "description": m.Name, "location": m.Region, "instance_type": m.Config, "status": words[state],
		"image": m.Words["image"], "startup_script_id": m.Words["script"], "os_volume_id": m.Words["volume"],
		"created_at": m.CreatedAt.Format(time.RFC3339Nano),
	})
	if state == cloudtest.Up {
		one["ip"] = m.At(i+1, 22).Addr()
	}
	return one
}

func (d double) list(w http.ResponseWriter, r *http.Request) {
	list := []map[string]any{}
	for i, m := range d.Listed(r) {
		list = append(list, d.show(m, i))
	}
	cloudtest.Reply(w, 200, list)
}

func (d double) one(w http.ResponseWriter, r *http.Request) {
	for i, m := range d.Listed(r) {
		if m.Ref == r.PathValue("id") {
			cloudtest.Reply(w, 200, d.show(m, i))
			return
		}
	}
	refuse(w, 404, "not_found", "Invalid instance id")
}

func (d double) act(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Action    string   `json:"action"`
		ID        []string `json:"id"`
		Volumes   []string `json:"volume_ids"`
		Permanent bool     `json:"delete_permanently"`
	}
	if !take(w, r, &in) {
		return
	}
	status, results := http.StatusAccepted, []map[string]any{}
	for _, ref := range in.ID {
		one := map[string]any{"action": in.Action, "instanceId": ref, "status": "success"}
		switch {
		case cloudtest.Fault(r) == "partial":
			status, one["status"], one["statusCode"], one["error"] = http.StatusMultiStatus, "error", 403, "Can't discontinue a provisioning instance"
		case in.Action != "delete" || !d.End(r, ref):
			status, one["status"], one["statusCode"], one["error"] = http.StatusMultiStatus, "error", 404, "Invalid instance id"
		}
		results = append(results, one)
	}
	cloudtest.Reply(w, status, results)
}
