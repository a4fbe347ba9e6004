package offer

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
)

func TestPrices(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		upstream, list, pro money.Rate
		shown               string
	}{
		{1_000_000, 1_300_000, 1_092_000, "$1.30"},
		{1, 10_000, 8_400, "$0.01"},
		{7_692, 10_000, 8_400, "$0.01"},                // 0.0099996
		{7_693, 20_000, 16_800, "$0.02"},               // 0.0100009: any excess rounds up
		{2_490_000, 3_240_000, 2_721_600, "$3.24"},     // 3.237
		{14_320_000, 18_620_000, 15_640_800, "$18.62"}, // 18.616
		{200_000_000, 260_000_000, 218_400_000, "$260.00"},
	} {
		list := listPrice(tt.upstream, 1300)
		if list != tt.list || PlanPrice(list, team.Hobby) != tt.list || PlanPrice(list, "") != tt.list || PlanPrice(list, team.Free) != tt.list {
			t.Errorf("upstream %d: list %d, want %d", tt.upstream, list, tt.list)
		}
		if pro := PlanPrice(list, team.Pro); pro != tt.pro {
			t.Errorf("upstream %d: pro %d, want %d", tt.upstream, pro, tt.pro)
		}
		if dollars(list) != tt.shown {
			t.Errorf("upstream %d: shown as %s, want %s", tt.upstream, dollars(list), tt.shown)
		}
	}
	for rate, want := range map[money.Rate]string{2_721_600: "$2.7216", 0: "$0.00", 2_500_000: "$2.50", 1: "$0.000001"} {
		if got := dollars(rate); got != want {
			t.Errorf("%d is shown as %s, want %s", rate, got, want)
		}
	}
}

// No markup that New accepts sells below cost, and a list price is the least
// whole cent that is not below upstream x markup.
func TestNobodyPaysLessThanUpstream(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		markup := rapid.Int64Range(1191, maxMarkup).Draw(t, "markup")
		upstream := money.Rate(rapid.Int64Range(1, int64(money.MaxRate)).Draw(t, "upstream"))
		list := listPrice(upstream, markup)
		if pro := PlanPrice(list, team.Pro); pro < upstream {
			t.Fatalf("pro pays %d for %d", pro, upstream)
		}
		exact := new(big.Rat).Mul(big.NewRat(int64(upstream), 1), big.NewRat(markup, 1000))
		if new(big.Rat).SetInt64(int64(list)).Cmp(exact) < 0 || new(big.Rat).SetInt64(int64(list-10_000)).Cmp(exact) >= 0 || list%10_000 != 0 {
			t.Fatalf("list price %d of %s", list, exact.FloatString(6))
		}
	})
}

func TestMarkupBelowCostIsRefused(t *testing.T) {
	t.Parallel()
	for markup, ok := range map[int64]bool{0: true, 1300: true, 1191: true, 1190: false, 1000: false, -1: false, 10_001: false} {
		if _, err := New(Deps{MarkupPermille: markup}); (err == nil) != ok {
			t.Errorf("markup %d: %v", markup, err)
		}
	}
}

func TestDiskNeeded(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]int{
		0: 10, 4_999_999: 10, 5_000_000: 11, 1_000_000_000: 12, 20_000_000_000: 31, 100_000_000_000: 115, 500_000_000_000: 535,
	} {
		if got := diskNeeded(bytes); got != want {
			t.Errorf("%d bytes need %d GB, want %d", bytes, got, want)
		}
	}
}
