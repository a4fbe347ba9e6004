package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"homeport.dev/homeport/internal/blob"
)

// Errors of a probe that are not the service's absence.
var (
	// ErrRefused occurs when the service does not let this node in: wrong key,
	// bucket, region or clock.
	ErrRefused = errors.New("the object store refuses us")
	// ErrUnsafe occurs when the service does not enforce what volumes rest on.
	ErrUnsafe = errors.New("the object store is not safe to use")
)

// probed is what a probe writes.
var probed = []byte("Homeport looks what this object store enforces. This may be deleted.\n")

// Probe finds out by trying what the service enforces, in a folder of its own
// named by name, which it clears away. The errors are ErrRefused, ErrUnsafe
// and blob.ErrUnavailable.
func (s *Store) Probe(ctx context.Context, name string) (Features, error) {
	p := &probe{Store: s, dir: "probe/" + name}
	defer p.clear(ctx)
	for _, step := range []func(context.Context) error{
		p.write, p.overwrite, p.otherBytes, p.otherLength, p.otherKey, p.noSignature, p.expired, p.read, p.list, p.delete,
	} {
		if err := step(ctx); err != nil {
			return Features{}, err
		}
	}
	return p.found, nil
}

type probe struct {
	*Store
	dir   string
	found Features
}

func (p *probe) key(name string) string { return p.dir + "/" + name }

// put uploads body by a grant for the bytes of promised, as a pod would.
func (p *probe) put(ctx context.Context, key string, promised, body []byte) error {
	sum := sha256.Sum256(promised)
	header := putHeader(p.found, sum[:])
	g, err := p.presign(ctx, http.MethodPut, key, header, int64(len(promised)), time.Minute, p.config.Wall())
	if err != nil {
		return err
	}
	return p.send(ctx, g.Method, g.URL, header, body, nil)
}

// get reads by a grant, which change may spoil.
func (p *probe) get(ctx context.Context, key string, header http.Header, at time.Time, change func(string) string) (body []byte, err error) {
	g, err := p.presign(ctx, http.MethodGet, key, http.Header{}, 0, time.Minute, at)
	if err != nil {
		return nil, err
	}
	if change != nil {
		g.URL = change(g.URL)
	}
	err = p.send(ctx, g.Method, g.URL, header, nil, &body)
	return body, err
}

// send makes a request as somebody without credentials, again while the
// service fails. The error of a refusal is a *refusal.
func (p *probe) send(ctx context.Context, method, address string, header http.Header, body []byte, into *[]byte) error {
	for try := 1; ; try++ {
		err := p.sendOnce(ctx, method, address, header, body, into)
		var r *refusal
		if err == nil || errors.As(err, &r) && r.Status < 500 || errors.As(err, &r) && r.Status == http.StatusNotImplemented {
			return err
		}
		if ctx.Err() != nil || try == maxTries {
			return unavailable("probe", p.Place(), err)
		}
		if err := pause(ctx, p.dir, try); err != nil {
			return err
		}
	}
}

func (p *probe) sendOnce(ctx context.Context, method, address string, header http.Header, body []byte, into *[]byte) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return errors.New("the grant cannot be used") // the cause would quote the signature
	}
	for name, values := range header {
		req.Header[name] = values
	}
	res, err := p.client.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		r := readRefusal(res)
		if r.Code == "RequestTimeTooSkewed" {
			r.Message = "the clock of this machine differs from the store's, which says " + res.Header.Get("Date")
		}
		return r
	}
	if into != nil {
		*into, err = io.ReadAll(io.LimitReader(res.Body, 1<<20))
	}
	return err
}

// write finds the strongest form of a write that the service takes at all.
func (p *probe) write(ctx context.Context) error {
	var last error
	for _, f := range []Features{{Conditional: true, Checksum: true}, {Checksum: true}, {Conditional: true}, {}} {
		p.found = f
		err := p.put(ctx, p.key("a"), probed, probed)
		if err == nil {
			return nil
		}
		if status := statusOf(err); status != http.StatusNotImplemented && status != http.StatusBadRequest {
			return p.explain(err)
		}
		last = err
	}
	return p.explain(last)
}

func (p *probe) explain(err error) error {
	var r *refusal
	if !errors.As(err, &r) {
		return err
	}
	hint := ""
	switch {
	case r.Status >= 300 && r.Status < 400:
		hint = "; the bucket is in another region or at another endpoint"
	case r.Code == "NoSuchBucket":
		hint = "; make the bucket first"
	case r.Code == "AccessDenied":
		hint = "; the key needs to read, write, list and delete below the prefix"
	}
	return fmt.Errorf("%w: %s: %w%s", ErrRefused, p.Place(), err, hint)
}

func (p *probe) unsafe(format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", ErrUnsafe, p.Place(), fmt.Sprintf(format, args...))
}

// overwrite looks whether a second write is refused. Where it is not, volumes
// do without: an object's name is the hash of its bytes.
func (p *probe) overwrite(ctx context.Context) error {
	if !p.found.Conditional {
		return nil
	}
	err := p.put(ctx, p.key("a"), probed, probed)
	if err != nil && statusOf(err) == 0 {
		return err
	}
	p.found.Conditional = statusOf(err) == http.StatusPreconditionFailed
	return nil
}

