package volume

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/snapshot"
)

// A Retention says which versions of a volume are kept besides the newest.
type Retention struct {
	Last  int // so many before the newest
	Hours int // the last one of each of so many hours
	Days  int // the last one of each of so many UTC days
}

// maxKept bounds each number of a Retention.
const maxKept = 1000

// ParseRetention reads "3,24,7": Last, Hours and Days.
func ParseRetention(text string) (Retention, error) {
	var n [3]int
	parts := strings.Split(text, ",")
	for i, part := range parts {
		v, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || v < 0 || v > maxKept || len(parts) != len(n) {
			return Retention{}, fmt.Errorf("%q is not three numbers up to %d such as 3,24,7", text, maxKept)
		}
		n[i] = v
	}
	return Retention{Last: n[0], Hours: n[1], Days: n[2]}, nil
}

// keep returns those of a volume's versions, newest first, that are kept, and
// those that are not.
func (r Retention) keep(versions []Version, now time.Time) (kept, expired []Version) {
	hours, days := map[int64]bool{}, map[int64]bool{}
	for i, v := range versions {
		stays := i <= r.Last
		for _, slot := range []struct {
			seen  map[int64]bool
			long  time.Duration
			count int
		}{{hours, time.Hour, r.Hours}, {days, 24 * time.Hour, r.Days}} {
			n := v.CreatedAt.Unix() / int64(slot.long/time.Second)
			if now.Sub(v.CreatedAt) < time.Duration(slot.count)*slot.long && !slot.seen[n] {
				slot.seen[n], stays = true, true
			}
		}
		if stays {
			kept = append(kept, v)
			continue
		}
		expired = append(expired, v)
	}
	return kept, expired
}

// A Kept is what a volume's collector must know of its versions.
type Kept struct {
	HeadSeq int64         // when this was read; 0: nothing is committed
	Roots   []snapshot.ID // root trees of the versions that are kept
	Expired []int64       // seq of those that nobody sees any more
	seqs    []int64       // of Roots: newest first
}

// Kept says which of a volume's snapshots are kept now. Who deletes what the
// others used marks from Roots, and then, in one transaction with the volume's
// row locked, looks that head_seq is still HeadSeq, deletes the rows of
// Expired, and condemns what nothing kept refers to: a version whose row is
// there can be restored, and is whole.
func (s *Service) Kept(ctx context.Context, volumeID uuid.UUID) (Kept, error) {
	all, err := listVersions(ctx, s.Pool, volumeID)
	if err != nil {
		return Kept{}, err
	}
	kept, expired := s.Retention.keep(all, s.Clock.Now())
	var k Kept
	for _, v := range kept {
		k.Roots, k.seqs = append(k.Roots, snapshot.ID(v.TreeID)), append(k.seqs, v.Seq)
		k.HeadSeq = max(k.HeadSeq, v.Seq)
	}
	for _, v := range expired {
		k.Expired = append(k.Expired, v.Seq)
	}
	return k, nil
}
