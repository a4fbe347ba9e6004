package app

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"homeport.dev/homeport/internal/api"
)

// Where the API has a host of its own, a browser asks before each call that is
// not simple: a method that is not allowed there works in no page.
func TestThePageMayMakeEveryCallOfTheAPIsOwnHost(t *testing.T) {
	t.Parallel()
	a := &App{config: Config{PublicURL: "https://homeport.example", APIURL: "https://api.homeport.example"}}
	calls, described := api.New(api.Deps{})
	h := a.byHost(calls, http.NotFoundHandler())
	ask := func(origin, path, method string) http.Header {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodOptions, a.config.APIURL+path, nil)
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Method", method)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Header()
	}
	asked := 0
	for path, item := range described.Paths {
		for method, op := range map[string]bool{
			"GET": item.Get != nil, "POST": item.Post != nil, "PUT": item.Put != nil, "PATCH": item.Patch != nil, "DELETE": item.Delete != nil,
			"HEAD": item.Head != nil, "OPTIONS": item.Options != nil, "TRACE": item.Trace != nil,
		} {
			if !op {
				continue
			}
			asked++
			allowed := strings.Split(ask(a.config.PublicURL, path, method).Get("Access-Control-Allow-Methods"), ", ")
			if !slices.Contains(allowed, method) {
				t.Errorf("%s %s: a browser may only use %q", method, path, allowed)
			}
			if got := ask("https://elsewhere.example", path, method); got.Get("Access-Control-Allow-Methods") != "" {
				t.Errorf("%s %s: another origin may use %v", method, path, got)
			}
		}
	}
	if asked < 40 {
		t.Errorf("only %d calls were found", asked)
	}
}
