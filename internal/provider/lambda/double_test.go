package lambda_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/lambda"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

const (
	testKey   = "secret_test_0123456789"
	base      = "/api/v1"
	publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBootstrapKeyOfNoAccount0000000000000000 homeport"
)

// fresh makes an empty double of Lambda and an adapter that calls it.
func fresh(t *testing.T) (*caller, *cloudtest.Cloud) {
	t.Helper()
	return freshOf(t, dialect(t))
}

func freshOf(t *testing.T, d cloudtest.Dialect) (*caller, *cloudtest.Cloud) {
	t.Helper()
	c := &caller{turns: &turns{}}
	operation := d.Operation
	d.Operation = func(r *http.Request) string {
		if op := operation(r); op != cloudtest.Offers || c.launching.Load() == 0 {
			return op
		}
		return cloudtest.Check
	}
	double := cloudtest.New(t, d)
	var err error
	c.Cloud, err = lambda.New(lambda.Config{
		Key: testKey, BaseURL: double.URL + base, PublicKey: publicKey, Limiter: c.turns, Clock: double.Clock, Logger: cloudtest.Logger(t, testKey),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, double
}

// caller is the adapter, and tells the double when it launches: a look at the
// price is the same request as one for the offers.
type caller struct {
	*lambda.Cloud
	launching atomic.Int32
	turns     *turns
}

// Launch implements provider.Adapter.
func (c *caller) Launch(ctx context.Context, l provider.Launch) (provider.Machine, error) {
	c.launching.Add(1)
	defer c.launching.Add(-1)
	return c.Cloud.Launch(ctx, l)
}

// turns is a Limiter that gives every turn at once and writes it down.
type turns struct {
	mu       sync.Mutex
	taken    []turn
	launches error // what a launch gets instead of its turn
}

type turn struct {
	Class    string
	Rate     cloudapi.Rate
	patience time.Duration
}

// Wait implements cloudapi.Limiter.
func (l *turns) Wait(ctx context.Context, b cloudapi.Bucket, r cloudapi.Rate) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	deadline, _ := ctx.Deadline()
	l.taken = append(l.taken, turn{b.Class, r, time.Until(deadline)})
	if b.Class == "launch" && l.launches != nil {
		return l.launches
	}
	return ctx.Err()
}

// Hold implements cloudapi.Limiter.
func (*turns) Hold(context.Context, cloudapi.Bucket, cloudapi.Rate, time.Duration) error { return nil }

// dialect is how Lambda speaks.
func dialect(t *testing.T) cloudtest.Dialect {
	t.Helper()
	return cloudtest.Dialect{ // the description's paths begin with the base: it is no part of it
		Authorized: cloudtest.Bearer(testKey),
		Operation: func(r *http.Request) string {
			switch path := strings.TrimPrefix(r.URL.Path, base); {
			case path == "/instance-types":
				return cloudtest.Offers
			case path == "/instance-operations/launch":
				return cloudtest.Launch
			case path == "/instance-operations/terminate":
				return cloudtest.Terminate
			case path == "/instances":
				return cloudtest.Find
			case strings.HasPrefix(path, "/instances/"):
				return "look"
			case path == "/ssh-keys" && r.Method == http.MethodPost:
				return "add_key"
			case path == "/ssh-keys":
				return "keys"
			}
			return ""
		},
		Refusals: map[string]cloudtest.Answer{
			"launch/no_capacity":        failure(400, "instance-operations/launch/insufficient-capacity", "Not enough capacity to fulfill launch request."),
			"launch/refused":            failure(400, "global/invalid-parameters", "Invalid request data."),
			"launch/funds":              failure(403, "global/account-inactive", "Your account is inactive."),
			"offers/empty":              {Status: 200, Body: `{"data":{}}`},
			"terminate/refused_not_yet": failure(400, "global/invalid-parameters", "vm-has-not-launched"),
		},
		Kinds: []string{"launch/price_moved"},
		Routes: func(c *cloudtest.Cloud, mux *http.ServeMux) {
			d := &double{Cloud: c, types: readTypes(t), keys: []map[string]any{}}
			cloudtest.Read(t, "testdata/instance.json", &d.instance)
			mux.HandleFunc("GET "+base+"/instance-types", d.list)
			mux.HandleFunc("POST "+base+"/instance-operations/launch", d.launch)
			mux.HandleFunc("POST "+base+"/instance-operations/terminate", d.terminate)
			mux.HandleFunc("GET "+base+"/instances", d.instances)
			mux.HandleFunc("GET "+base+"/instances/{id}", d.one)
			mux.HandleFunc("GET "+base+"/ssh-keys", d.listKeys)
			mux.HandleFunc("POST "+base+"/ssh-keys", d.addKey)
		},
	}
}

// double answers as Lambda does.
type double struct {
	*cloudtest.Cloud
	types    map[string]item
	instance map[string]any

	mu   sync.Mutex
	keys []map[string]any
}

type item struct {
	Type    map[string]any   `json:"instance_type"`
	Regions []map[string]any `json:"regions_with_capacity_available"`
}

func readTypes(t *testing.T) map[string]item {
	t.Helper()
	var answer struct{ Data map[string]item }
	cloudtest.Read(t, "testdata/types.json", &answer)
	return answer.Data
}

// failure is an error of Lambda's form.
func failure(status int, code, message string) cloudtest.Answer {
	b, _ := json.Marshal(map[string]any{"error": map[string]string{"code": code, "message": message, "suggestion": ""}})
	return cloudtest.Answer{Status: status, Body: string(b)}
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(failure(status, code, message).Body))
}

