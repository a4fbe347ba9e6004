package auth

import "strings"

// agentNames are looked for in this order: most browsers also claim to be
// others.
var agentNames = []struct{ mark, name string }{
	{"Edg/", "Edge"},
	{"EdgA/", "Edge"},
	{"OPR/", "Opera"},
	{"SamsungBrowser/", "Samsung Internet"},
	{"Firefox/", "Firefox"},
	{"FxiOS/", "Firefox"},
	{"CriOS/", "Chrome"},
	{"Chrome/", "Chrome"},
	{"Chromium/", "Chromium"},
	{"Safari/", "Safari"},
	{"curl/", "curl"},
}

var systemNames = []struct{ mark, name string }{
	{"iPhone", "iPhone"},
	{"iPad", "iPad"},
	{"Android", "Android"},
	{"CrOS", "ChromeOS"},
	{"Windows", "Windows"},
	{"Macintosh", "macOS"},
	{"Linux", "Linux"},
}

// DescribeAgent names the browser of a User-Agent header for people, such as
// "Firefox on Linux". It repeats nothing of the header itself.
func DescribeAgent(userAgent string) string {
	browser, system := "a browser", ""
	for _, a := range agentNames {
		if strings.Contains(userAgent, a.mark) {
			browser = a.name
			break
		}
	}
	for _, s := range systemNames {
		if strings.Contains(userAgent, s.mark) {
			system = " on " + s.name
			break
		}
	}
	return browser + system
}
