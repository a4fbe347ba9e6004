package money_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"homeport.dev/homeport/internal/money"
)

func TestParseIsExactOrRefuses(t *testing.T) {
	good := map[string]money.USD{
		"0": 0, "25": 25_000_000, "12.34": 12_340_000, "0.000001": 1, "-1.5": -1_500_000, "1e2": 100_000_000, "1.000000000": 1_000_000,
	}
	for in, want := range good {
		got, err := money.Parse(in)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "x", "1/2", "0.0000001", "1e30", "1e99999999", "0x10", "NaN", "Inf", "99999999999999999999", " 1"} {
		if got, err := money.Parse(in); err == nil {
			t.Errorf("Parse(%q) = %d, want an error", in, got)
		}
	}
}

func TestPricesOfOthersAreReadInFull(t *testing.T) {
	good := map[string]money.USD{
		"0": 0, "2.7068": 2_706_800, "1.6567999999999998": 1_656_800, "2.4068000000000001": 2_406_801, "1e-7": 1, "0.0000001": 1,
		"-0.0000001": 0, "-1.0000009": -1_000_000, "9223372036854.775807": 1<<63 - 1,
	}
	for in, want := range good {
		got, err := money.ParseUp(in)
		if err != nil || got != want {
			t.Errorf("ParseUp(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for in, want := range map[string]money.USD{"0.8008281904610115": 800_828, "-0.0000001": -1, "25": 25_000_000, "1e-7": 0} {
		got, err := money.ParseDown(in)
		if err != nil || got != want {
			t.Errorf("ParseDown(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "x", "1/2", "NaN", "1e30", "9223372036854.775808"} {
		if got, err := money.ParseDown(in); err == nil {
			t.Errorf("ParseDown(%q) = %d, want an error", in, got)
		}
	}
	for _, in := range []string{"", "x", "1/2", "NaN", "1e30", "9223372036854.7758071"} {
		if got, err := money.ParseUp(in); err == nil {
			t.Errorf("ParseUp(%q) = %d, want an error", in, got)
		}
	}
}

func TestDecimalReadsBackEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := money.USD(rapid.Int64().Draw(t, "usd"))
		got, err := money.Parse(u.Decimal())
		if err != nil || got != u {
			t.Fatalf("%d wrote %q and read %d, %v", u, u.Decimal(), got, err)
		}
	})
}

func TestCostIsTheFloorOfTheExactProduct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(0, int64(money.MaxRate)).Draw(t, "rate")
		from := rapid.Int64Range(0, 1<<52).Draw(t, "from")
		to := from + rapid.Int64Range(-10, 1<<51).Draw(t, "elapsed")
		want := new(big.Int)
		if to > from {
			want.Mul(big.NewInt(rate), big.NewInt(to-from))
			want.Div(want, big.NewInt(money.MicrosPerHour))
		}
		if got := money.Cost(money.Rate(rate), from, to); big.NewInt(int64(got)).Cmp(want) != 0 {
			t.Fatalf("Cost(%d, %d, %d) = %d, want %s", rate, from, to, got, want)
		}
	})
}

func TestRatesRoundAsTheRulesSay(t *testing.T) {
	if got := money.Rate(2_500_001).CentsUp(); got != 2_510_000 {
		t.Errorf("CentsUp = %d", got)
	}
	if got := money.Rate(2_510_000).CentsUp(); got != 2_510_000 {
		t.Errorf("CentsUp of a whole cent = %d", got)
	}
	if got := money.Rate(2_490_000).Scale(84, 100); got != 2_091_600 {
		t.Errorf("Pro price = %d", got)
	}
}