func reply(w http.ResponseWriter, v any) {
	cloudtest.Reply(w, http.StatusOK, map[string]any{"data": v})
}

func (d *double) list(w http.ResponseWriter, r *http.Request) {
	list := map[string]item{}
	for name, one := range d.types {
		one.Type = maps.Clone(one.Type)
		one.Type["price_cents_per_hour"] = cloudtest.Price(r, int64(one.Type["price_cents_per_hour"].(float64)))
		list[name] = one
	}
	reply(w, list)
}

// sells reports whether a type is there in a region.
func (d *double) sells(instanceType, region string) bool {
	for _, one := range d.types {
		for _, r := range one.Regions {
			if one.Type["name"] == instanceType && r["name"] == region {
				return true
			}
		}
	}
	return false
}

func (d *double) launch(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Region   string           `json:"region_name"`
		Type     string           `json:"instance_type_name"`
		Keys     []string         `json:"ssh_key_names"`
		UserData string           `json:"user_data"`
		Tags     []map[string]any `json:"tags"`
		Name     string
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Keys) != 1 {
		refuse(w, http.StatusBadRequest, "global/invalid-parameters", fmt.Sprintf("%v, or not one key", err))
		return
	}
	if !d.sells(in.Type, in.Region) || !d.hasKey(in.Keys[0]) {
		refuse(w, http.StatusNotFound, "global/object-does-not-exist", "There is no such type, region or key.")
		return
	}
	tags, _ := json.Marshal(in.Tags)
	m := d.Add(r, cloudtest.Machine{
		Ref: strings.ReplaceAll(id.New().String(), "-", ""), Name: in.Name, Config: in.Type, Region: in.Region, Start: in.UserData,
		Words: map[string]string{"key": in.Keys[0], "tags": string(tags)},
	})
	reply(w, map[string]any{"instance_ids": []string{m.Ref}})
}

var words = map[cloudtest.State]string{
	cloudtest.Building: "booting", cloudtest.Up: "active", cloudtest.NoAddress: "active", cloudtest.Failed: "unhealthy",
	cloudtest.Ending: "terminating", cloudtest.Ended: "terminated",
}

// body is the nth machine as Lambda shows it.
func (d *double) body(n int, m cloudtest.Machine) map[string]any {
	one, state := maps.Clone(d.instance), d.StateOf(m)
	one["id"], one["name"], one["status"], one["ssh_key_names"] = m.Ref, m.Name, words[state], []string{m.Words["key"]}
	one["tags"] = json.RawMessage(m.Words["tags"])
	if state == cloudtest.Up {
		one["ip"] = fmt.Sprintf("192.0.2.%d", n)
	}
	return one
}

func (d *double) instances(w http.ResponseWriter, r *http.Request) {
	list := []map[string]any{}
	for i, m := range d.Listed(r) {
		list = append(list, d.body(i+1, m))
	}
	reply(w, list)
}

func (d *double) one(w http.ResponseWriter, r *http.Request) {
	for i, m := range d.Listed(r) {
		if m.Ref == r.PathValue("id") {
			reply(w, d.body(i+1, m))
			return
		}
	}
	refuse(w, http.StatusNotFound, "global/object-does-not-exist", "Specified instance does not exist.")
}

func (d *double) terminate(w http.ResponseWriter, r *http.Request) {
	var in struct {
		IDs []string `json:"instance_ids"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.IDs) != 1 {
		refuse(w, http.StatusBadRequest, "global/invalid-parameters", "Invalid request data.")
		return
	}
	for i, m := range d.Listed(r) {
		if m.Ref != in.IDs[0] {
			continue
		}
		if d.StateOf(m) == cloudtest.Ending {
			refuse(w, http.StatusBadRequest, "global/unknown", "An unknown error occurred.")
			return
		}
		d.End(r, m.Ref)
		ended := d.body(i+1, m)
		ended["status"] = "terminating"
		reply(w, map[string]any{"terminated_instances": []any{ended}})
		return
	}
	refuse(w, http.StatusNotFound, "global/object-does-not-exist", "Specified instance does not exist.")
}

func (d *double) hasKey(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.keys {
		if k["name"] == name {
			return true
		}
	}
	return false
}

func (d *double) listKeys(w http.ResponseWriter, _ *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	reply(w, d.keys)
}

func (d *double) addKey(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name      string
		PublicKey string `json:"public_key"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, "global/invalid-parameters", "Invalid request data.")
		return
	}
	if d.hasKey(in.Name) {
		refuse(w, http.StatusBadRequest, "global/duplicate", "There is a key of this name.")
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	one := map[string]any{"id": fmt.Sprintf("key-%d", len(d.keys)+1), "name": in.Name, "public_key": in.PublicKey}
	d.keys = append(d.keys, one)
	reply(w, one)
}
