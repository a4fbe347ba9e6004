// Package primetest is Prime's double: what it sells, its paths and its words.
package primetest

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

// Of the account, and of its API.
const (
	Key  = "pit-test-0123456789" // the one that the double lets in
	Base = "/api/v1"             // of its paths
	User = "root"                // whom its machines let in
	Page = 10                    // of what the double gives at once
)

// files are what the double knows of its cloud, written by hand.
//
//go:embed testdata
var files embed.FS

// Dialect is how Prime speaks, with what it has for sale.
func Dialect(t testing.TB, gpus []map[string]any) cloudtest.Dialect {
	t.Helper()
	return cloudtest.Dialect{ // the description's paths begin with the base: it is no part of it
		Authorized: cloudtest.Bearer(Key),
		Operation: func(r *http.Request) string {
			switch path := strings.TrimPrefix(r.URL.Path, Base); {
			case path == "/availability/gpus":
				return cloudtest.Offers
			case path == "/pods/" && r.Method == http.MethodPost:
				return cloudtest.Launch
			case path == "/pods/":
				return cloudtest.Find
			case path == "/billing/wallet":
				return "balance"
			case path == "/ssh_keys/":
				return "keys"
			case r.Method == http.MethodDelete:
				return cloudtest.Terminate
			}
			return ""
		},
		Refusals: map[string]cloudtest.Answer{
			"balance/debt":              {Status: 200, Body: `{"wallet_id":"w","balance_usd":-2.0000001,"currency":"usd"}`},
			"balance/euro":              {Status: 200, Body: `{"wallet_id":"w","balance_usd":10,"currency":"EUR"}`},
			"balance/none":              {Status: 200, Body: `{"wallet_id":"w","currency":"USD"}`},
			"balance/error":             {Status: 500, Body: `{"detail":"Something went wrong."}`},
			"launch/no_capacity":        {Status: 400, Body: `{"detail":"No capacity is left for the requested GPU."}`},
			"launch/refused":            {Status: 422, Body: `{"errors":[{"param":"pod.image","details":"not supported"}]}`},
			"launch/funds":              {Status: 402, Body: `{"detail":"Payment required"}`},
			"offers/empty":              {Status: 200, Body: `{"items":[],"totalCount":0}`},
			"terminate/refused_not_yet": {Status: 400, Body: `{"detail":"The pod is provisioning and cannot be deleted yet."}`},
		},
		Kinds: []string{"launch/price_moved"},
		Routes: func(c *cloudtest.Cloud, mux *http.ServeMux) {
			d := &double{Cloud: c, gpus: gpus, keys: []map[string]any{}}
			cloudtest.ReadFS(t, files, "testdata/pod.json", &d.pod)
			mux.HandleFunc("GET "+Base+"/billing/wallet", func(w http.ResponseWriter, _ *http.Request) {
				cloudtest.Reply(w, 200, map[string]any{"wallet_id": "w", "balance_usd": 87.123456, "currency": "USD", "total_billings": 0, "recent_billings": []any{}})
			})
			mux.HandleFunc("GET "+Base+"/availability/gpus", d.list)
			mux.HandleFunc("POST "+Base+"/pods/{$}", d.create)
			mux.HandleFunc("GET "+Base+"/pods/{$}", d.pods)
			mux.HandleFunc("DELETE "+Base+"/pods/{id}", d.end)
			mux.HandleFunc("GET "+Base+"/ssh_keys/{$}", d.listKeys)
			mux.HandleFunc("POST "+Base+"/ssh_keys/{$}", d.addKey)
		},
	}
}

// double answers as Prime does.
type double struct {
	*cloudtest.Cloud
	gpus []map[string]any
	pod  map[string]any

	mu   sync.Mutex
	keys []map[string]any
}

// GPUs are what it has for sale.
func GPUs(t testing.TB) []map[string]any {
	t.Helper()
	var answer struct{ Items []map[string]any }
	cloudtest.ReadFS(t, files, "testdata/gpus.json", &answer)
	return answer.Items
}

func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	cloudtest.Reply(w, status, map[string]string{"detail": fmt.Sprintf(format, args...)})
}

// part is the part of a list from an index on that fits a page.
func part[T any](list []T, from int) []T {
	from = min(max(from, 0), len(list))
	return list[from:min(from+Page, len(list))]
}

func number(r *http.Request, name string) int {
	n, _ := strconv.Atoi(r.URL.Query().Get(name))
	return n
}

func (d *double) list(w http.ResponseWriter, r *http.Request) {
	cloudtest.Reply(w, http.StatusOK, map[string]any{"items": part(d.gpus, (number(r, "page")-1)*Page), "totalCount": len(d.gpus)})
}

