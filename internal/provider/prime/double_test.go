package prime_test

import (
	"crypto/ed25519"
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

	"golang.org/x/crypto/ssh"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider/bootstrap"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/prime"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

const (
	testKey = "pit-test-0123456789"
	base    = "/api/v1"
	page    = 10 // of what the double gives at once
)

// fresh makes an empty double of Prime and an adapter that calls it.
func fresh(t *testing.T) (*prime.Cloud, *cloudtest.Cloud) {
	t.Helper()
	return freshOf(t, dialect(t, readGPUs(t)))
}

func freshOf(t *testing.T, d cloudtest.Dialect) (*prime.Cloud, *cloudtest.Cloud) {
	t.Helper()
	double := cloudtest.New(t, d)
	c, err := prime.New(prime.Config{
		Key: testKey, BaseURL: double.URL + base, Pusher: bootstrap.Pusher{Key: bootstrapKey(t), Every: 10 * time.Millisecond},
		Limiter: cloudapi.NewLocal(double.Clock), Clock: double.Clock, Logger: cloudtest.Logger(t, testKey),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, double
}

// bootstrapKey is one of no account.
func bootstrapKey(t *testing.T) ssh.Signer {
	t.Helper()
	key, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// dialect is how Prime speaks, with what it has for sale.
func dialect(t *testing.T, gpus []map[string]any) cloudtest.Dialect {
	t.Helper()
	return cloudtest.Dialect{ // the description's paths begin with the base: it is no part of it
		Authorized: cloudtest.Bearer(testKey),
		Operation: func(r *http.Request) string {
			switch path := strings.TrimPrefix(r.URL.Path, base); {
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
			cloudtest.Read(t, "testdata/pod.json", &d.pod)
			mux.HandleFunc("GET "+base+"/billing/wallet", func(w http.ResponseWriter, _ *http.Request) {
				cloudtest.Reply(w, 200, map[string]any{"wallet_id": "w", "balance_usd": 87.123456, "currency": "USD", "total_billings": 0, "recent_billings": []any{}})
			})
			mux.HandleFunc("GET "+base+"/availability/gpus", d.list)
			mux.HandleFunc("POST "+base+"/pods/{$}", d.create)
			mux.HandleFunc("GET "+base+"/pods/{$}", d.pods)
			mux.HandleFunc("DELETE "+base+"/pods/{id}", d.end)
			mux.HandleFunc("GET "+base+"/ssh_keys/{$}", d.listKeys)
			mux.HandleFunc("POST "+base+"/ssh_keys/{$}", d.addKey)
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

func readGPUs(t *testing.T) []map[string]any {
	t.Helper()
	var answer struct{ Items []map[string]any }
	cloudtest.Read(t, "testdata/gpus.json", &answer)
	return answer.Items
}

func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	cloudtest.Reply(w, status, map[string]string{"detail": fmt.Sprintf(format, args...)})
}

// part is the part of a list from an index on that fits a page.
func part[T any](list []T, from int) []T {
	from = min(max(from, 0), len(list))
	return list[from:min(from+page, len(list))]
}

func number(r *http.Request, name string) int {
	n, _ := strconv.Atoi(r.URL.Query().Get(name))
	return n
}

func (d *double) list(w http.ResponseWriter, r *http.Request) {
	cloudtest.Reply(w, http.StatusOK, map[string]any{"items": part(d.gpus, (number(r, "page")-1)*page), "totalCount": len(d.gpus)})
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
	case !d.hasKey(p.SSHKeyID):
		refuse(w, http.StatusUnprocessableEntity, "SSH key %q is not yours", p.SSHKeyID)
		return
	}
	cloudtest.Reply(w, http.StatusOK, d.body(1, *d.Add(r, cloudtest.Machine{
		Name: p.Name, Config: p.CloudID, Region: p.DataCenterID,
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
		one["ip"], one["sshConnection"] = fmt.Sprintf("192.0.2.%d", n), fmt.Sprintf("ubuntu@192.0.2.%d -p 1234", n)
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

func (d *double) hasKey(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.keys {
		if k["id"] == id {
			return true
		}
	}
	return false
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
