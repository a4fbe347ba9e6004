// Package place reads where a cloud's data centre stands: whatever a cloud
// writes becomes an ISO 3166-1 alpha-2 code, or nothing at all; a place that is
// not understood is never guessed.
package place

import (
	"slices"
	"strings"
)

// codes are all of ISO 3166-1 alpha-2.
const codes = "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ " +
	"CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR " +
	"GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP " +
	"KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ " +
	"NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW " +
	"SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ " +
	"UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW"

var known = strings.Fields(codes)

// names are how clouds spell countries, in lower case.
var names = map[string]string{
	"usa": "US", "united states": "US", "united states of america": "US", "america": "US", "canada": "CA", "mexico": "MX", "brazil": "BR",
	"chile": "CL", "argentina": "AR", "colombia": "CO", "uk": "GB", "united kingdom": "GB", "great britain": "GB", "england": "GB",
	"scotland": "GB", "ireland": "IE", "france": "FR", "germany": "DE", "netherlands": "NL", "the netherlands": "NL", "holland": "NL",
	"belgium": "BE", "luxembourg": "LU", "switzerland": "CH", "austria": "AT", "italy": "IT", "spain": "ES", "portugal": "PT",
	"norway": "NO", "sweden": "SE", "finland": "FI", "denmark": "DK", "iceland": "IS", "estonia": "EE", "latvia": "LV", "lithuania": "LT",
	"poland": "PL", "czechia": "CZ", "czech republic": "CZ", "slovakia": "SK", "slovenia": "SI", "hungary": "HU", "romania": "RO",
	"bulgaria": "BG", "greece": "GR", "croatia": "HR", "serbia": "RS", "ukraine": "UA", "moldova": "MD", "turkey": "TR", "turkiye": "TR",
	"israel": "IL", "united arab emirates": "AE", "uae": "AE", "saudi arabia": "SA", "qatar": "QA", "india": "IN", "singapore": "SG",
	"malaysia": "MY", "indonesia": "ID", "thailand": "TH", "vietnam": "VN", "viet nam": "VN", "philippines": "PH", "japan": "JP",
	"south korea": "KR", "korea": "KR", "republic of korea": "KR", "taiwan": "TW", "hong kong": "HK", "china": "CN", "australia": "AU",
	"new zealand": "NZ", "south africa": "ZA", "kenya": "KE", "nigeria": "NG", "egypt": "EG", "morocco": "MA", "kazakhstan": "KZ",
	"armenia": "AM",
}

// Country returns the code of a country by its code, in either case, or by its
// English name.
func Country(name string) (string, bool) {
	name = strings.TrimSpace(name)
	if code := strings.ToUpper(name); slices.Contains(known, code) {
		return code, true
	}
	code, ok := names[strings.ToLower(name)]
	return code, ok
}

// First returns the country that a text between commas begins with: "US,
// Wichita, KS". Other parts are not looked at: CA may be California.
func First(text string) (string, bool) {
	part, _, _ := strings.Cut(text, ",")
	return Country(part)
}

// Last returns the country that a text between commas ends with: "Texas, US".
func Last(text string) (string, bool) { return Country(text[strings.LastIndexByte(text, ',')+1:]) }

// wide are first words of regions that name a part of the world, though they
// are some country's code, too.
var wide = []string{"af", "as", "me", "na", "sa"}

// Region returns the country that a region's own name holds as one of its
// words: "canada-1", "eu-norway-2", "us-east-1".
func Region(region string) (string, bool) {
	words := strings.FieldsFunc(region, func(r rune) bool { return r == '-' || r == '_' || r == '.' || r == ' ' })
	for _, w := range words {
		if code, ok := names[strings.ToLower(w)]; ok {
			return code, true
		}
	}
	if len(words) > 1 && len(words[0]) == 2 && !slices.Contains(wide, strings.ToLower(words[0])) {
		return Country(words[0])
	}
	return "", false
}
