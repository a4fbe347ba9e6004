package cloudtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// Shared is the path of a file beside the project that it may not contain,
// such as a cloud's published description. Where there are none the test is
// skipped; where there are, a file that is missing fails it.
func Shared(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the module's root is not found")
		}
		dir = filepath.Dir(dir)
	}
	shared := filepath.Join(dir, "..", "shared", "upstream")
	if _, err := os.Stat(shared); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the clouds' published descriptions are not here")
	}
	path := filepath.Join(shared, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// checker compares requests and answers with a published description.
type checker struct{ router routers.Router }

// Describe has the double hold every request to the published description, and
// every answer of its own, so that neither the adapter nor the double makes
// things up. Also what a description leaves open is refused: members and
// parameters that it does not name. A correction mends a description where its
// cloud is known to do otherwise.
func (c *Cloud) Describe(description string, corrections ...func(doc *openapi3.T)) {
	c.t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(Shared(c.t, description))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, mend := range corrections {
		mend(doc)
	}
	doc.Servers = nil // it is the double that is called
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		c.t.Fatal(err)
	}
	c.check = &checker{router}
}

// route finds the described call of a request, its path without the base.
func (k *checker) route(base string, r *http.Request, body []byte) (*openapi3filter.RequestValidationInput, error) {
	bare := r.Clone(r.Context())
	bare.URL.Path = strings.TrimPrefix(r.URL.Path, base)
	bare.URL.RawPath = ""
	bare.Body = io.NopCloser(bytes.NewReader(body))
	route, params, err := k.router.FindRoute(bare)
	if err != nil {
		return nil, err
	}
	return &openapi3filter.RequestValidationInput{
		Request: bare, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}, nil
}

func (k *checker) request(t testing.TB, base string, r *http.Request, body []byte) {
	if k == nil {
		return
	}
	in, err := k.route(base, r, body)
	if err != nil {
		t.Errorf("%s %s is not described: %v", r.Method, r.URL.Path, err)
		return
	}
	if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
		t.Errorf("%s %s: %v\nbody: %s", r.Method, r.URL, err, body)
	}
	op := in.Route.Operation
	for name := range r.URL.Query() {
		if op.Parameters.GetByInAndName("query", name) == nil && in.Route.PathItem.Parameters.GetByInAndName("query", name) == nil {
			t.Errorf("%s %s: parameter %s is not described", r.Method, r.URL.Path, name)
		}
	}
	if len(body) == 0 {
		return
	}
	if op.RequestBody == nil {
		t.Errorf("%s %s has a body, and none is described", r.Method, r.URL.Path)
		return
	}
	media := op.RequestBody.Value.Content.Get("application/json")
	var sent any
	if err := json.Unmarshal(body, &sent); err != nil || media == nil {
		t.Errorf("%s %s: the body is not JSON as described: %v", r.Method, r.URL.Path, err)
		return
	}
	for _, name := range undescribed(media.Schema, sent, "") {
		t.Errorf("%s %s: %s is not described", r.Method, r.URL.Path, name)
	}
}

// response checks an answer of the double itself.
func (k *checker) response(t testing.TB, base string, r *http.Request, rec *httptest.ResponseRecorder) {
	if k == nil || rec.Code >= 300 {
		return
	}
	in, err := k.route(base, r, nil)
	if err != nil {
		return // said already
	}
	err = openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: rec.Code, Header: rec.Header(),
		Body: io.NopCloser(bytes.NewReader(rec.Body.Bytes())), Options: in.Options,
	})
	if err != nil {
		t.Errorf("the double's answer to %s %s: %v", r.Method, r.URL.Path, err)
	}
}

// undescribed lists the members of a value that its schema does not name.
func undescribed(ref *openapi3.SchemaRef, value any, at string) []string {
	if ref == nil || ref.Value == nil {
		return nil
	}
	var list []string
	switch v := value.(type) {
	case map[string]any:
		known, open := members(ref)
		if open {
			return nil
		}
		for name, member := range v {
			if schema, ok := known[name]; ok {
				list = append(list, undescribed(schema, member, at+"."+name)...)
				continue
			}
			list = append(list, at+"."+name)
		}
	case []any:
		for _, e := range v {
			list = append(list, undescribed(ref.Value.Items, e, at+"[]")...)
		}
	}
	return list
}

// members are the members that a schema and its parts name; open = any may be.
func members(ref *openapi3.SchemaRef) (known openapi3.Schemas, open bool) {
	known = openapi3.Schemas{}
	s := ref.Value
	for name, p := range s.Properties {
		known[name] = p
	}
	parts := append(append(append(openapi3.SchemaRefs{}, s.AllOf...), s.AnyOf...), s.OneOf...)
	for _, part := range parts {
		more, anything := members(part)
		open = open || anything
		for name, p := range more {
			known[name] = p
		}
	}
	extra := s.AdditionalProperties
	open = open || extra.Schema != nil || extra.Has != nil && *extra.Has || len(known) == 0 && len(parts) == 0
	return known, open
}
