package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/pg"
)

const (
	windowIP      = 5 * time.Minute
	windowAddress = time.Hour
)

// A Request asks for a sign-in link.
type Request struct {
	Email      string
	RedirectTo string // where the link leads in the end; see Service.Redirect
	Browser    string // what an earlier Requested gave this browser; empty = unknown
	IP         string
	UserAgent  string
	NoSignUp   bool // send nothing to an address without a user
}

// Requested is the answer to a Request: the same for known and unknown
// addresses, and for requests that were dropped.
type Requested struct {
	Browser string // a secret that recognises this browser; to keep in a cookie
}

// RequestLink records the request and leaves the mail to a job. The faults are
// ErrEmailMissing, ErrEmailInvalid, ErrEmailLong, ErrTooSoon, ErrTooManyLinks
// and ErrTooManyRequests.
func (s *Service) RequestLink(ctx context.Context, r Request) (Requested, error) {
	email, err := CleanEmail(r.Email)
	if err != nil {
		return Requested{}, err
	}
	r.Email, r.UserAgent = email, cleanText(r.UserAgent, 300)
	asked := asking{Request: r, folded: FoldEmail(email), network: network(r.IP), now: s.Clock.Wall()}
	asked.clientHash = id.Hash(strings.Join([]string{asked.folded, asked.network, r.UserAgent}, "\x00"))
	if isToken(r.Browser) {
		asked.known = true
	} else {
		asked.Browser = id.Token()
	}
	asked.browserHash = id.Hash(asked.Browser)
	// A flood is refused here already, before it queues up for the locks.
	if err := s.allowed(ctx, s.Pool, asked); err != nil {
		return Requested{}, err
	}
	err = pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error { return s.requestLinkTx(ctx, tx, asked) })
	if err != nil {
		return Requested{}, err
	}
	return Requested{Browser: asked.Browser}, nil
}

