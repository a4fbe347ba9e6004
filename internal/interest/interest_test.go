package interest_test

import (
	"errors"
	"sync"
	"testing"

	"homeport.dev/homeport/internal/audit"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/interest"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
)

func newService(t *testing.T) *interest.Service {
	t.Helper()
	return interest.New(interest.Deps{Pool: pgtest.New(t), Clock: clock.Fixed(teamtest.Start).Clock})
}

func find(t *testing.T, s *interest.Service, scope team.Scope, product interest.Product) bool {
	t.Helper()
	waits, err := s.Find(t.Context(), scope, product)
	if err != nil {
		t.Fatal(err)
	}
	return waits
}

// Any member says and withdraws it, for the whole team and for one product.
func TestAnyMemberSetsAndWithdraws(t *testing.T) {
	t.Parallel()
	s := newService(t)
	admin := teamtest.Admin(t, s.Pool, team.Pro)
	viewer := teamtest.Join(t, s.Pool, admin.TeamID(), team.Viewer)
	other := teamtest.Admin(t, s.Pool, team.Pro)
	for _, step := range []struct {
		by          team.Scope
		waits, want bool
	}{{viewer, true, true}, {admin, true, true}, {admin, false, false}, {viewer, false, false}, {admin, true, true}} {
		got, err := s.Set(t.Context(), step.by, interest.BatchInference, step.waits, idem.Request{})
		if err != nil || got != step.want || find(t, s, viewer, interest.BatchInference) != step.want {
			t.Fatalf("after %t: %t, %v", step.waits, got, err)
		}
	}
	if find(t, s, admin, interest.MultiNodeClusters) || find(t, s, other, interest.BatchInference) {
		t.Error("another product or team waits too")
	}
	log, err := audit.List(t.Context(), s.Pool, admin.TeamID(), 10)
	if err != nil || len(log) != 3 {
		t.Errorf("%d acts are logged, want the 3 that changed something; %v", len(log), err)
	}
}

func TestOtherProductsAreRefused(t *testing.T) {
	t.Parallel()
	s := newService(t)
	admin := teamtest.Admin(t, s.Pool, team.Pro)
	for _, product := range []interest.Product{"", "batch", "Batch-Inference"} {
		if _, err := s.Find(t.Context(), admin, product); !errors.Is(err, interest.ErrProduct) {
			t.Errorf("find %q: %v", product, err)
		}
		if _, err := s.Set(t.Context(), admin, product, true, idem.Request{}); !errors.Is(err, interest.ErrProduct) {
			t.Errorf("set %q: %v", product, err)
		}
	}
	if _, err := s.Set(t.Context(), team.Scope{}, interest.BatchInference, true, idem.Request{}); !errors.Is(err, team.ErrForbidden) {
		t.Errorf("without a scope: %v", err)
	}
}

// However many say it at once, it is there once; who was removed meanwhile
// says nothing.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	s := newService(t)
	admin := teamtest.Admin(t, s.Pool, team.Pro)
	gone := teamtest.Join(t, s.Pool, admin.TeamID(), team.Member)
	if _, err := s.Pool.Exec(t.Context(), `delete from membership where user_id = $1`, gone.UserID()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Set(t.Context(), gone, interest.BatchInference, true, idem.Request{}); !errors.Is(err, team.ErrNotFound) {
		t.Errorf("who was removed: %v", err)
	}
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			if _, err := s.Set(t.Context(), admin, interest.BatchInference, true, idem.Request{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var rows int
	if err := s.Pool.QueryRow(t.Context(), `select count(*) from product_interest`).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows, %v", rows, err)
	}
}
