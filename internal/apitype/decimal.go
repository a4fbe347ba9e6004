// Package apitype holds the JSON bodies of the API exactly as clients read and
// write them. It knows no rules: the api package fills it from domain types.
package apitype

import (
	"errors"
	"strings"
)

// Decimal is a JSON number kept as its exact text, so that money never passes
// through a float. It is written with at most 6 decimals.
type Decimal string

// MarshalJSON writes the number's text; the empty Decimal is 0.
func (d Decimal) MarshalJSON() ([]byte, error) {
	if d == "" {
		return []byte("0"), nil
	}
	return []byte(d), nil
}

// UnmarshalJSON keeps the number's text. null leaves it empty.
func (d *Decimal) UnmarshalJSON(b []byte) error {
	s := string(b)
	if s == "null" {
		*d = ""
		return nil
	}
	if strings.HasPrefix(s, `"`) {
		return errors.New("expected number")
	}
	*d = Decimal(s)
	return nil
}
