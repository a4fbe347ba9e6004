// Package auth knows who is calling. It owns users, sign-in links, sessions
// and the keys that sign access tokens: the tables auth_user, auth_request,
// auth_link, auth_session and auth_signing_key.
//
// What always holds:
//   - an address belongs to at most one user, and a user exists only after a
//     link sent to their address was opened and redeemed;
//   - a link signs in at most once, whoever races, and looking at it changes
//     nothing;
//   - no token is stored in a form that can be presented: links are hashed,
//     refresh tokens are derived from a sealed secret, signing keys are sealed;
//   - an access token whose session has ended is refused at once by the node
//     that ended it and within five seconds by every other.
//
// Everything here runs on wall time. What a user may do is left to team; the
// HTTP shapes are left to gotrue.
package auth

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/seal"
)

// SignUp says who may become a user.
type SignUp string

// The ways of signing up. The zero value is SignUpOpen.
const (
	SignUpOpen    SignUp = "open"    // whoever proves an address
	SignUpInvited SignUp = "invited" // addresses that Deps.Invited knows
)

// Lifetimes.
const (
	AccessTTL       = 15 * time.Minute    // of an access token
	SessionIdle     = 7 * 24 * time.Hour  // of a session that is not refreshed
	SessionLifetime = 30 * 24 * time.Hour // of a session, however used
	defaultLinkTTL  = 10 * time.Minute
)

// Limits bound how often links are asked for. A zero field has its default.
type Limits struct {
	Pause           time.Duration // between two requests of one browser: 60 s
	PerIP           int           // per 5 minutes: 30
	PerAddressAndIP int           // per hour: 5
	PerAddress      int           // per hour, beyond which requests are dropped without a word: 20
}

// Deps are what a Service is made of.
type Deps struct {
	Pool   *pgxpool.Pool
	Clock  *clock.Clock
	Queue  job.Queue // takes SendLinkJob
	Box    *seal.Box
	Mail   mail.Sender
	Logger *slog.Logger

	PublicURL       string        // absolute; its origin is the issuer and where links lead
	RedirectOrigins []string      // further origins that links may lead to
	LinkTTL         time.Duration // zero = 10 minutes
	Limits          Limits
	SignUp          SignUp // zero = SignUpOpen
	// Invited says whether an address may sign up under SignUpInvited. It is
	// called inside the transaction that would make the user, and before the
	// mail is sent.
	Invited func(ctx context.Context, tx pgx.Tx, email string) (bool, error)
	// InvitationWaits says whether an invitation still waits: its link lives as
	// long. nil: links of invitations never work.
	InvitationWaits func(ctx context.Context, q pg.Querier, invitation uuid.UUID) (bool, error)
	// OnSignIn, when set, is called inside the transaction of every sign-in by
	// link: where pending invitations are accepted. An error undoes the sign-in.
	OnSignIn func(ctx context.Context, tx pgx.Tx, user uuid.UUID, email string) error
	// Hub, when set, tells this node of sessions that other nodes ended, which
	// lets it trust a session for five seconds without asking the database.
	Hub *pg.Hub
}

// A Service signs users in and recognises them. It is safe for concurrent use.
type Service struct {
	Deps
	origins  []string
	issuer   string
	keys     keyring
	tokens   *cache[[32]byte, claims]
	sessions *liveSessions
}

// New returns a service, or says which of deps makes no sense.
func New(deps Deps) (*Service, error) {
	public, err := url.Parse(deps.PublicURL)
	if err != nil || (public.Scheme != "http" && public.Scheme != "https") || public.Host == "" {
		return nil, fmt.Errorf("auth: the public URL %q is not an absolute http address", deps.PublicURL)
	}
	deps.PublicURL = origin(public)
	s := &Service{Deps: deps, origins: []string{deps.PublicURL}, issuer: deps.PublicURL + "/auth/v1"}
	for _, raw := range deps.RedirectOrigins {
		u, err := url.Parse(raw)
		if err != nil || u.Host == "" || (u.Scheme != "https" && (u.Scheme != "http" || !loopbackHost(u.Hostname()))) {
			return nil, fmt.Errorf("auth: the redirect origin %q is neither https nor loopback", raw)
		}
		s.origins = append(s.origins, origin(u))
	}
	switch s.SignUp {
	case "":
		s.SignUp = SignUpOpen
	case SignUpOpen, SignUpInvited:
	default:
		return nil, fmt.Errorf("auth: sign-up %q is neither open nor invited", s.SignUp)
	}
	if s.LinkTTL == 0 {
		s.LinkTTL = defaultLinkTTL
	}
	s.Limits = s.Limits.withDefaults()
	s.tokens = newCache[[32]byte, claims](4096)
	s.sessions = newLiveSessions(deps.Hub)
	return s, nil
}

// Close stops listening to the Hub. Closing twice is no error.
func (s *Service) Close() { s.sessions.close() }

func (l Limits) withDefaults() Limits {
	if l.Pause == 0 {
		l.Pause = time.Minute
	}
	if l.PerIP == 0 {
		l.PerIP = 30
	}
	if l.PerAddressAndIP == 0 {
		l.PerAddressAndIP = 5
	}
	if l.PerAddress == 0 {
		l.PerAddress = 20
	}
	return l
}
