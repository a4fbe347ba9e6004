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
	"path"
	"strings"
	"time"
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
		p.write, p.overwrite, p.otherBytes, p.otherLength, p.otherKey, p.noSignature, p.expired, p.read, p.list, p.delete, p.rewrite,
		p.versions, p.uploads,
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

// rights are what the key needs, as an operator grants them.
const rights = "the key needs to read, write, list and delete objects below the prefix, to list and delete their versions," +
	" and to list and end uploads in parts (s3:GetObject, PutObject, DeleteObject, DeleteObjectVersion, AbortMultipartUpload," +
	" ListBucket, ListBucketVersions and ListBucketMultipartUploads)"

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
		hint = "; " + rights
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
		if err := p.erase(ctx, version{key: p.key("b")}); err != nil {
			return p.forbidden(err, "delete objects")
		}
		return nil
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
	res, _, err := p.do(ctx, call{method: http.MethodHead, key: key})
	if err == nil {
		_ = res.Body.Close()
		return p.unsafe("keeps what it refuses: %s", why)
	}
	if statusOf(err) == http.StatusNotFound {
		return nil
	}
	return p.forbidden(err, "list objects: it is not told that one is not there")
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
	var page listing
	err = p.page(ctx, p.dir, url.Values{"list-type": {"2"}, "prefix": {p.name(p.dir + "/")}}, &page)
	if err != nil {
		return nil, p.forbidden(err, "list objects")
	}
	for _, o := range page.Contents {
		if key, ok := p.Store.key(o.Key); ok {
			names = append(names, key)
		}
	}
	return names, nil
}

// delete holds that what is deleted is gone.
func (p *probe) delete(ctx context.Context) error {
	if err := p.erase(ctx, version{key: p.key("a")}); err != nil {
		return p.forbidden(err, "delete objects")
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
	return nil
}

// rewrite looks whether a name is free again when its object was deleted. Some
// services take the mark of the deletion for an object, so that a write with
// If-None-Match would be lost; volumes then do without.
func (p *probe) rewrite(ctx context.Context) error {
	if !p.found.Conditional {
		return nil
	}
	err := p.put(ctx, p.key("a"), probed, probed)
	if statusOf(err) == http.StatusPreconditionFailed {
		p.found.Conditional = false
		return nil
	}
	if err != nil {
		return p.explain(err)
	}
	if err := p.erase(ctx, version{key: p.key("a")}); err != nil {
		return p.forbidden(err, "delete objects")
	}
	return nil
}

// versions looks whether what was deleted stays as versions, and holds that
// they can be deleted: whoever may not see them would take a bucket for purged
// that keeps everything.
func (p *probe) versions(ctx context.Context) error {
	var page versions
	err := p.page(ctx, p.dir, url.Values{"versions": {""}, "prefix": {p.name(p.dir + "/")}}, &page)
	if unknown(err) || statusOf(err) == http.StatusBadRequest || statusOf(err) == http.StatusNotFound {
		return nil // without such lists there are no versions
	}
	if err != nil {
		return p.forbidden(err, "list the versions of objects")
	}
	for _, v := range append(page.Version, page.DeleteMarker...) {
		p.found.Versions = true
		if err := p.erase(ctx, version{key: p.key(path.Base(v.Key)), id: v.VersionID}); err != nil {
			return p.forbidden(err, "delete the versions of objects")
		}
	}
	return nil
}

// uploads holds that uploads in parts can be looked for, as each purge does.
func (p *probe) uploads(ctx context.Context) error {
	err := p.page(ctx, p.dir, url.Values{"uploads": {""}, "prefix": {p.name(p.dir + "/")}}, &uploads{})
	if err != nil && !unknown(err) {
		return p.forbidden(err, "list uploads in parts")
	}
	return nil
}

// forbidden explains an answer to a call of the probe that purges rely on. The
// errors are ErrRefused, and blob.ErrUnavailable while the service fails.
func (p *probe) forbidden(err error, what string) error {
	var r *refusal
	if !errors.As(err, &r) || r.passes() {
		return unavailable("probe", p.Place(), err)
	}
	return fmt.Errorf("%w: %s: the key may not %s: %w; %s", ErrRefused, p.Place(), what, err, rights)
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
