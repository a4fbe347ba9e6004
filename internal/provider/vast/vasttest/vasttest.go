// Package vasttest is Vast's double: what its hosts let, its paths and its words.
package vasttest

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

// Of the account, and of its API.
const (
	Key  = "vast-test-0123456789" // the one that the double lets in
	Base = "/api"                 // of its paths
)

// files are what the double knows of its cloud, written by hand.
//
//go:embed testdata
var files embed.FS

// Refusal is how Vast refuses.
func Refusal(status int, code, message string) cloudtest.Answer {
	b, _ := json.Marshal(map[string]any{"success": false, "error": code, "msg": message})
	return cloudtest.Answer{Status: status, Body: string(b)}
}

// Dialect is how Vast speaks, with what its hosts let.
func Dialect(t testing.TB, asks []map[string]any) cloudtest.Dialect {
	t.Helper()
	return cloudtest.Dialect{ // the description's paths begin with the base: it is no part of it
		Authorized: cloudtest.Bearer(Key),
		Operation: func(r *http.Request) string {
			switch path := strings.TrimPrefix(r.URL.Path, Base); {
			case path == "/v0/bundles/" && bytes.Contains(peek(r), []byte("machine_id")):
				return cloudtest.Check
			case path == "/v0/bundles/":
				return cloudtest.Offers
			case path == "/v0/users/current/":
				return "balance"
			case strings.HasPrefix(path, "/v0/asks/"):
				return cloudtest.Launch
			case path == "/v1/instances/":
				return cloudtest.Find
			case r.Method == http.MethodDelete:
				return cloudtest.Terminate
			}
			return ""
		},
		Refusals: map[string]cloudtest.Answer{
			"balance/uncredited":        {Status: 200, Body: `{"id":7,"balance":2.5}`},
			"balance/none":              {Status: 200, Body: `{"id":7}`},
			"balance/error":             Refusal(500, "error", "Something went wrong."),
			"launch/no_capacity":        Refusal(410, "no_such_ask", "error 410/3907: no_such_ask Instance type 7 is no longer available."),
			"launch/refused":            Refusal(400, "invalid_args", "error 400/3467: Invalid args"),
			"launch/funds":              Refusal(400, "lacks_credit", "Your account lacks credit; see the billing page."),
			"offers/empty":              {Status: 200, Body: `{"offers":[]}`},
			"terminate/refused_not_yet": Refusal(400, "invalid_args", "The instance is still being created."),
		},
		Kinds: []string{"launch/price_moved", "launch/stopped"},
		Routes: func(c *cloudtest.Cloud, mux *http.ServeMux) {
			d := &double{Cloud: c, asks: asks, instance: readInstance(t)}
			mux.HandleFunc("GET "+Base+"/v0/users/current/", func(w http.ResponseWriter, _ *http.Request) {
				cloudtest.Reply(w, http.StatusOK, map[string]any{"id": 7, "email": "fleet@example.com", "balance": 0.0, "credit": 41.4000001})
			})
			mux.HandleFunc("POST "+Base+"/v0/bundles/", d.search)
			mux.HandleFunc("PUT "+Base+"/v0/asks/{id}/", d.create)
			mux.HandleFunc("GET "+Base+"/v1/instances/", d.instances)
			mux.HandleFunc("DELETE "+Base+"/v0/instances/{id}/", d.destroy)
		},
	}
}

// peek reads a request's body and leaves it there.
func peek(r *http.Request) []byte {
	b, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(b))
	return b
}

// double answers as Vast does.
type double struct {
	*cloudtest.Cloud
	asks     []map[string]any
	instance map[string]any
	searched atomic.Int64 // how often: the ids of asks are new each time
	made     atomic.Int64
}

// epoch is what the ids of asks grow by with every search.
const epoch = 1000

// OnPage is how many instances Vast shows at once.
const OnPage = 25

// Asks are what hosts let: one ask in full, and in what each differs.
func Asks(t testing.TB) []map[string]any {
	t.Helper()
	whole, rows := readAsks(t)
	return AsksOf(whole, rows)
}

// Ask is one in full.
func Ask(t testing.TB) map[string]any {
	t.Helper()
	whole, _ := readAsks(t)
	return whole
}

func readAsks(t testing.TB) (whole map[string]any, rows []map[string]any) {
	t.Helper()
	var file struct {
		Ask  map[string]any
		Rows []map[string]any
	}
	cloudtest.ReadFS(t, files, "testdata/asks.json", &file)
	return file.Ask, file.Rows
}

// AsksOf makes asks of one in full, and of what each has instead.
func AsksOf(whole map[string]any, rows []map[string]any) []map[string]any {
	var asks []map[string]any
	for _, row := range rows {
		one := maps.Clone(whole)
		maps.Copy(one, row)
		delete(one, "#") // why it is there
		asks = append(asks, one)
	}
	return asks
}

func readInstance(t testing.TB) map[string]any {
	t.Helper()
	var one map[string]any
	cloudtest.ReadFS(t, files, "testdata/instance.json", &one)
	return one
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, Refusal(status, code, message).Body)
}

