package prime_test

import (
	"testing"

	"homeport.dev/homeport/internal/money"
)

// What is left is read exactly, rounded down, and in USD only; what is not said
// is not guessed.
func TestBalanceIsWhatIsLeft(t *testing.T) {
	t.Parallel()
	c, double := fresh(t)
	for fault, want := range map[string]money.USD{"": 87_123_456, "debt": -2_000_001} {
		if fault != "" {
			double.Inject(t, "balance", fault, 1)
		}
		if got, err := c.Balance(t.Context()); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", fault, got, err, want)
		}
	}
	for _, fault := range []string{"euro", "none", "error"} {
		double.Inject(t, "balance", fault, 1)
		if got, err := c.Balance(t.Context()); err == nil {
			t.Errorf("%s: %d", fault, got)
		}
	}
}
