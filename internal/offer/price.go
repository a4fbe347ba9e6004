package offer

import (
	"fmt"
	"strings"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
)

const (
	defaultMarkup  = 1300 // thousandths of the upstream's price
	maxMarkup      = 10_000
	proNum, proDen = 84, 100
)

// listPrice is what a team without a plan pays for what costs us upstream:
// upstream x markup, rounded up to the cent, exactly.
func listPrice(upstream money.Rate, markupPermille int64) money.Rate {
	const step = 1000 * int64(money.Cent)
	product := int64(upstream) * markupPermille
	return money.Rate((product + step - 1) / step * int64(money.Cent))
}

// PlanPrice is what a team of that plan pays where the list says list.
func PlanPrice(list money.Rate, plan team.Plan) money.Rate {
	if plan == team.Pro {
		return list.Scale(proNum, proDen)
	}
	return list
}

// dollars writes a rate for people: at least two decimals, at most six, exact.
func dollars(r money.Rate) string {
	s := r.Decimal()
	whole, frac, _ := strings.Cut(s, ".")
	for len(frac) < 2 {
		frac += "0"
	}
	return fmt.Sprintf("$%s.%s", whole, frac)
}
