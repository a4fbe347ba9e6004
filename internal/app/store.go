package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"time"

	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/blob/dir"
	"homeport.dev/homeport/internal/blob/s3"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/volume"
)

// probeWithin bounds the look at what an object store enforces.
const probeWithin = 45 * time.Second

// An objectStore keeps the volumes' objects and signs grants for them.
type objectStore interface {
	blob.Store
	blob.Signer
}

// checkStore holds that the volumes lie in one place only, and that it can be
// one.
func (c *Config) checkStore() (errs []error) {
	if _, err := volume.ParseKeepGarbage(c.KeepGarbage); err != nil {
		errs = append(errs, fmt.Errorf("%sKEEP_GARBAGE: %w", prefix, err))
	}
	if u, err := url.Parse(c.BlobURL); c.BlobURL != "" && (err != nil || u.Scheme != "file" || u.Host != "" || u.Path == "") {
		errs = append(errs, fmt.Errorf("%sBLOB_URL: only file:///path is known; for an S3 service set %sS3_ENDPOINT", prefix, prefix))
	}
	if c.S3Endpoint == "" {
		for name, text := range map[string]string{"S3_BUCKET": c.S3Bucket, "S3_PREFIX": c.S3Prefix, "S3_KEY_ID": c.S3KeyID, "S3_SECRET": c.S3Secret} {
			if text != "" {
				errs = append(errs, fmt.Errorf("%s%s: it is for an S3 service, and %sS3_ENDPOINT is not set", prefix, name, prefix))
			}
		}
		return errs
	}
	if c.BlobURL != "" {
		errs = append(errs, fmt.Errorf("%sBLOB_URL: the volumes lie in one place, and %sS3_ENDPOINT is set", prefix, prefix))
	}
	if _, err := s3.New(c.s3(clock.New().Wall)); err != nil {
		errs = append(errs, fmt.Errorf("%sS3_ENDPOINT, S3_REGION, S3_BUCKET, S3_PREFIX, S3_KEY_ID, S3_SECRET: %w", prefix, err))
	}
	return errs
}

func (c *Config) s3(wall func() time.Time) s3.Config {
	path := c.S3PathStyle == "on"
	if u, err := url.Parse(c.S3Endpoint); c.S3PathStyle == "auto" && err == nil {
		_, notName := netip.ParseAddr(u.Hostname())
		path = notName == nil || loopback(u.Hostname())
	}
	return s3.Config{
		Endpoint: c.S3Endpoint, Region: c.S3Region, Bucket: c.S3Bucket, Prefix: c.S3Prefix, KeyID: c.S3KeyID, Secret: c.S3Secret,
		PathStyle: path, Wall: wall,
	}
}

// openStore opens the store of the volumes and holds that they are there.
func (a *App) openStore(ctx context.Context) (objectStore, error) {
	if a.config.S3Endpoint == "" {
		return a.openFolder(ctx)
	}
	s, err := s3.New(a.config.s3(a.clock.Wall))
	if err != nil {
		return nil, err
	}
	a.bucket, a.blobs = s, s.Path
	last, ok, err := volume.FindPlace(ctx, a.pool)
	if err != nil {
		return nil, err
	}
	if !ok || last.Name != s.Place() {
		a.probed = true
		return s, a.probe(ctx)
	}
	var known s3.Features
	if err := json.Unmarshal(last.Features, &known); err != nil {
		return nil, fmt.Errorf("read what %s enforces: %w", s.Place(), err)
	}
	s.Use(known)
	return s, nil
}

// grantPurpose is what the folder's grants are signed for.
const grantPurpose = "volume store grants"

func (a *App) openFolder(ctx context.Context) (objectStore, error) {
	folder := filepath.Join(a.config.StateDir, "blobs")
	if u, err := url.Parse(a.config.BlobURL); err == nil && u.Scheme == "file" {
		folder = u.Path
	}
	s, err := dir.New(folder, a.ring.Derived(grantPurpose)[0], a.clock.Wall)
	if err != nil {
		return nil, err
	}
	a.ring.OnUse(func() { s.Use(a.ring.Derived(grantPurpose)) })
	a.objects, a.blobs = s.Handler(), s.Path
	return s, a.movedTo(ctx, s, "folder "+s.Path(""), struct{}{})
}

// movedTo records where the volumes lie. A place that was not in use so far
// must have them: copy the objects there first.
func (a *App) movedTo(ctx context.Context, s blob.Store, place string, features any) error {
	last, ok, err := volume.FindPlace(ctx, a.pool)
	if err != nil {
		return err
	}
	if ok && last.Name != place {
		err := volume.CheckPlace(ctx, a.pool, s)
		if errors.Is(err, volume.ErrElsewhere) {
			return fmt.Errorf("the volumes lie in %q and the settings say %q: copy all objects below v/ and staging/ there, or set it back: %w", last.Name, place, err)
		}
		if err != nil {
			return err
		}
	}
	text, err := json.Marshal(features)
	if err != nil {
		return err
	}
	return volume.KeepPlace(ctx, a.pool, volume.Place{Name: place, Features: text, ProbedAt: a.clock.Wall()})
}

// probe looks what the object store enforces, and goes by that. A node does not
// start with one that is unsafe, nor with an unknown one that does not answer.
func (a *App) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	found, err := a.bucket.Probe(ctx, id.Token())
	if err != nil {
		return fmt.Errorf("look at the object store: %w", err)
	}
	a.bucket.Use(found)
	a.logger.InfoContext(ctx, "the object store was looked at", "place", a.bucket.Place(),
		"refuses_overwriting", found.Conditional, "checks_bytes", found.Checksum, "keeps_versions", found.Versions)
	if !found.Checksum {
		a.logger.WarnContext(ctx, "the object store takes other bytes than a grant names: commits read back what pods upload")
	}
	return a.movedTo(ctx, a.bucket, a.bucket.Place(), found)
}

// probeAgain looks again when a node starts to serve. A store that was in use
// already may be away: pods sync when it is back.
func (a *App) probeAgain(ctx context.Context) error {
	if a.bucket == nil || a.probed {
		return nil
	}
	err := a.probe(ctx)
	if errors.Is(err, blob.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		a.logger.WarnContext(ctx, "the object store does not answer; it is taken for what it was", "err", err)
		return nil
	}
	return err
}

// unchecked says that the store does not hold uploads against their checksums.
func (a *App) unchecked() bool { return a.bucket != nil && !a.bucket.Features().Checksum }

// storeAddress is where the object store is, empty for the folder.
func (a *App) storeAddress() string {
	if a.bucket == nil {
		return ""
	}
	return a.bucket.Address()
}
