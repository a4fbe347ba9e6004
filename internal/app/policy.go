package app

import (
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strings"
)

// inline are the scripts and style sheets that stand in a document itself, as
// sources of its Content-Security-Policy: exactly these bytes and no others.
type inline struct{ scripts, styles []string }

// The build writes the elements of its own without attributes (web/scripts/finish.mjs).
var (
	scriptRe = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	styleRe  = regexp.MustCompile(`(?s)<style>(.*?)</style>`)
)

// inlineOf finds what stands in a document of the build. It is never asked
// about one that holds anybody's text.
func inlineOf(html string) inline {
	return inline{scripts: hashes(scriptRe, html), styles: hashes(styleRe, html)}
}

func hashes(element *regexp.Regexp, html string) []string {
	var list []string
	for _, found := range element.FindAllStringSubmatch(html, -1) {
		sum := sha256.Sum256([]byte(found[1]))
		list = append(list, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	return list
}

// contentPolicy is the Content-Security-Policy of a document: nothing from
// anywhere else, and of what stands in the document itself only what the build
// put there.
func contentPolicy(c Config, own inline) string {
	sources := func(name string, more ...string) string {
		return strings.Join(append([]string{name, "'self'"}, more...), " ")
	}
	connect := sources("connect-src")
	if c.APIURL != "" {
		connect = sources("connect-src", c.APIURL)
	}
	return strings.Join([]string{
		sources("default-src"), sources("script-src", own.scripts...), sources("style-src", own.styles...),
		sources("img-src", "data:"), sources("font-src"), sources("media-src"), connect,
		"object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'", sources("form-action"),
	}, "; ")
}
