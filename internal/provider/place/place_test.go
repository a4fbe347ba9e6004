package place_test

import (
	"testing"

	"homeport.dev/homeport/internal/provider/place"
)

func TestPlacesAreCountriesOrNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		read func(string) (string, bool)
		text string
		want string // "" = not understood
	}{
		{place.Country, "us", "US"},
		{place.Country, " United States ", "US"},
		{place.Country, "UK", "GB"},
		{place.Country, "EU", ""},
		{place.Country, "", ""},
		{place.Country, "KS", ""},
		{place.Country, "Atlantis", ""},
		{place.First, "US, Wichita, KS", "US"},
		{place.First, "Canada, Montreal", "CA"},
		{place.First, "San Jose, CA, US", ""}, // and not Canada
		{place.First, "Toronto, Canana", ""},
		{place.Last, "Texas, US", "US"},
		{place.Last, "California, USA", "US"},
		{place.Last, "Sweden", "SE"},
		{place.Last, "somewhere, ", ""},
		{place.Region, "canada-1", "CA"},
		{place.Region, "eu-norway-2", "NO"},
		{place.Region, "desmoines-usa-1", "US"},
		{place.Region, "us-central-1", "US"},
		{place.Region, "us_east_1", "US"},
		{place.Region, "me-west-1", ""}, // the Middle East, and not Montenegro
		{place.Region, "sa-east-1", ""}, // South America, and not Saudi Arabia
		{place.Region, "eu-west-3", ""},
		{place.Region, "in", ""},
		{place.Region, "", ""},
	} {
		got, ok := c.read(c.text)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%q is %q, %t, want %q", c.text, got, ok, c.want)
		}
	}
}
