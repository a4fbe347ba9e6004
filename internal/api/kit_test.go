package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/api"
	"homeport.dev/homeport/internal/auth"
	"homeport.dev/homeport/internal/blob/dir"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/interest"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/notice"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/operator"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/seal"
	"homeport.dev/homeport/internal/sshkey"
	"homeport.dev/homeport/internal/statement"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

// A cloud is an adapter that lists one offer. Nothing is launched here: pods
// stay as they were created.
type cloud struct{ provider.Adapter }

func (cloud) Offers(context.Context) ([]provider.Offer, error) {
	return []provider.Offer{{
		Provider: "aurora", CloudID: "h100-1", GPUType: "H100_80GB", GPUCount: 1, GPUMemoryGB: 80, MemoryGB: 200,
		VCPU: 24, Socket: "SXM5", Country: "US", Security: "secure_cloud", Image: "ubuntu", DiskGB: 500,
		DiskIncluded: true, UpstreamPrice: 2_000_000,
	}}, nil
}

// A till starts payments and keeps no books.
type till struct{ payment.Processor }

func (till) Source() wallet.Source { return wallet.Test }

func (till) Minimum() money.USD { return money.Cent }

func (till) CreateCustomer(_ context.Context, c payment.Customer) (string, error) {
	return "cus_" + c.TeamID.String(), nil
}

func (till) CreateTopUp(_ context.Context, o payment.Order) (payment.Session, error) {
	return payment.Session{ID: o.ID.String(), OrderID: o.ID, URL: "https://pay.example/" + o.ID.String()}, nil
}

func (till) CreateSubscription(_ context.Context, o payment.TeamOrder) (payment.Session, error) {
	return payment.Session{ID: o.ID.String(), Mode: payment.SubscriptionMode, OrderID: o.ID, URL: "https://pay.example/" + o.ID.String()}, nil
}

func (till) CreateCardSetup(_ context.Context, o payment.CardOrder) (payment.Session, error) {
	return payment.Session{ID: o.ID.String(), Mode: payment.CardMode, OrderID: o.ID, URL: "https://pay.example/" + o.ID.String()}, nil
}

func (till) ReadSession(_ context.Context, id string) (payment.Session, error) {
	return payment.Session{ID: id}, nil
}

// A town is the API with the real services behind it. Tokens are the people's ids.
type town struct {
	t        testing.TB
	h        http.Handler
	pool     *pgxpool.Pool
	clock    *clock.Manual
	people   map[string]team.Person
	wallet   *wallet.Service
	offers   *offer.Service
	pods     *pod.Service
	notices  *notice.Service
	volumes  *volume.Service
	operator *operator.Service
	store    *dir.Store
	log      bytes.Buffer
}

func newTown(t testing.TB) *town {
	t.Helper()
	w := &town{t: t, pool: pgtest.New(t), clock: clock.Fixed(teamtest.Start), people: map[string]team.Person{}}
	logger := slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	box, err := seal.New(make([]byte, seal.KeySize))
	w.must(err)
	store, err := dir.New(t.TempDir(), []byte("0123456789abcdef"), w.clock.Wall)
	w.must(err)
	jobs, adapters := &job.Recorder{}, map[string]provider.Adapter{"a": cloud{}}
	w.wallet = wallet.New(wallet.Deps{Pool: w.pool, Clock: w.clock.Clock, Logger: logger})
	teams := team.New(team.Deps{Pool: w.pool, Clock: w.clock.Clock, Jobs: jobs, Logger: logger, Hooks: team.Hooks{
		OpenWallet:    w.wallet.OpenTx,
		SetSpendLimit: w.wallet.SetLimitTx,
		FindUser: func(_ context.Context, _ pgx.Tx, email string) (team.Person, bool, error) {
			for _, p := range w.people {
				if p.Email == email {
					return p, true, nil
				}
			}
			return team.Person{}, false, nil
		},
		Emails: w.emails,
	}})
	w.offers, err = offer.New(offer.Deps{Pool: w.pool, Clock: w.clock.Clock, Logger: logger, Adapters: adapters})
	w.must(err)
	w.must(w.offers.Refresh(t.Context()))
	keys := sshkey.New(sshkey.Deps{Pool: w.pool, Clock: w.clock.Clock, Logger: logger})
	volumes := volume.New(volume.Deps{
		Pool: w.pool, Clock: w.clock.Clock, Logger: logger, Box: box, Store: store, Signer: store, Wallet: w.wallet,
		Retention: volume.Retention{Last: 3, Hours: 24, Days: 7},
	})
	w.volumes, w.store = volumes, store
	w.pods = pod.New(pod.Deps{
		Pool: w.pool, Clock: w.clock.Clock, Jobs: jobs, Box: box, Logger: logger, Wallet: w.wallet, Volumes: volumes,
		Offers: w.offers, Keys: keys, Adapters: adapters, Host: "localhost", Limits: pod.Limits{PortFirst: 20000, PortLast: 20099},
	})
	w.must(w.pods.Prepare(t.Context()))
	w.notices = notice.New(notice.Deps{
		Pool: w.pool, Clock: w.clock.Clock, Logger: logger, Jobs: jobs, Teams: teams, Wallet: w.wallet, PublicURL: "https://homeport.example",
	})
	payments := payment.New(payment.Deps{
		Pool: w.pool, Clock: w.clock.Clock, Logger: logger, Wallet: w.wallet, Teams: teams, Jobs: jobs, Processor: till{}, PublicURL: "https://homeport.example",
	})
	w.operator = operator.New(operator.Deps{
		Clock: w.clock.Clock, Offers: w.offers, Pods: w.pods, Wallet: w.wallet, Volumes: volumes, Payments: payments,
		FailingJobs: func(context.Context, time.Time) ([]job.Failing, error) {
			return []job.Failing{{Kind: "mail.send", Retrying: 3, GivenUp: 2, GivenUpDay: 1, LastError: "it broke"}}, nil
		},
	})
	w.h, _ = api.New(api.Deps{
		Authenticate: w.authenticate, Clock: w.clock.Clock, Logger: logger, Teams: teams, Wallet: w.wallet, Payments: payments,
		Keys: keys, Volumes: volumes, Offers: w.offers, Pods: w.pods,
		Interest: interest.New(interest.Deps{Pool: w.pool, Clock: w.clock.Clock}),
		Notices:  w.notices,
		Statements: statement.New(statement.Deps{
			Pool: w.pool, Clock: w.clock.Clock, Wallet: w.wallet, Pods: w.pods, Volumes: volumes, Teams: teams,
			Emails: w.emails, Payers: payments.PayersTx, Receipts: payments.Receipts,
		}),
		Operator:   w.operator,
		CookiePath: "/volumes",
	})
	return w
}