// isToken says that v has the form of id.Token.
func isToken(v string) bool {
	return len(v) == 43 && !strings.ContainsFunc(v, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// asking is a Request made ready. A browser that showed no cookie counts as
// the same one when address, network and user agent are the same.
type asking struct {
	Request
	folded, network         string
	browserHash, clientHash []byte
	known                   bool // the browser showed its cookie
	now                     time.Time
}

func (s *Service) requestLinkTx(ctx context.Context, tx pgx.Tx, a asking) error {
	for _, key := range a.locks() {
		if _, err := tx.Exec(ctx, sqlLockRequest, key); err != nil {
			return fmt.Errorf("lock the request limits: %w", err)
		}
	}
	if err := s.allowed(ctx, tx, a); err != nil {
		return err
	}
	var earlier int
	if err := tx.QueryRow(ctx, sqlCountAddress, a.folded, a.now.Add(-windowAddress)).Scan(&earlier); err != nil {
		return fmt.Errorf("count requests for an address: %w", err)
	}
	if _, err := tx.Exec(ctx, sqlRecordRequest, a.args()); err != nil {
		return fmt.Errorf("record a request for a link: %w", err)
	}
	if earlier >= s.Limits.PerAddress {
		s.Logger.WarnContext(ctx, "sign-in link dropped: the address is over its limit")
		return nil
	}
	return s.addLinkTx(ctx, tx, a)
}

// addLinkTx ends the browser's older links, adds the new one and its mail.
func (s *Service) addLinkTx(ctx context.Context, tx pgx.Tx, a asking) error {
	if _, err := tx.Exec(ctx, sqlEndLinks, pgx.NamedArgs{
		"known": a.known, "browser": a.browserHash, "client": a.clientHash, "now": a.now,
	}); err != nil {
		return fmt.Errorf("end the older links: %w", err)
	}
	link, token := id.New(), id.Token()
	args := a.args()
	args["id"], args["token"], args["sealed"] = link, id.Hash(token), s.Box.Seal([]byte(token), linkPurpose(link))
	args["address"], args["create"] = a.Email, !a.NoSignUp
	args["redirect"], args["agent"] = s.Redirect(a.RedirectTo), a.UserAgent
	args["expires"] = a.now.Add(s.LinkTTL)
	if _, err := tx.Exec(ctx, sqlAddLink, args); err != nil {
		return fmt.Errorf("add a sign-in link: %w", err)
	}
	if err := s.Queue.AddTx(ctx, tx, SendLinkJob{LinkID: link}, job.Options{}); err != nil {
		return fmt.Errorf("queue the mail of link %s: %w", link, err)
	}
	return nil
}

func linkPurpose(link uuid.UUID) string { return "sign-in link " + link.String() }

func (a asking) args() pgx.NamedArgs {
	return pgx.NamedArgs{
		"email": a.folded, "ip": a.network, "browser": a.browserHash, "client": a.clientHash, "now": a.now,
	}
}

// locks are the advisory locks that make requests of one address, one network
// and one browser wait for each other, in the order everyone takes them.
func (a asking) locks() []int64 {
	keys := []int64{lockOf("address", a.folded), lockOf("network", a.network), lockOf("browser", string(a.browserHash))}
	slices.SortFunc(keys, cmp.Compare)
	return slices.Compact(keys)
}

func lockOf(kind, value string) int64 {
	sum := sha256.Sum256([]byte("auth " + kind + "\x00" + value))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

const sqlLockRequest = `select pg_advisory_xact_lock($1)`

const sqlRecordRequest = `
	insert into auth_request (email_folded, ip, browser_hash, client_hash, requested_at)
	values (@email, @ip, @browser, @client, @now)`

const sqlEndLinks = `
	update auth_link set ended_at = @now, sealed_token = null
	where used_at is null and ended_at is null
	  and ((@known and browser_hash = @browser) or (not @known and client_hash = @client))`

const sqlAddLink = `
	insert into auth_link (id, token_hash, sealed_token, email, email_folded, may_create, redirect_to,
		browser_hash, client_hash, ip, user_agent, requested_at, expires_at)
	values (@id, @token, @sealed, @address, @email, @create, @redirect,
		@browser, @client, @ip, @agent, @now, @expires)`

const sqlCountAddress = `select count(*) from auth_request where email_folded = $1 and requested_at > $2`

// requestCounts is what the limits look at.
type requestCounts struct {
	LastOfBrowser *time.Time `db:"last_of_browser"`
	ByNetwork     int        `db:"by_network"`
	NetworkSince  *time.Time `db:"network_since"`
	ByPair        int        `db:"by_pair"`
	PairSince     *time.Time `db:"pair_since"`
}

const sqlCountRequests = `
	select
		(select max(requested_at) from auth_request
			where (@known and browser_hash = @browser) or (not @known and client_hash = @client)) as last_of_browser,
		network.n as by_network, network.since as network_since,
		pair.n as by_pair, pair.since as pair_since
	from (select count(*) as n, min(requested_at) as since from auth_request
			where ip = @ip and requested_at > @minutes) as network,
		(select count(*) as n, min(requested_at) as since from auth_request
			where email_folded = @email and ip = @ip and requested_at > @hour) as pair`

// allowed refuses what is over a limit that the asker is told about.
func (s *Service) allowed(ctx context.Context, q pg.Querier, a asking) error {
	args := a.args()
	args["known"], args["hour"], args["minutes"] = a.known, a.now.Add(-windowAddress), a.now.Add(-windowIP)
	rows, err := q.Query(ctx, sqlCountRequests, args)
	if err != nil {
		return fmt.Errorf("count requests for links: %w", err)
	}
	seen, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[requestCounts])
	if err != nil {
		return fmt.Errorf("count requests for links: %w", err)
	}
	return s.Limits.allow(seen, a.now)
}

// allow says whether one more request is within the limits. What is refused is
// not counted.
func (l Limits) allow(seen requestCounts, now time.Time) error {
	if seen.ByNetwork >= l.PerIP {
		return wait(ErrTooManyRequests, seen.NetworkSince, windowIP, now)
	}
	if seen.LastOfBrowser != nil {
		if left := secondsUp(seen.LastOfBrowser.Add(l.Pause).Sub(now)); left > 0 {
			return ErrTooSoon.With("For security purposes, you can only request this after %d seconds.", left).After(left)
		}
	}
	if seen.ByPair >= l.PerAddressAndIP {
		return wait(ErrTooManyLinks, seen.PairSince, windowAddress, now)
	}
	return nil
}

// wait tells when the oldest request leaves the window.
func wait(f *fault.Error, since *time.Time, window time.Duration, now time.Time) error {
	if since == nil {
		return errors.New("a request limit was reached without a request")
	}
	return f.After(max(1, secondsUp(since.Add(window).Sub(now))))
}

func secondsUp(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
