// Package api serves the product's HTTP API: it decodes, asks a use case, and
// encodes. It holds no rule and no SQL; the status of every refusal is made in
// problem.go.
package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/google/uuid"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/interest"
	"homeport.dev/homeport/internal/notice"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/operator"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/sshkey"
	"homeport.dev/homeport/internal/statement"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

// maxBody bounds the body of every call.
const maxBody = 64 << 10

// Deps is what the API stands on.
type Deps struct {
	// Authenticate proves a bearer token: who is signed in. Its faults are 401.
	Authenticate func(ctx context.Context, bearer string) (team.Person, error)
	Clock        *clock.Clock
	Logger       *slog.Logger
	Teams        *team.Service
	Wallet       *wallet.Service
	Notices      *notice.Service
	Payments     *payment.Service
	Keys         *sshkey.Service
	Volumes      *volume.Service
	Offers       *offer.Service
	Pods         *pod.Service
	Interest     *interest.Service
	Statements   *statement.Service
	Operator     *operator.Service
	// CookiePath is below what the API's volumes lie for a browser, such as
	// "/api/volumes"; Secure says that it reaches them by https only.
	CookiePath string
	Secure     bool
}

type server struct {
	Deps
	api huma.API
}

// New returns the handler of all calls, with paths as product.md writes them
// ("/pods"), and their description. Mount it below its base path.
func New(d Deps) (http.Handler, *huma.OpenAPI) {
	huma.NewError = fromHuma
	huma.NewErrorWithContext = func(_ huma.Context, status int, msg string, errs ...error) huma.StatusError {
		return fromHuma(status, msg, errs...)
	}
	huma.DefaultArrayNullable = false
	mux := http.NewServeMux()
	s := &server{Deps: d, api: humago.New(mux, config())}
	s.registerUser()
	s.registerTeams()
	s.registerInterest()
	s.registerPods()
	s.registerVolumes()
	s.registerVersions()
	s.registerKeys()
	s.registerOffers()
	s.registerWallet()
	s.registerAutoTopUp()
	s.registerStatements()
	s.registerCheckout()
	s.registerSubscription()
	s.registerNotices()
	s.registerOperator()
	s.refuseOthers(mux)
	return mux, s.api.OpenAPI()
}

func config() huma.Config {
	c := huma.DefaultConfig("Homeport", "1")
	c.OpenAPIPath = "/openapi"
	c.DocsPath, c.SchemasPath = "", ""
	c.CreateHooks = nil
	c.Servers = []*huma.Server{{URL: "/api"}}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"session": {Type: "http", Scheme: "bearer", BearerFormat: "JWT"},
	}
	c.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[apitype.Decimal](), reflect.TypeFor[float64]())
	c.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[apitype.Whole](), reflect.TypeFor[int]())
	return c
}

// others are the methods that a path may be asked with; GET answers HEAD too.
var others = []string{"CONNECT", "DELETE", "GET", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"}

// refuseOthers answers every path and method that no operation has. Each method
// is refused by a pattern of its own: one of /teams/checkout for any method
// would be at odds with that of an operation on /teams/{id}.
func (s *server) refuseOthers(mux *http.ServeMux) {
	for path, item := range s.api.OpenAPI().Paths {
		var allow []string
		for method, op := range map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "DELETE": item.Delete, "PATCH": item.Patch, "PUT": item.Put} {
			if op != nil {
				allow = append(allow, method)
			}
		}
		slices.Sort(allow)
		methods := strings.Join(allow, ", ")
		for _, method := range others {
			if slices.Contains(allow, method) {
				continue
			}
			mux.HandleFunc(method+" "+path, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Allow", methods)
				writeProblem(w, notAllowed(methods))
			})
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { WriteFault(w, ErrNoPath) })
}

// A Bearer is the part of an input that carries the session.
type Bearer struct {
	Authorization string `header:"Authorization" hidden:"true"`
}

// token returns the bearer token of a header; a header that carries none is
// anonymous.
func token(header string) string {
	t, ok := strings.CutPrefix(header, "Bearer ")
	if !ok {
		return strings.TrimSpace(header)
	}
	return strings.TrimSpace(t)
}

