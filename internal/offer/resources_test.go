package offer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/team"
)

func TestResourcesJSON(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.a.set(nil, h100(), h100(named("paid disk"), priced(2_490_000), func(o *provider.Offer) {
		o.DiskIncluded, o.DiskPrice, o.DataCenterID, o.IsSpot = false, 137, "", true
	}))
	m.refresh()
	list, tag, err := m.ResourcesJSON(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"H100_80GB":[` +
		`{"gpuType":"H100_80GB","gpuCount":1,"gpuMemory":80,"memory":200,"vcpu":24,"price":2.6,"listPrice":2.6,"socket":"SXM5","country":"US","provider":"aurora","cloudId":"h100-1","currency":"USD","defaultDiskSize":500,"diskPrice":null,"security":"secure_cloud","isSpot":false,"dataCenterId":"us-1","image":"ubuntu"},` +
		`{"gpuType":"H100_80GB","gpuCount":1,"gpuMemory":80,"memory":200,"vcpu":24,"price":3.24,"listPrice":3.24,"socket":"SXM5","country":"US","provider":"aurora","cloudId":"paid disk","currency":"USD","defaultDiskSize":500,"diskPrice":0.000137,"security":"secure_cloud","isSpot":true,"dataCenterId":null,"image":"ubuntu"}]}`
	if diff := cmp.Diff(want, string(list)); diff != "" {
		t.Error(diff)
	}
	pro, proTag, err := m.ResourcesJSON(t.Context(), team.Pro)
	if err != nil || proTag == tag || !strings.Contains(string(pro), `"price":2.7216,"listPrice":3.24`) {
		t.Errorf("pro: %s, tag %s, %v", pro, proTag, err)
	}
	m.clock.Advance(time.Minute)
	m.refresh()
	again, sameTag, err := m.ResourcesJSON(t.Context(), "")
	if err != nil || sameTag != tag || string(again) != want {
		t.Errorf("the tag changed without a change: %s to %s, %v", tag, sameTag, err)
	}
}

func TestEmptyCatalogueIsAnEmptyObject(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	body, _, err := m.ResourcesJSON(t.Context(), team.Hobby)
	if err != nil || string(body) != "{}" {
		t.Errorf("%s, %v", body, err)
	}
}

func BenchmarkResourcesJSON(b *testing.B) {
	a := &cloud{}
	for i := range 5000 {
		a.list = append(a.list, h100(named(fmt.Sprint(i)), priced(money.Rate(1_000_000+i*1000))))
	}
	s, err := offer.New(offer.Deps{Pool: pgtest.New(b), Clock: clock.New(), Adapters: map[string]provider.Adapter{"a": a}})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Refresh(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			body, _, err := s.ResourcesJSON(b.Context(), team.Pro)
			if err != nil || len(body) < 1_000_000 {
				b.Error(len(body), err)
			}
		}
	})
}
