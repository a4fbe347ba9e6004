package runpod_test

import (
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
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
	"homeport.dev/homeport/internal/provider/runpod"
)

const (
	testKey = "rpa-test-0123456789"
	base    = "/v2"
)

// fresh makes an empty double of Runpod and an adapter that calls it.
func fresh(t *testing.T) (*runpod.Cloud, *cloudtest.Cloud) {
	t.Helper()
	return freshOf(t, dialect(t, readGPUs(t)))
}

func freshOf(t *testing.T, d cloudtest.Dialect) (*runpod.Cloud, *cloudtest.Cloud) {
	t.Helper()
	double := cloudtest.New(t, d)
	c, err := runpod.New(runpod.Config{
		Key: testKey, BaseURL: double.URL + base, Limiter: cloudapi.NewLocal(double.Clock), Clock: double.Clock,
		Logger: cloudtest.Logger(t, testKey),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, double
}

// problem is how Runpod refuses.
func problem(status int, detail string) cloudtest.Answer {
	b, _ := json.Marshal(map[string]any{"title": http.StatusText(status), "status": status, "detail": detail})
	return cloudtest.Answer{Status: status, Body: string(b)}
}

// dialect is how Runpod speaks, with what it has for sale.
func dialect(t *testing.T, gpus []map[string]any) cloudtest.Dialect {
	t.Helper()
	return cloudtest.Dialect{ // the description's paths begin with the base: it is no part of it
		Authorized: cloudtest.Bearer(testKey),
		Operation: func(r *http.Request) string {
			switch path := strings.TrimPrefix(r.URL.Path, base); {
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
			"launch/no_capacity":        problem(400, "There are no longer any instances available with the requested specifications."),
			"launch/refused":            problem(422, "Request validation failed."),
			"launch/funds":              problem(402, "Your balance does not cover an hour of this pod."),
			"offers/empty":              {Status: 200, Body: `{"gpus":[]}`},
			"terminate/refused_not_yet": problem(409, "The pod is starting and cannot be terminated yet."),
		},
		Kinds: []string{"launch/price_moved", "launch/elsewhere"},
		Routes: func(c *cloudtest.Cloud, mux *http.ServeMux) {
			d := double{Cloud: c, gpus: gpus}
			cloudtest.Read(t, "testdata/pod.json", &d.pod)
			mux.HandleFunc("GET "+base+"/catalog/gpus", d.list)
			mux.HandleFunc("GET "+base+"/catalog/gpus/{id}", d.one)
			mux.HandleFunc("POST "+base+"/pods", d.create)
			mux.HandleFunc("GET "+base+"/pods", d.pods)
			mux.HandleFunc("DELETE "+base+"/pods/{id}", d.end)
		},
	}
}

// double answers as Runpod does.
type double struct {
	*cloudtest.Cloud
	gpus []map[string]any
	pod  map[string]any
}

func readGPUs(t *testing.T) []map[string]any {
	t.Helper()
	var answer struct{ GPUs []map[string]any }
	cloudtest.Read(t, "testdata/gpus.json", &answer)
	return answer.GPUs
}

func refuse(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(problem(status, detail).Body))
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
		host := fmt.Sprintf("192.0.2.%d", n)
		at := map[string]any{"host": host, "port": 40022, "username": "root", "command": "ssh root@" + host + " -p 40022"}
		one["ssh"] = map[string]any{"proxy": nil, "direct": at}
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