// costs is what a row costs with its disk, in micro-dollars per hour.
func costs(r *http.Request, row map[string]any, disk int64) int64 {
	prices, spec := row["prices"].(map[string]any), row["disk"].(map[string]any)
	micros := func(v any) int64 { n, _ := v.(float64); return int64(math.Round(n * 1e6)) }
	price := micros(prices["onDemand"])
	if price == 0 {
		price = micros(prices["communityPrice"])
	}
	return cloudtest.Price(r, price) + micros(spec["pricePerUnit"])*disk
}

func (d *double) create(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Pod struct {
			Name, CloudID, GPUType, Socket, DataCenterID, SSHKeyID string
			GPUCount, DiskSize                                     int64
			MaxPrice                                               json.Number
		}
		Provider struct{ Type string }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusUnprocessableEntity, "%v", err)
		return
	}
	p, cost := in.Pod, int64(0)
	for _, row := range d.gpus {
		center, _ := row["dataCenter"].(string)
		if row["cloudId"] == p.CloudID && row["provider"] == in.Provider.Type && row["gpuType"] == p.GPUType &&
			row["socket"] == p.Socket && center == p.DataCenterID && row["gpuCount"] == float64(p.GPUCount) {
			cost = max(cost, costs(r, row, p.DiskSize))
		}
	}
	most, err := money.Parse(p.MaxPrice.String())
	switch {
	case cost == 0:
		refuse(w, http.StatusUnprocessableEntity, "there is no such configuration")
		return
	case err != nil || cost > int64(most):
		refuse(w, http.StatusBadRequest, "The price has changed: it exceeds maxPrice.")
		return
	case d.key(p.SSHKeyID) == "":
		refuse(w, http.StatusUnprocessableEntity, "SSH key %q is not yours", p.SSHKeyID)
		return
	}
	cloudtest.Reply(w, http.StatusOK, d.body(1, *d.Add(r, cloudtest.Machine{
		Name: p.Name, Config: p.CloudID, Region: p.DataCenterID, Start: d.key(p.SSHKeyID),
		Words: map[string]string{"key": p.SSHKeyID, "disk": strconv.FormatInt(p.DiskSize, 10), "max": p.MaxPrice.String()},
	})))
}

var words = map[cloudtest.State]string{
	cloudtest.Building: "PROVISIONING", cloudtest.Up: "ACTIVE", cloudtest.NoAddress: "ACTIVE", cloudtest.Failed: "ERROR", cloudtest.Ending: "DELETING",
}

// body is the nth machine as Prime shows it.
func (d *double) body(n int, m cloudtest.Machine) map[string]any {
	one, state := maps.Clone(d.pod), d.StateOf(m)
	one["id"], one["name"], one["status"] = m.Ref, m.Name, words[state]
	one["createdAt"] = m.CreatedAt.Format(time.RFC3339Nano)
	if state == cloudtest.Up {
		at := m.At(n, 1234)
		one["ip"], one["sshConnection"] = at.Addr(), fmt.Sprintf("%s@%s -p %d", User, at.Addr(), at.Port())
		one["installationStatus"], one["installationProgress"] = "FINISHED", 100
	}
	if state == cloudtest.NoAddress {
		one["ip"], one["sshConnection"] = []any{nil}, []any{nil}
	}
	if state == cloudtest.Failed {
		one["installationFailure"] = "the machine did not start"
	}
	return one
}

func (d *double) pods(w http.ResponseWriter, r *http.Request) {
	list := []map[string]any{}
	for i, m := range d.Listed(r) {
		list = append(list, d.body(i+1, m))
	}
	from := number(r, "offset")
	cloudtest.Reply(w, http.StatusOK, map[string]any{"data": part(list, from), "total_count": len(list), "offset": from, "limit": number(r, "limit")})
}

func (d *double) end(w http.ResponseWriter, r *http.Request) {
	if !d.End(r, r.PathValue("id")) {
		refuse(w, http.StatusNotFound, "Pod not found")
		return
	}
	cloudtest.Reply(w, http.StatusOK, map[string]string{"status": "DELETING"})
}

// key is a public key of the account by its id; "" = there is none.
func (d *double) key(id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.keys {
		if k["id"] == id {
			return k["publicKey"].(string)
		}
	}
	return ""
}

func (d *double) listKeys(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	from := number(r, "offset")
	cloudtest.Reply(w, http.StatusOK, map[string]any{"data": part(d.keys, from), "total_count": len(d.keys), "offset": from, "limit": number(r, "limit")})
}

func (d *double) addKey(w http.ResponseWriter, r *http.Request) {
	var in struct{ Name, PublicKey string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusUnprocessableEntity, "%v", err)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	one := map[string]any{
		"id": fmt.Sprintf("key-%d", len(d.keys)+1), "userId": "user-1", "name": in.Name, "publicKey": in.PublicKey,
		"isPrimary": false, "isUserKey": true,
	}
	d.keys = append(d.keys, one)
	cloudtest.Reply(w, http.StatusOK, one)
}