// otherBytes looks whether bytes with another hash are refused. Where they are
// not, commits read back what was uploaded.
func (p *probe) otherBytes(ctx context.Context) error {
	if !p.found.Checksum {
		return nil
	}
	other := bytes.ToUpper(probed)
	err := p.put(ctx, p.key("b"), probed, other)
	if err != nil && statusOf(err) == 0 {
		return err
	}
	p.found.Checksum = err != nil
	if err == nil {
		return p.remove(ctx, version{key: p.key("b")})
	}
	return p.absent(ctx, p.key("b"), "a write of other bytes was refused, and the object is there")
}

// otherLength holds what keeps a pod from storing more than it said.
func (p *probe) otherLength(ctx context.Context) error {
	err := p.put(ctx, p.key("c"), probed, append(bytes.Clone(probed), probed...))
	if err != nil && statusOf(err) == 0 {
		return err
	}
	if err == nil {
		return p.unsafe("takes a write of another length than the one that is signed")
	}
	return p.absent(ctx, p.key("c"), "a write of another length was refused, and the object is there")
}

func (p *probe) absent(ctx context.Context, key, why string) error {
	_, err := p.Stat(ctx, key)
	if errors.Is(err, blob.ErrNotFound) {
		return nil
	}
	if err == nil {
		return p.unsafe("keeps what it refuses: %s", why)
	}
	return err
}

// otherKey holds that a grant is for one object.
func (p *probe) otherKey(ctx context.Context) error {
	return p.denied(ctx, p.config.Wall(), "gives an object by the signature for another one", func(u string) string {
		return strings.Replace(u, p.dir+"/b?", p.dir+"/a?", 1)
	}, "b")
}

// noSignature holds that the bucket is not public.
func (p *probe) noSignature(ctx context.Context) error {
	return p.denied(ctx, p.config.Wall(), "gives objects without a signature: the bucket is public", func(u string) string {
		u, _, _ = strings.Cut(u, "?")
		return u
	}, "a")
}

// expired holds that a grant ends.
func (p *probe) expired(ctx context.Context) error {
	return p.denied(ctx, p.config.Wall().Add(-10*time.Minute), "takes signatures that are expired", nil, "a")
}

func (p *probe) denied(ctx context.Context, at time.Time, what string, change func(string) string, name string) error {
	_, err := p.get(ctx, p.key(name), nil, at, change)
	if err == nil {
		return p.unsafe("%s", what)
	}
	if statusOf(err) == 0 {
		return err
	}
	return nil
}

// read holds that what was written is there, whole and in parts, at once.
func (p *probe) read(ctx context.Context) error {
	whole, err := p.get(ctx, p.key("a"), nil, p.config.Wall(), nil)
	if err != nil {
		return p.explain(err)
	}
	part, err := p.get(ctx, p.key("a"), http.Header{"Range": {"bytes=9-13"}}, p.config.Wall(), nil)
	if err != nil {
		return p.explain(err)
	}
	info, err := p.Stat(ctx, p.key("a"))
	if err != nil {
		return err
	}
	if !bytes.Equal(whole, probed) || !bytes.Equal(part, probed[9:14]) || info.Size != int64(len(probed)) {
		return p.unsafe("does not give back what was written, or a part of it, or its size")
	}
	return nil
}

// list holds that a list shows what was just written.
func (p *probe) list(ctx context.Context) error {
	names, err := p.names(ctx)
	if err != nil {
		return err
	}
	if len(names) != 1 || names[0] != p.key("a") {
		return p.unsafe("lists %d objects where one was just written", len(names))
	}
	return nil
}

func (p *probe) names(ctx context.Context) (names []string, err error) {
	err = p.List(ctx, p.dir+"/", func(i blob.Info) error {
		names = append(names, i.Key)
		return nil
	})
	return names, err
}

// delete holds that what is deleted is gone, and looks whether versions stay.
func (p *probe) delete(ctx context.Context) error {
	if err := p.remove(ctx, version{key: p.key("a")}); err != nil {
		return err
	}
	if err := p.absent(ctx, p.key("a"), "an object was deleted, and is there"); err != nil {
		return err
	}
	names, err := p.names(ctx)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return p.unsafe("lists an object that was just deleted")
	}
	var page versions
	err = p.page(ctx, p.dir, url.Values{"versions": {""}, "prefix": {p.name(p.dir + "/")}}, &page)
	if err != nil && statusOf(err) == 0 {
		return unavailable("list the versions of", p.dir, err)
	}
	p.found.Versions = len(page.Version)+len(page.DeleteMarker) > 0
	return nil
}

// clear takes away what the probe wrote, as far as that goes.
func (p *probe) clear(ctx context.Context) {
	if p.found.Versions {
		_ = p.eachVersion(ctx, p.dir+"/", func(v version) error { return p.remove(ctx, v) })
		return
	}
	names, _ := p.names(ctx)
	for _, key := range names {
		_ = p.remove(ctx, version{key: key})
	}
}
