// Package money holds amounts of US dollars as whole micro-dollars and prices
// as whole micro-dollars per hour. Nothing in it is ever a float.
package money

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// USD is an amount in micro-dollars: 1 USD = 1,000,000.
type USD int64

// Rate is a price in micro-dollars per hour.
type Rate int64

// Dollar and Cent are one of each in micro-dollars.
const (
	Dollar USD = 1_000_000
	Cent   USD = 10_000
)

// MaxRate is the largest rate a segment may have: 2,500 USD per hour. It keeps
// every intermediate product of Cost inside 64 bits.
const MaxRate Rate = 2_500_000_000

// MicrosPerHour is the number of microseconds in an hour.
const MicrosPerHour = 3_600_000_000

// ErrSyntax is returned by Parse for text that is not a decimal of at most six
// places within 64 bits.
var ErrSyntax = errors.New("money: not a decimal number of at most 6 places")

// Parse reads a JSON number or plain decimal such as "12.34" exactly. Digits
// beyond the sixth place must be zero. Exponents are read as JSON allows them.
func Parse(s string) (USD, error) {
	micros, err := parse(s)
	if err != nil || !micros.IsInt() || !micros.Num().IsInt64() {
		return 0, ErrSyntax
	}
	return USD(micros.Num().Int64()), nil
}

// ParseUp reads what Parse reads, of any number of places: part of a
// micro-dollar counts as one. It is for prices that others computed by floats,
// such as 1.6567999999999998, which are paid in full.
func ParseUp(s string) (USD, error) {
	micros, err := parse(s)
	if err != nil {
		return 0, err
	}
	up := new(big.Int).Sub(micros.Denom(), big.NewInt(1))
	up.Add(up, micros.Num()).Div(up, micros.Denom())
	if !up.IsInt64() {
		return 0, ErrSyntax
	}
	return USD(up.Int64()), nil
}

// ParseDown reads what ParseUp reads; part of a micro-dollar does not count. It
// is for what others say that we have.
func ParseDown(s string) (USD, error) {
	micros, err := parse(s)
	if err != nil {
		return 0, err
	}
	down := new(big.Int).Div(micros.Num(), micros.Denom())
	if !down.IsInt64() {
		return 0, ErrSyntax
	}
	return USD(down.Int64()), nil
}

// parse reads a decimal as micro-dollars.
func parse(s string) (*big.Rat, error) {
	if s == "" || len(s) > 40 || strings.ContainsAny(s, "/_xXpPbBoO ") {
		return nil, ErrSyntax
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 && len(s)-i > 4 {
		return nil, ErrSyntax
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil, ErrSyntax
	}
	return r.Mul(r, big.NewRat(int64(Dollar), 1)), nil
}

// Decimal writes the amount as an exact decimal literal without trailing
// zeros: 1.5, -0.000001, 25.
func (u USD) Decimal() string { return decimal(int64(u)) }

// Decimal writes the rate in dollars per hour as an exact decimal literal.
func (r Rate) Decimal() string { return decimal(int64(r)) }

func decimal(v int64) string {
	sign, abs := "", uint64(v)
	if v < 0 {
		sign, abs = "-", -uint64(v)
	}
	s := sign + strconv.FormatUint(abs/1e6, 10)
	if frac := abs % 1e6; frac != 0 { // with its zeros in front, behind a 1
		s += "." + strings.TrimRight(strconv.FormatUint(1e6+frac, 10)[1:], "0")
	}
	return s
}

// String writes the amount for people, to the cent, rounded towards zero: "$12.34".
func (u USD) String() string {
	sign, v := "", uint64(u)
	if u < 0 {
		sign, v = "-", -uint64(u)
	}
	return fmt.Sprintf("%s$%d.%02d", sign, v/1e6, v%1e6/1e4)
}

// Cost is the exact price of running at rate from one instant to another, both
// in microseconds since the epoch: floor(rate x elapsed / hour), never negative.
// It is the one place where time becomes money (server rule 33).
func Cost(rate Rate, fromMicros, toMicros int64) USD {
	if toMicros <= fromMicros || rate <= 0 {
		return 0
	}
	elapsed := toMicros - fromMicros
	hours, rest := elapsed/MicrosPerHour, elapsed%MicrosPerHour
	return USD(hours*int64(rate) + rest*int64(rate)/MicrosPerHour)
}

// CentsUp rounds the rate up to the next whole cent per hour.
func (r Rate) CentsUp() Rate {
	c := Rate(Cent)
	return (r + c - 1) / c * c
}

// Scale returns r x num / den rounded half up to one micro-dollar per hour.
// It panics on overflow or a zero denominator: both are programming errors.
func (r Rate) Scale(num, den int64) Rate {
	n := new(big.Int).Mul(big.NewInt(int64(r)), big.NewInt(num))
	n.Mul(n, big.NewInt(2)).Add(n, big.NewInt(den))
	n.Div(n, big.NewInt(2*den))
	if !n.IsInt64() || n.Int64() > math.MaxInt64/2 {
		panic("money: rate out of range")
	}
	return Rate(n.Int64())
}