// search shows all asks whatever the conditions are, but for those that choose
// a machine.
func (d *double) search(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Storage int `json:"allocated_storage"`
		Machine *struct {
			Eq float64 `json:"eq"`
		} `json:"machine_id"`
		GPUs *struct {
			In []float64 `json:"in"`
		} `json:"num_gpus"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Storage != 64 {
		refuse(w, http.StatusBadRequest, "invalid_request", "Invalid json body, or no disk")
		return
	}
	now := float64(d.searched.Add(1) * epoch)
	list := []map[string]any{}
	for _, a := range d.asks {
		if in.Machine != nil && a["machine_id"] != in.Machine.Eq || in.GPUs != nil && !slices.Contains(in.GPUs.In, a["num_gpus"].(float64)) {
			continue
		}
		one := maps.Clone(a)
		one["id"] = a["id"].(float64) + now
		if price, ok := a["dph_total"].(float64); ok && cloudtest.Fault(r) != "" {
			one["dph_total"] = float64(cloudtest.Price(r, int64(math.Round(price*1e9)))) / 1e9
		}
		list = append(list, one)
	}
	cloudtest.Reply(w, http.StatusOK, map[string]any{"offers": list})
}

func (d *double) create(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Image, Label, RunType, OnStart string
		Disk                           float64
		Env                            map[string]string
		Args                           []string
		State                          string `json:"target_state"`
		Cancel                         bool   `json:"cancel_unavail"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Image == "" || in.Disk < 8 || in.Env["-p 22:22"] != "1" ||
		in.RunType != "args" || in.State != "running" || !in.Cancel || len(in.OnStart+strings.Join(in.Args, "")) > 4096 {
		refuse(w, http.StatusBadRequest, "invalid_args", "error 400/3467: Invalid args")
		return
	}
	id, _ := strconv.ParseFloat(r.PathValue("id"), 64)
	i := slices.IndexFunc(d.asks, func(a map[string]any) bool { return a["id"] == math.Mod(id, epoch) })
	if i < 0 || id < epoch {
		refuse(w, http.StatusNotFound, "invalid_args", "error 404/3603: no_such_ask Instance type by id "+r.PathValue("id")+" is not available.")
		return
	}
	m := d.Add(r, cloudtest.Machine{
		Ref: strconv.FormatInt(8_000_000+d.made.Add(1), 10), Name: in.Label, Config: r.PathValue("id"), Start: strings.Join(append([]string{in.OnStart}, in.Args...), "\x00"),
		Words: map[string]string{"image": in.Image},
	})
	ref, _ := strconv.Atoi(m.Ref)
	if cloudtest.Fault(r) == "stopped" {
		cloudtest.Reply(w, http.StatusBadRequest, map[string]any{"success": false, "error": "invalid_price", "msg": "the machine did not start", "new_contract": ref})
		return
	}
	cloudtest.Reply(w, http.StatusOK, map[string]any{"success": true, "new_contract": ref})
}

var words = map[cloudtest.State]any{
	cloudtest.Building: nil, cloudtest.Up: "running", cloudtest.NoAddress: "running", cloudtest.Failed: "exited",
}

// show is an instance as Vast shows it.
func (d *double) show(m cloudtest.Machine) map[string]any {
	one, state := maps.Clone(d.instance), d.StateOf(m)
	id, _ := strconv.Atoi(m.Ref)
	maps.Copy(one, map[string]any{
		"id": id, "label": m.Name, "actual_status": words[state], "image_uuid": m.Words["image"], "image_args": strings.Split(m.Start, "\x00")[1:],
		"start_date": float64(m.CreatedAt.UnixMicro()) / 1e6,
	})
	if state == cloudtest.Up {
		at := m.At(id%250+1, 40022)
		port := strconv.Itoa(int(at.Port()))
		one["public_ipaddr"] = fmt.Sprintf(" %s\n", at.Addr())
		one["ports"] = map[string]any{"22/tcp": []map[string]any{{"HostIp": "0.0.0.0", "HostPort": port}, {"HostIp": "::", "HostPort": port}}}
	}
	return one
}

// instances shows those from a token on, and none whose end was asked for.
func (d *double) instances(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.Atoi(r.URL.Query().Get("after_token"))
	list, next := []map[string]any{}, any(nil)
	for _, m := range d.Listed(r) {
		if id, _ := strconv.Atoi(m.Ref); id <= after || d.StateOf(m) == cloudtest.Ending {
			continue
		}
		if len(list) == OnPage {
			next = strconv.Itoa(list[len(list)-1]["id"].(int))
			break
		}
		list = append(list, d.show(m))
	}
	cloudtest.Reply(w, http.StatusOK, map[string]any{"success": true, "instances_found": len(list), "next_token": next, "instances": list})
}

func (d *double) destroy(w http.ResponseWriter, r *http.Request) {
	if !d.End(r, r.PathValue("id")) {
		refuse(w, http.StatusNotFound, "no_such_instance", "Instance "+r.PathValue("id")+" not found")
		return
	}
	cloudtest.Reply(w, http.StatusOK, map[string]any{"success": true})
}
