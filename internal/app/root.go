package app

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"homeport.dev/homeport/internal/api"
	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/devdoor"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/gotrue"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/webhook"
	"homeport.dev/homeport/web"
)

// agentHandler is the agent API as sandbox pods reach it; it is made after the
// sandbox itself, so it is looked up at each call.
func (a *App) agentHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.agents.ServeHTTP(w, r) })
}

// apiHandler is the API with paths as the spec writes them.
func (a *App) apiHandler() http.Handler {
	cookies := "/api/volumes"
	if a.config.APIURL != "" {
		cookies = "/volumes"
	}
	h, _ := api.New(api.Deps{
		Authenticate: a.authenticate, Clock: a.clock, Logger: a.logger, Teams: a.teams, Wallet: a.wallet,
		Payments: a.payments, Keys: a.keys, Volumes: a.volumes, Offers: a.offers, Pods: a.pods, Interest: a.interest, Notices: a.notices,
		Statements: a.statements, Operator: a.operator, CookiePath: cookies, Secure: a.https,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		h.ServeHTTP(w, r)
	})
}

func (a *App) authenticate(ctx context.Context, bearer string) (team.Person, error) {
	who, err := a.auth.Authenticate(ctx, bearer)
	if err != nil {
		return team.Person{}, err
	}
	return team.Person{ID: who.UserID, Email: who.Email}, nil
}

// root is everything served on the main address.
func (a *App) root() (http.Handler, error) {
	calls := a.apiHandler()
	page, err := a.page()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/api/", http.StripPrefix("/api", calls))
	mux.Handle("/auth/v1/", gotrue.New(gotrue.Deps{
		Auth: a.auth, Clock: a.clock, Logger: a.logger, PublicURL: a.config.PublicURL, Version: Version,
	}))
	mux.Handle("/webhooks/stripe", webhook.New(a.payments, a.logger))
	mux.Handle("/agent/v1/", a.agents)
	if len(a.config.clouds()) > 0 {
		install, err := a.installer()
		if err != nil {
			return nil, err
		}
		mux.Handle("/agent/install", install)
		mux.Handle("/agent/bin/", install)
	}
	mux.HandleFunc("/healthz", a.healthz)
	mux.HandleFunc("/readyz", a.readyz)
	mux.HandleFunc("/version", a.version)
	if a.config.doors() {
		doors := a.doors()
		mux.Handle("/dev/", doors)
		mux.Handle("/test-checkout/", doors)
	}
	mux.Handle("/", page)
	return a.outer(a.secure(a.byHost(calls, mux))), nil
}

// byHost gives the API's own host, where there is one, to the API alone.
func (a *App) byHost(calls, everything http.Handler) http.Handler {
	own, err := url.Parse(a.config.APIURL)
	if err != nil || own.Host == "" {
		return everything
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != own.Host {
			everything.ServeHTTP(w, r)
			return
		}
		a.allowOrigin(w, r)
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		// Of the spec's paths one begins with a literal /api.
		if strings.HasPrefix(r.URL.Path, "/api/") {
			http.StripPrefix("/api", calls).ServeHTTP(w, r)
			return
		}
		calls.ServeHTTP(w, r)
	})
}

// allowOrigin lets exactly the public origin call the API's own host.
func (a *App) allowOrigin(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Add("Vary", "Origin")
	if r.Header.Get("Origin") != a.config.PublicURL {
		return
	}
	h.Set("Access-Control-Allow-Origin", a.config.PublicURL)
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, "+requestIDHeader)
	h.Set("Access-Control-Expose-Headers", "Link, Retry-After, "+requestIDHeader)
	h.Set("Access-Control-Max-Age", "600")
}

func (a *App) page() (http.Handler, error) {
	base := "/api"
	if a.config.APIURL != "" {
		base = a.config.APIURL
	}
	site, err := newSite(web.Dist, apitype.Config{
		APIBase: base, AuthURL: a.config.PublicURL + "/auth/v1", PodHost: a.config.PodHost,
		SupportEmail: a.config.SupportEmail, SalesEmail: a.config.SalesEmail,
	}, func(own inline) string { return contentPolicy(a.config, own) })
	if err != nil {
		return nil, err
	}
	voices, err := readTestimonials(a.config.Testimonials)
	if err != nil {
		return nil, err
	}
	if err := site.quote(voices); err != nil {
		return nil, err
	}
	return site, nil
}

func (a *App) doors() http.Handler {
	return devdoor.New(devdoor.Deps{
		Mailbox: a.mailbox, Checkout: a.testpay, Sandbox: a.sandbox, Advance: a.advanceClock,
		Now:       func() (time.Time, time.Duration) { return a.clock.Now(), a.clock.Offset() },
		PublicURL: a.config.PublicURL, Logger: a.logger, Fault: api.WriteFault,
	})
}

func (a *App) healthz(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]string{"status": "ok"})
}

func (a *App) version(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]string{"version": Version})
}

// readyz says whether this node can serve: its database answers and its start
// is done. Providers do not count, but it is said where pods cannot run.
func (a *App) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	state := map[string]string{"status": "ready", "database": "ok", "pods": "ok"}
	status := http.StatusOK
	if err := a.pool.Ping(ctx); err != nil {
		state["status"], state["database"], status = "not ready", "does not answer", http.StatusServiceUnavailable
	}
	if a.ring.Err() != nil { // the log says why
		state["status"], state["keys"], status = "not ready", "the current master key is missing", http.StatusServiceUnavailable
	}
	if !a.ready.Load() {
		state["status"], status = "not ready", http.StatusServiceUnavailable
	}
	if err := a.canRent(ctx); err != nil {
		state["pods"] = reason(err)
	}
	answer(w, status, state)
}

// canRent says why this host's own pods cannot run, where they are for rent.
func (a *App) canRent(ctx context.Context) error {
	if !a.config.sandboxSells() {
		return nil
	}
	return a.sandbox.Supported(ctx)
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client went away
}

// reason is what a person is told of an error: a fault's sentence where there is one.
func reason(err error) string {
	if f := fault.Of(err); f != nil {
		return f.Detail
	}
	return err.Error()
}