// handle registers a call and maps its error once, for every route.
func handle[I, O any](s *server, op huma.Operation, fn func(context.Context, *I) (*O, error)) {
	op.MaxBodyBytes = maxBody
	op.Errors = []int{}
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := fn(ctx, in)
		if err != nil {
			p := problem(ctx, s.Logger, err)
			if p.retryAfter > 0 {
				return nil, huma.ErrorWithHeaders(p, retryHeader(p))
			}
			return nil, p
		}
		return out, nil
	})
}

// session registers a call that needs a signed-in person. Nothing of the
// request but its token is read before it is proven.
func session[I, O any](s *server, op huma.Operation, fn func(context.Context, team.Person, I) (*O, error)) {
	op.Middlewares = append(op.Middlewares, s.signedIn)
	proven(s, op, fn)
}

// proven registers a call whose middlewares prove who is signed in.
func proven[I, O any](s *server, op huma.Operation, fn func(context.Context, team.Person, I) (*O, error)) {
	op.Security = []map[string][]string{{"session": {}}}
	handle(s, op, func(ctx context.Context, in *I) (*O, error) {
		p, ok := ctx.Value(personKey{}).(team.Person)
		if !ok {
			return nil, ErrNoSession
		}
		return fn(ctx, p, *in)
	})
}

// personKey carries the proven person past Huma's reading of the request; it is
// set and read in this file only.
type personKey struct{}

// signedIn lets a request pass when its token is proven.
func (s *server) signedIn(ctx huma.Context, next func(huma.Context)) {
	t := token(ctx.Header("Authorization"))
	p, err := team.Person{}, error(ErrNoSession)
	if t != "" {
		p, err = s.Authenticate(ctx.Context(), t)
	}
	if err != nil {
		refuse(ctx, problem(ctx.Context(), s.Logger, err))
		return
	}
	next(huma.WithValue(ctx, personKey{}, p))
}

// scope proves a person's right to act for a team named by a client. A name
// that is no UUID is as unknown as any other.
func (s *server) scope(ctx context.Context, p team.Person, teamID string, need team.Right) (team.Scope, error) {
	t, ok := id.Parse(teamID)
	if !ok {
		return team.Scope{}, team.ErrNotFound
	}
	return s.Teams.Authorize(ctx, p, t, need)
}

// claim is a person's right to act for a team named by a client, still to be
// proven by what reads for it.
func claim(p team.Person, teamID string, need team.Right) (team.Claim, error) {
	t, ok := id.Parse(teamID)
	if !ok {
		return team.Claim{}, team.ErrNotFound
	}
	return team.ClaimOf(p, t, need), nil
}

// parse reads an id named by a client; anything else than a UUID is unknown.
func parse(text string, unknown *fault.Error) (uuid.UUID, error) {
	u, ok := id.Parse(text)
	if !ok {
		return uuid.Nil, unknown
	}
	return u, nil
}

// Once is the part of an input that makes a POST repeatable.
type Once struct {
	Key     string `header:"Idempotency-Key" maxLength:"255" doc:"Honoured for 24 hours: the same key and body get the first answer."`
	RawBody []byte
}

// request names the call for its owner's transaction. What it is about and its
// body does not say, such as the team of a query, is named: under one key it is
// another request.
func (o Once) request(s *server, p team.Person, route string, named ...string) idem.Request {
	sum := sha256.New()
	for _, name := range named {
		sum.Write([]byte(name + "\n"))
	}
	sum.Write(bytes.TrimSpace(o.RawBody))
	return idem.Request{Scope: p.ID.String() + " " + route, Key: o.Key, BodyHash: sum.Sum(nil), Wall: s.Clock.Wall()}
}

// InTeam is the part of an input that names the team.
type InTeam struct {
	TeamID string `query:"team_id" required:"true" doc:"Team id, a UUID."`
}

// list is a bare JSON array, never null.
type list[T any] struct {
	Body []T
}

func listOf[D, T any](items []D, as func(D) T) *list[T] {
	out := make([]T, 0, len(items))
	for _, it := range items {
		out = append(out, as(it))
	}
	return &list[T]{Body: out}
}

// body is one JSON object.
type body[T any] struct {
	Body T
}

// nothing is an answer without a body.
type nothing struct{}
