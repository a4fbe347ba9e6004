// Package runpodtest is Runpod's double: what it sells, its paths and its words.
package runpodtest

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
	"testing"
	"time"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

// Of the account, and of its API.
const (
	Key  = "rpa-test-0123456789" // the one that the double lets in
	Base = "/v2"                 // of its paths
)

// files are what the double knows of its cloud, written by hand.
//
//go:embed testdata
var files embed.FS

// Problem is how Runpod refuses.
func Problem(status int, detail string) cloudtest.Answer {
	b, _ := json.Marshal(map[string]any{"title": http.StatusText(status), "status": status, "detail": detail})
	return cloudtest.Answer{Status: status, Body: string(b)}
}

// Dialect is how Runpod speaks, with what it has for sale.
func Dialect(t testing.TB, gpus []map[string]any) cloudtest.Dialect {
	t.Helper()
	return cloudtest.Dialect{ // the description's paths begin with the base: it is no part of it
		Authorized: cloudtest.Bearer(Key),
		Operation: func(r *http.Request) string {
			switch path := strings.TrimPrefix(r.URL.Path, Base); {
			case path == "/catalog/gpus":
				return cloudtest.Offers
			case strings.HasPrefix(path, "/catalog/gpus/"):
				return cloudtest.Check
			case path == "/pods" && r.Method == http.MethodPost:
				return cloudtest.Launch
			case path == "/pods":
				return cloudtest.Find
			case r.Method == http.MethodDelete:
				return cloudtest.Terminate
			}
			return ""
		},
		Refusals: map[string]cloudtest.Answer{
			"launch/no_capacity":        Problem(400, "There are no longer any instances available with the requested specifications."),
			"launch/refused":            Problem(422, "Request validation failed."),
			"launch/funds":              Problem(402, "Your balance does not cover an hour of this pod."),
			"offers/empty":              {Status: 200, Body: `{"gpus":[]}`},
			"terminate/refused_not_yet": Problem(409, "The pod is starting and cannot be terminated yet."),
		},
		Kinds: []string{"launch/price_moved", "launch/elsewhere"},
		Routes: func(c *cloudtest.Cloud, mux *http.ServeMux) {
			d := double{Cloud: c, gpus: gpus}
			cloudtest.ReadFS(t, files, "testdata/pod.json", &d.pod)
			mux.HandleFunc("GET "+Base+"/catalog/gpus", d.list)
			mux.HandleFunc("GET "+Base+"/catalog/gpus/{id}", d.one)
			mux.HandleFunc("POST "+Base+"/pods", d.create)
			mux.HandleFunc("GET "+Base+"/pods", d.pods)
			mux.HandleFunc("DELETE "+Base+"/pods/{id}", d.end)
		},
	}
}

// double answers as Runpod does.
type double struct {
	*cloudtest.Cloud
	gpus []map[string]any
	pod  map[string]any
}

// GPUs are what it has for sale.
func GPUs(t testing.TB) []map[string]any {
	t.Helper()
	var answer struct{ GPUs []map[string]any }
	cloudtest.ReadFS(t, files, "testdata/gpus.json", &answer)
	return answer.GPUs
}

func refuse(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(Problem(status, detail).Body))
}

// shown is a type as a query sees it: a type that has not so many GPUs in one
// machine is nowhere.
func shown(r *http.Request, g map[string]any) map[string]any {
	one := maps.Clone(g)
	price := maps.Clone(g["price"].(map[string]any))
	micros := cloudtest.Price(r, int64(math.Round(price["secure"].(float64)*1e9)))
	price["secure"] = float64(micros) / 1e9
	one["price"] = price
	count, _ := strconv.ParseFloat(r.URL.Query().Get("count"), 64)
	if g["maxCount"].(map[string]any)["secure"].(float64) < count {
		one["availability"] = "NONE"
		delete(one, "dataCenters")
	}
	return one
}

func (d double) list(w http.ResponseWriter, r *http.Request) {
	list := []map[string]any{}
	for _, g := range d.gpus {
		list = append(list, shown(r, g))
	}
	cloudtest.Reply(w, http.StatusOK, map[string]any{"gpus": list})
}

func (d double) find(id string) (map[string]any, bool) {
	i := slices.IndexFunc(d.gpus, func(g map[string]any) bool { return g["id"] == id })
	if i < 0 {
		return nil, false
	}
	return d.gpus[i], true
}

func (d double) one(w http.ResponseWriter, r *http.Request) {
	g, ok := d.find(r.PathValue("id"))
	if !ok {
		refuse(w, http.StatusNotFound, "GPU type not found")
		return
	}
	cloudtest.Reply(w, http.StatusOK, shown(r, g))
}

func (d double) create(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name, Image, Args string
		GPU               struct {
			ID    string
			Count int
		}
		DataCenterIDs []string
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.DataCenterIDs) != 1 {
		refuse(w, http.StatusUnprocessableEntity, "Request validation failed.")
		return
	}
	if _, ok := d.find(in.GPU.ID); !ok {
		refuse(w, http.StatusBadRequest, "unknown GPU type")
		return
	}
	where := in.DataCenterIDs[0]
	if cloudtest.Fault(r) == "elsewhere" {
		where = "XX-ELSE-1"
	}
	m := d.Add(r, cloudtest.Machine{
		Ref: strings.ReplaceAll(id.New().String(), "-", "")[18:], Name: in.Name, Config: in.GPU.ID, Region: where, Start: in.Args,
		Words: map[string]string{"image": in.Image},
	})
	cloudtest.Reply(w, http.StatusCreated, d.body(1, *m))
}

var words = map[cloudtest.State]string{
	cloudtest.Building: "STARTING", cloudtest.Up: "RUNNING", cloudtest.NoAddress: "RUNNING", cloudtest.Failed: "ERROR",
}

// body is the nth machine as Runpod shows it.
func (d double) body(n int, m cloudtest.Machine) map[string]any {
	one, state := maps.Clone(d.pod), d.StateOf(m)
	one["id"], one["name"], one["image"], one["args"], one["status"] = m.Ref, m.Name, m.Words["image"], m.Start, words[state]
	one["gpu"], one["dataCenterId"] = map[string]any{"id": m.Config, "count": 1}, m.Region
	one["createdAt"] = m.CreatedAt.Format(time.RFC3339Nano)
	if state == cloudtest.Up {
		at := m.At(n, 40022)
		direct := map[string]any{"host": at.Addr(), "port": at.Port(), "username": "root", "command": fmt.Sprintf("ssh root@%s -p %d", at.Addr(), at.Port())}
		one["ssh"] = map[string]any{"proxy": nil, "direct": direct}
	}
	return one
}

// pods shows no pod whose end was asked for.
func (d double) pods(w http.ResponseWriter, r *http.Request) {
	list := []map[string]any{}
	for i, m := range d.Listed(r) {
		if d.StateOf(m) != cloudtest.Ending {
			list = append(list, d.body(i+1, m))
		}
	}
	cloudtest.Reply(w, http.StatusOK, map[string]any{"pods": list})
}

func (d double) end(w http.ResponseWriter, r *http.Request) {
	if !d.End(r, r.PathValue("id")) {
		refuse(w, http.StatusNotFound, "pod not found")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
