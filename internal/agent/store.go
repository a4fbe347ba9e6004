//go:build linux

package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/snapshot"
)

// Times of the store.
const (
	storePatience  = 10 * time.Minute // how long one object is tried while the store fails
	storeStall     = 60 * time.Second // without a byte, a transfer is broken off
	storeRetryMost = 15 * time.Second
	expectAbove    = 1 << 20 // bytes from which a refusal is waited for before the body is sent
	maxBadBody     = 3       // times a store may find other bytes than we sent
)

// store moves objects by grants of the control plane: it is the engine's
// outside.
type store struct {
	signer *signer
	node   *client      // grants on the control plane itself
	remote *http.Client // grants elsewhere
	clock  *clock.Clock
}

// errAgain wraps what is worth another try.
type errAgain struct{ cause error }

func (e errAgain) Error() string { return e.cause.Error() }
func (e errAgain) Unwrap() error { return e.cause }

func newStore(ctx context.Context, node *client, c *clock.Clock, epoch int64) *store {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 16
	transport.ExpectContinueTimeout = 5 * time.Second
	transport.ResponseHeaderTimeout = storeStall
	if node.dial != nil { // a pod without a network reaches the store through its node
		transport.Proxy, transport.DialContext = nil, node.dialStore
	}
	return &store{
		signer: newSigner(ctx, node, c, epoch),
		node:   node,
		remote: &http.Client{Transport: transport, CheckRedirect: refuseRedirect},
		clock:  c,
	}
}

// Put stores an object. The faults are ErrQuota, ErrFenced, ErrRefused and
// blob.ErrUnavailable.
func (s *store) Put(ctx context.Context, o snapshot.Object, body []byte) error {
	op := agentapi.Op{Put: true, Object: wireObject(o)}
	bad := 0
	return s.try(ctx, op, func(ctx context.Context, g agentapi.Grant) error {
		err := s.put(ctx, g, body)
		if errors.Is(err, blob.ErrChecksum) {
			if bad++; bad < maxBadBody { // broken on the way
				return errAgain{err}
			}
		}
		return err
	})
}

// Get reads a part of an object; a transfer that breaks off goes on where it
// was. The faults are blob.ErrNotFound and blob.ErrUnavailable.
func (s *store) Get(ctx context.Context, kind snapshot.Kind, id snapshot.ID, offset, length int64) (io.ReadCloser, error) {
	r := &reader{
		ctx: ctx, store: s, offset: offset, left: length,
		op: agentapi.Op{Object: agentapi.Object{ID: id.String(), Kind: agentapi.Kind(kind)}},
	}
	if err := r.open(); err != nil {
		return nil, err
	}
	return r, nil
}

// try signs op and moves it until it worked, failed for good, or patience and
// ctx ended.
func (s *store) try(ctx context.Context, op agentapi.Op, move func(context.Context, agentapi.Grant) error) error {
	until := s.clock.Wall().Add(storePatience)
	wait := newBackoff(retryFirst, storeRetryMost, op.Object.ID)
	for {
		grant, err := s.signer.sign(ctx, op)
		if err == nil {
			err = move(ctx, grant)
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var again errAgain
		if !errors.As(err, &again) && !errors.Is(err, ErrAway) {
			return err
		}
		s.signer.forget(op)
		if s.clock.Wall().After(until) {
			return blob.ErrUnavailable.Because(err)
		}
		if err := wait.sleep(ctx); err != nil {
			return err
		}
	}
}

// request makes the HTTP request that a grant allows.
func (s *store) request(ctx context.Context, g agentapi.Grant, body io.Reader) (*http.Request, *http.Client, error) {
	url, via := g.URL, s.remote
	if strings.HasPrefix(g.URL, "/") {
		url, via = s.node.base+g.URL, s.node.http
	}
	req, err := http.NewRequestWithContext(ctx, g.Method, url, body)
	if err != nil {
		return nil, nil, errors.New("the grant cannot be used") // the cause would quote the signature
	}
	for name, value := range g.Header {
		switch http.CanonicalHeaderKey(name) {
		case "Host":
			req.Host = value
		case "Content-Length": // the body says it
		default:
			req.Header.Set(name, value)
		}
	}
	return req, via, nil
}

func (s *store) put(ctx context.Context, g agentapi.Grant, body []byte) error {
	// A body that no longer moves is found by the whole transfer's time.
	ctx, cancel := context.WithTimeout(ctx, 2*storeStall+time.Duration(len(body)/(64<<10))*time.Second)
	defer cancel()
	req, via, err := s.request(ctx, g, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if len(body) > expectAbove {
		req.Header.Set("Expect", "100-continue")
	}
	res, err := via.Do(req)
	if err != nil {
		return errAgain{withoutURL(err)}
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10)) // for the code in it, and to use the connection again
	switch res.StatusCode {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent:
		return nil
	case http.StatusPreconditionFailed:
		return nil // there already: its name is its content
	default:
		return storeRefusal(res.StatusCode, text)
	}
}

// storeRefusal sorts what a store says no with.
func storeRefusal(status int, text []byte) error {
	err := fmt.Errorf("the store answered %d", status)
	switch {
	case status == http.StatusNotFound:
		return blob.ErrNotFound.Because(err)
	case status == http.StatusBadRequest && (bytes.Contains(text, []byte("BadDigest")) || bytes.Contains(text, []byte(blob.ErrChecksum.Code))):
		return blob.ErrChecksum.Because(err)
	case status == http.StatusUnauthorized, status == http.StatusForbidden, // the grant ran out
		status == http.StatusConflict, // two writes at once, and neither is done
		status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status >= 500:
		return errAgain{err}
	default:
		return err
	}
}

// rangeHeader asks for length bytes from offset; below 0 means to the end.
func rangeHeader(offset, length int64) string {
	switch {
	case length >= 0:
		return "bytes=" + strconv.FormatInt(offset, 10) + "-" + strconv.FormatInt(offset+length-1, 10)
	case offset > 0:
		return "bytes=" + strconv.FormatInt(offset, 10) + "-"
	default:
		return ""
	}
}
