// Package shadeformtest is Shadeform's double: what it sells, its paths and its
// words.
package shadeformtest

import (
	"embed"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

// Key is the one that the double lets in.
const Key = "sk-test-0123456789"

// files are what the double knows of its cloud, written by hand.
//
//go:embed testdata
var files embed.FS

// Dialect is how Shadeform speaks.
func Dialect(t testing.TB) cloudtest.Dialect {
	t.Helper()
	return cloudtest.Dialect{
		Base:       "/v1",
		Authorized: func(r *http.Request) bool { return r.Header.Get("X-API-KEY") == Key },
		Operation: func(r *http.Request) string {
			switch path := strings.TrimPrefix(r.URL.Path, "/v1"); {
			case path == "/instances/types" && r.URL.Query().Has("shade_instance_type"):
				return cloudtest.Check
			case path == "/instances/types":
				return cloudtest.Offers
			case path == "/instances/create":
				return cloudtest.Launch
			case path == "/instances":
				return cloudtest.Find
			case strings.HasSuffix(path, "/delete"):
				return cloudtest.Terminate
			}
			return ""
		},
		Refusals: map[string]cloudtest.Answer{
			"launch/no_capacity":        {Status: 409, Body: `{"error_code":"OUT_OF_STOCK","error":"The requested instance type is out of stock."}`},
			"launch/refused":            {Status: 400, Body: "Invalid request: os is not supported"},
			"launch/funds":              {Status: 402, Body: "Payment required"},
			"offers/empty":              {Status: 200, Body: `{"instance_types":[]}`},
			"terminate/refused_not_yet": {Status: 400, Body: "The instance cannot be deleted while it is pending."},
		},
		Kinds: []string{"launch/price_moved"},
		Routes: func(c *cloudtest.Cloud, mux *http.ServeMux) {
			d := double{Cloud: c, types: readTypes(t)}
			cloudtest.ReadFS(t, files, "testdata/instance.json", &d.instance)
			mux.HandleFunc("GET /v1/instances/types", d.list)
			mux.HandleFunc("POST /v1/instances/create", d.create)
			mux.HandleFunc("GET /v1/instances", d.instances)
			mux.HandleFunc("POST /v1/instances/{id}/delete", d.end)
			mux.HandleFunc("POST /v1/instances/{id}/update", d.update)
		},
	}
}

// double answers as Shadeform does.
type double struct {
	*cloudtest.Cloud
	types    []map[string]any
	instance map[string]any
}

func readTypes(t testing.TB) []map[string]any {
	t.Helper()
	var answer struct {
		InstanceTypes []map[string]any `json:"instance_types"`
	}
	cloudtest.ReadFS(t, files, "testdata/types.json", &answer)
	return answer.InstanceTypes
}

func (d double) list(w http.ResponseWriter, r *http.Request) {
	list := []map[string]any{}
	for _, t := range d.types {
		q := r.URL.Query()
		if c := q.Get("cloud"); c != "" && c != t["cloud"] {
			continue
		}
		if s := q.Get("shade_instance_type"); s != "" && s != t["shade_instance_type"] {
			continue
		}
		one := map[string]any{}
		for k, v := range t {
			one[k] = v
		}
		one["hourly_price"] = cloudtest.Price(r, int64(t["hourly_price"].(float64)))
		list = append(list, one)
	}
	cloudtest.Reply(w, http.StatusOK, map[string]any{"instance_types": list})
}

func (d double) create(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Cloud, Region, Name string
		ShadeInstanceType   string `json:"shade_instance_type"`
		Launch              struct {
			Script struct {
				Base64 string `json:"base64_script"`
			} `json:"script_configuration"`
		} `json:"launch_configuration"`
		AutoDelete struct {
			DateThreshold string `json:"date_threshold"`
		} `json:"auto_delete"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, "Invalid request", http.StatusBadRequest)
		return
	}
	if !slices.ContainsFunc(d.types, func(t map[string]any) bool { return t["shade_instance_type"] == in.ShadeInstanceType }) {
		http.Error(w, "Invalid request: unknown instance type", http.StatusBadRequest)
		return
	}
	m := d.Add(r, cloudtest.Machine{
		Name: in.Name, Config: in.ShadeInstanceType, Region: in.Region, Start: in.Launch.Script.Base64,
		Deadline: in.AutoDelete.DateThreshold, Words: map[string]string{"cloud": in.Cloud},
	})
	cloudtest.Reply(w, http.StatusOK, map[string]any{"id": m.Ref})
}

var words = map[cloudtest.State]string{
	cloudtest.Building: "pending", cloudtest.Up: "active", cloudtest.NoAddress: "active", cloudtest.Failed: "error", cloudtest.Ending: "deleting",
}

func (d double) instances(w http.ResponseWriter, r *http.Request) {
	list := []map[string]any{}
	for i, m := range d.Listed(r) {
		one := map[string]any{}
		for k, v := range d.instance {
			one[k] = v
		}
		state := d.StateOf(m)
		one["id"], one["name"], one["cloud"], one["region"] = m.Ref, m.Name, m.Words["cloud"], m.Region
		one["shade_instance_type"], one["status"], one["created_at"] = m.Config, words[state], m.CreatedAt.Format(time.RFC3339Nano)
		if state == cloudtest.Up {
			one["ip"] = m.At(i+1, 22).Addr()
		}
		if state == cloudtest.Failed {
			one["status_details"] = "the cloud could not start it"
		}
		list = append(list, one)
	}
	cloudtest.Reply(w, http.StatusOK, map[string]any{"instances": list})
}

func (d double) end(w http.ResponseWriter, r *http.Request) {
	if !d.End(r, r.PathValue("id")) {
		http.Error(w, "Instance not found", http.StatusNotFound)
	}
}

func (d double) update(w http.ResponseWriter, r *http.Request) {
	var in struct {
		AutoDelete struct {
			DateThreshold string `json:"date_threshold"`
		} `json:"auto_delete"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, "Invalid request", http.StatusBadRequest)
		return
	}
	if !d.Change(r.PathValue("id"), func(m *cloudtest.Machine) { m.Deadline = in.AutoDelete.DateThreshold }) {
		http.Error(w, "Instance not found", http.StatusNotFound)
	}
}
