package volume_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/blob/blobtest"
	"homeport.dev/homeport/internal/blob/s3"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
)

// A current signer makes grants for a service that lives in the real time.
type current struct{ blob.Signer }

func (c current) Sign(ctx context.Context, a blob.Access) (blob.Grant, error) {
	a.Expires = clock.New().Wall().Add(10 * time.Minute)
	return c.Signer.Sign(ctx, a)
}

// newBucket makes a harbour whose objects lie in a bucket with versions.
func newBucket(t *testing.T) (*harbour, *blobtest.Server, *httptest.Server) {
	t.Helper()
	server := blobtest.NewServer(t, true)
	h := newHarbour(t)
	bucket, err := s3.New(s3.Config{
		Endpoint: server.Endpoint, Region: server.Region, Bucket: server.Bucket, KeyID: server.KeyID, Secret: server.Secret,
		PathStyle: true, Wall: clock.New().Wall,
	})
	h.must(err)
	found, err := bucket.Probe(t.Context(), "one")
	h.must(err)
	bucket.Use(found)
	h.Store, h.Signer = bucket, current{bucket}
	node := httptest.NewServer(http.NotFoundHandler()) // grants lead to the bucket
	t.Cleanup(node.Close)
	return h, server, node
}

// collected makes a volume from which a collection let go of objects that the
// rows of an earlier instant name: as those of a backup of the database do.
func (h *harbour) collected(t *testing.T, scope team.Scope, node *httptest.Server) (volumeID uuid.UUID, gone []string) {
	t.Helper()
	v := h.create(scope)
	w := h.writer(t, h.bootPod(scope, v.ID, node))
	w.write("stays", 1, 400<<10)
	w.write("goes", 2, 900<<10)
	w.save()
	h.must(os.Remove(filepath.Join(w.root, "goes")))
	w.save()
	backup := h.keysByRows(v.ID)
	h.release(w.Attachment)
	h.collectNow(v.ID)
	now := h.keysByRows(v.ID)
	gone = slices.DeleteFunc(backup, func(key string) bool { return slices.Contains(now, key) })
	if len(gone) < 3 {
		t.Fatalf("the collection replaced %v alone", gone)
	}
	return v.ID, gone
}

// A bucket with versions keeps for a backup of the database what collections
// delete, and nothing of a volume that is purged.
func TestWhatWasCollectedIsAmongTheBucketsVersions(t *testing.T) {
	t.Parallel()
	h, server, node := newBucket(t)
	scope := h.team(team.Pro)
	volumeID, gone := h.collected(t, scope, node)
	h.sweep()
	for _, key := range gone {
		if _, err := h.Store.Stat(t.Context(), key); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("%s: %v, want it deleted", key, err)
		}
		found := false
		for _, one := range server.Versions(key) {
			if !one.Mark {
				sum := sha256.Sum256(server.ReadVersion(one))
				found = hex.EncodeToString(sum[:]) == path.Base(key)
			}
		}
		if !found {
			t.Errorf("%s is in no version of the bucket", key)
		}
	}
	h.must(h.Delete(t.Context(), scope, volumeID))
	h.clock.Advance(volume.TrashFor)
	h.must(h.PurgeDue(t.Context()))
	if left := server.Versions(""); len(left) > 0 {
		t.Errorf("of the purged volume there is %v", left)
	}
}

// Without versions an operator says how long garbage stays.
func TestGarbageStaysAsLongAsItIsToBeKept(t *testing.T) {
	t.Parallel()
	h, store, node := newNode(t)
	h.KeepGarbage = 72 * time.Hour
	_, gone := h.collected(t, h.team(team.Pro), node)
	there := func() (n int) {
		for _, key := range gone {
			if _, err := store.Stat(t.Context(), key); err == nil {
				n++
			}
		}
		return n
	}
	h.clock.Advance(71 * time.Hour)
	h.must(h.SweepGarbage(t.Context()))
	if n := there(); n != len(gone) {
		t.Errorf("%d of %d objects are left before their time", n, len(gone))
	}
	h.clock.Advance(2 * time.Hour)
	h.must(h.SweepGarbage(t.Context()))
	if n := there(); n != 0 {
		t.Errorf("%d of %d objects are left after their time", n, len(gone))
	}
}

func TestGarbageIsKeptForADayAtLeast(t *testing.T) {
	t.Parallel()
	if d, err := volume.ParseKeepGarbage("720h"); err != nil || d != 30*24*time.Hour {
		t.Errorf("720h: %s, %v", d, err)
	}
	for _, text := range []string{"", "23h59m", "-48h", "30", "30d"} {
		if d, err := volume.ParseKeepGarbage(text); err == nil {
			t.Errorf("%q was taken for %s", text, d)
		}
	}
}