func (w *town) emails(context.Context, pgx.Tx, []uuid.UUID) (map[uuid.UUID]string, error) {
	out := map[uuid.UUID]string{}
	for _, p := range w.people {
		out[p.ID] = p.Email
	}
	return out, nil
}

// errBusy is what one token gets, to see how a wait is told.
var errBusy = fault.New(fault.TooMany, "busy", "Too many requests.")

func (w *town) authenticate(_ context.Context, bearer string) (team.Person, error) {
	if bearer == "busy" {
		return team.Person{}, errBusy.After(17)
	}
	if bearer == "broken" {
		return team.Person{}, io.ErrUnexpectedEOF
	}
	if p, ok := w.people[bearer]; ok {
		return p, nil
	}
	return team.Person{}, auth.ErrBadToken
}

func (w *town) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// An answer of the API.
type answer struct {
	*httptest.ResponseRecorder
}

// json decodes the answer's body.
func (a answer) json(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal(a.Body.Bytes(), into); err != nil {
		t.Fatalf("%v in %s", err, a.Body)
	}
}

// call makes one request. Headers are pairs.
func (w *town) call(token, method, path, body string, header ...string) answer {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	w.h.ServeHTTP(rec, r)
	return answer{rec}
}

// is fails the test unless the answer has a status.
func (w *town) is(a answer, want int) answer {
	w.t.Helper()
	if a.Code != want {
		w.t.Fatalf("answered %d, want %d: %s", a.Code, want, a.Body)
	}
	return a
}

// problem checks that an answer is a whole RFC 9457 refusal, and returns it.
func (w *town) problem(a answer, status int, code string) api.Problem {
	w.t.Helper()
	var p api.Problem
	w.is(a, status).json(w.t, &p)
	if ct := a.Header().Get("Content-Type"); ct != "application/problem+json" {
		w.t.Errorf("a refusal of type %q", ct)
	}
	if p.Code != code && code != "" || p.Status != status || p.Type != "urn:homeport:"+p.Code || p.Detail == "" || p.Title != http.StatusText(status) {
		w.t.Errorf("refused as %+v, want %d %s", p, status, code)
	}
	return p
}

// A person with a token and a personal team.
type person struct{ token, team string }

// move brings a new person into town, with money.
func (w *town) move(amount money.USD) person {
	w.t.Helper()
	p := teamtest.Person()
	token := p.ID.String()
	w.people[token] = p
	var info struct {
		PersonalTeam struct{ ID string } `json:"personal_team"`
	}
	w.is(w.call(token, "GET", "/user/info", ""), 200).json(w.t, &info)
	if amount > 0 {
		w.must(pg.InTx(w.t.Context(), w.pool, func(tx pgx.Tx) error {
			key := id.New().String()
			_, err := w.wallet.CreditTx(w.t.Context(), tx, wallet.Credit{
				TeamID: uuid.MustParse(info.PersonalTeam.ID), Amount: amount, Source: wallet.Test, Key: key,
				ReferenceID: key, Description: "Top-up", At: w.clock.Now(),
			})
			return err
		}))
	}
	return person{token, info.PersonalTeam.ID}
}

// make creates something and returns its id.
func (w *town) make(p person, path, body string) string {
	w.t.Helper()
	var made struct{ ID string }
	w.is(w.call(p.token, "POST", path, body), 201).json(w.t, &made)
	return made.ID
}

const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG/Kc3/1tpfaWZ+oLKv8G4XEbsMUQMECdPnBaOQTIPZz"

func (p person) volumeBody() string { return `{"team_id":"` + p.team + `","name":"data"}` }

func (p person) keyBody() string {
	return `{"team_id":"` + p.team + `","name":"laptop","public_key":"` + publicKey + `"}`
}

func (p person) podBody(volume, key string) string {
	return `{"team_id":"` + p.team + `","volume_id":"` + volume + `","ssh_key_id":"` + key + `","cloud_id":"h100-1",` +
		`"gpu_type":"H100_80GB","socket":"SXM5","country":"US","gpu_count":1,"gpu_memory":80,"vcpu":24,"memory":200,` +
		`"price":2.6,"currency":"USD","default_disk_size":500,"disk_price":null,"security":"secure_cloud",` +
		`"provider":"aurora","is_spot":false,"data_center_id":null,"image":"ubuntu"}`
}
