// Package lambdatest is Lambda's double: what it sells, its paths and its words.
package lambdatest

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

// Of the account, and of its API.
const (
	Key  = "secret_test_0123456789" // the one that the double lets in
	Base = "/api/v1"                // of its paths
)

// files are what the double knows of its cloud, written by hand.
//
//go:embed testdata
var files embed.FS

// Dialect is how Lambda speaks.
func Dialect(t testing.TB) cloudtest.Dialect {
	t.Helper()
	return cloudtest.Dialect{ // the description's paths begin with the base: it is no part of it
		Authorized: cloudtest.Bearer(Key),
		Operation: func(r *http.Request) string {
			switch path := strings.TrimPrefix(r.URL.Path, Base); {
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
			"launch/no_capacity":        Failure(400, "instance-operations/launch/insufficient-capacity", "Not enough capacity to fulfill launch request."),
			"launch/refused":            Failure(400, "global/invalid-parameters", "Invalid request data."),
			"launch/funds":              Failure(403, "global/account-inactive", "Your account is inactive."),
			"offers/empty":              {Status: 200, Body: `{"data":{}}`},
			"terminate/refused_not_yet": Failure(400, "global/invalid-parameters", "vm-has-not-launched"),
		},
		Kinds: []string{"launch/price_moved"},
		Routes: func(c *cloudtest.Cloud, mux *http.ServeMux) {
			d := &double{Cloud: c, types: readTypes(t), keys: []map[string]any{}}
			cloudtest.ReadFS(t, files, "testdata/instance.json", &d.instance)
			mux.HandleFunc("GET "+Base+"/instance-types", d.list)
			mux.HandleFunc("POST "+Base+"/instance-operations/launch", d.launch)
			mux.HandleFunc("POST "+Base+"/instance-operations/terminate", d.terminate)
			mux.HandleFunc("GET "+Base+"/instances", d.instances)
			mux.HandleFunc("GET "+Base+"/instances/{id}", d.one)
			mux.HandleFunc("GET "+Base+"/ssh-keys", d.listKeys)
			mux.HandleFunc("POST "+Base+"/ssh-keys", d.addKey)
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

func readTypes(t testing.TB) map[string]item {
	t.Helper()
	var answer struct{ Data map[string]item }
	cloudtest.ReadFS(t, files, "testdata/types.json", &answer)
	return answer.Data
}

// Failure is an error of Lambda's form.
func Failure(status int, code, message string) cloudtest.Answer {
	b, _ := json.Marshal(map[string]any{"error": map[string]string{"code": code, "message": message, "suggestion": ""}})
	return cloudtest.Answer{Status: status, Body: string(b)}
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(Failure(status, code, message).Body))
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
		one["ip"] = m.At(n, 22).Addr()
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
