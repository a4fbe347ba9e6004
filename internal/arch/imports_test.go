package arch

import (
	"slices"
	"strings"
	"testing"
)

// Words of the table that stand for many packages.
var groups = map[string]string{
	"base":   "fault fail money id clock pg job blob mail idem seal",
	"domain": "team audit auth sshkey interest wallet notice snapshot volume provider offer pod meter payment statement operator",
}

// may lists, for each package, the packages of this module it may import. Not
// listed is forbidden; tests are free. The table of the style guide is the law,
// this is its form for machines.
var may = map[string]string{
	// Base: knows nothing of the product.
	"fault": "", "money": "", "id": "", "clock": "", "agentapi": "", "apitype": "",
	"job": "", "fail": "", "seal": "", "arch": "", "sha256x16": "",
	"pg":           "fault",
	"blob":         "fault",
	"mail":         "fault",
	"dns":          "fault clock",
	"blob/dir":     "blob fault clock",
	"blob/s3":      "blob fault clock",
	"mail/mailbox": "mail pg clock id fault",
	"idem":         "base",
	"audit":        "base",
	"masterkey":    "base",

	// Domain: holds the rules.
	"team":               "base audit",
	"auth":               "base team audit",
	"sshkey":             "base team audit",
	"interest":           "base team audit",
	"wallet":             "base team",
	"snapshot":           "fault blob sha256x16",
	"volume":             "base team wallet snapshot agentapi", // agentapi: it answers the agent's volume calls
	"provider":           "fault money",
	"offer":              "base team provider",
	"pod":                "base team wallet offer provider provider/gpu volume sshkey dns agentapi",
	"notice":             "base team wallet",
	"meter":              "base team wallet notice pod volume",
	"payment":            "base team wallet audit",           // who agreed to automatic payments is on record
	"payment/stripe":     "payment wallet fault money clock", // wallet: the contract names wallet.Source
	"payment/testpay":    "base payment wallet",
	"statement":          "base team wallet pod volume",
	"operator":           "base team wallet offer pod volume payment",
	"provider/gpu":       "",
	"provider/place":     "",
	"provider/bootstrap": "provider fault",
	"provider/cloudapi":  providerRow,
	"provider/ratelimit": "base provider provider/cloudapi",
	"provider/sandbox":   providerRow + " agentapi",
	"provider/docker":    providerRow + " provider/gpu provider/place provider/bootstrap",
	"provider/prime":     cloudRow,
	"provider/shadeform": cloudRow, "provider/runpod": cloudRow,
	"provider/lambda": cloudRow, "provider/vast": cloudRow,
	"provider/verda": cloudRow, "provider/hyperstack": cloudRow,

	// In the pod.
	"agent":       "fault clock agentapi snapshot blob",
	"sandboxinit": "fault agentapi",

	// Edge: speaks a protocol and decides nothing.
	"api":       "domain fault money clock id apitype idem", // idem: the type of a key, never its table
	"agentedge": "agentapi pod volume blob fault clock",
	"webhook":   "payment fault clock",
	"devdoor":   "mail/mailbox payment/testpay provider/sandbox fault clock apitype",
	"gotrue":    "auth fault clock id",
	"queue":     "job pg fault domain",
	"apiclient": "apitype fault",
	"app":       everything,

	"cmd/homeport":       "app apiclient apitype fault",
	"cmd/homeport-agent": "agent sandboxinit agentapi fault",
	"web":                "",

	// Only tests import these.
	"bintest":                         "",
	"pg/pgtest":                       "pg",
	"blob/blobtest":                   "blob fault",
	"dns/dnstest":                     "",
	"provider/providertest":           "provider fault money clock id",
	"provider/providertest/cloudtest": "clock id",
	"provider/docker/dockertest":      "id",
	"provider/providertest/boottest":  "agentedge provider provider/providertest provider/providertest/cloudtest",
	"team/teamtest":                   "base team",

	// The doubles of the clouds.
	"provider/shadeform/shadeformtest": doubleRow, "provider/runpod/runpodtest": doubleRow,
	"provider/lambda/lambdatest": doubleRow, "provider/vast/vasttest": doubleRow, "provider/prime/primetest": doubleRow,
	"provider/verda/verdatest": doubleRow, "provider/hyperstack/hyperstacktest": doubleRow,

	"sim": everything,
}

const (
	providerRow = "provider fault money clock id"
	cloudRow    = providerRow + " provider/cloudapi provider/gpu provider/place provider/bootstrap"
	doubleRow   = "id money provider/providertest/cloudtest"
	everything  = "everything"
)

// planned are rows whose package is not written yet. It leaves this list when
// it appears.
var planned = []string{
	"sim",
}

// onlyImportedBy limits who may import a package beyond the table.
var onlyImportedBy = map[string]string{"app": "cmd/homeport"}

func TestImports(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range sources(t, func(s source) bool { return !s.test }) {
		seen[s.pkg] = true
		if _, ok := may[s.pkg]; !ok {
			t.Errorf("%s: package %s has no row in the import table: give it one, here and in the style guide", s.path, s.pkg)
			continue
		}
		for _, spec := range s.file.Imports {
			dep, ours := shortName(unquote(spec.Path.Value))
			switch {
			case !ours:
			case isSupport(dep) && !s.support():
				t.Errorf("%s: %s is for tests only", s.at(spec), dep)
			case !mayImport(s.pkg, dep):
				t.Errorf("%s: %s must not import %s", s.at(spec), s.pkg, dep)
			case onlyImportedBy[dep] != "" && onlyImportedBy[dep] != s.pkg:
				t.Errorf("%s: only %s may import %s", s.at(spec), onlyImportedBy[dep], dep)
			}
		}
	}
	for pkg := range may {
		switch {
		case seen[pkg] && slices.Contains(planned, pkg):
			t.Errorf("package %s is here: take it out of planned", pkg)
		case !seen[pkg] && !slices.Contains(planned, pkg):
			t.Errorf("the import table has a row for %s, which does not exist", pkg)
		}
	}
	for _, pkg := range planned {
		if _, ok := may[pkg]; !ok {
			t.Errorf("planned names %s, which has no row", pkg)
		}
	}
}

func mayImport(pkg, dep string) bool {
	for word := range strings.FieldsSeq(may[pkg]) {
		if word == dep || word == everything && dep != "app" || slices.Contains(strings.Fields(groups[word]), dep) {
			return true
		}
	}
	return false
}

// TestImportTableHasNoCircle makes sure that the table itself could be obeyed.
func TestImportTableHasNoCircle(t *testing.T) {
	t.Parallel()
	const open, closed = 1, 2
	state := map[string]int{}
	var visit func(pkg string, way []string)
	visit = func(pkg string, way []string) {
		switch {
		case state[pkg] == open:
			t.Errorf("the import table allows a circle: %s", strings.Join(append(way, pkg), " → "))
			return
		case state[pkg] == closed || may[pkg] == everything:
			return
		}
		state[pkg] = open
		for word := range strings.FieldsSeq(may[pkg]) {
			deps := []string{word}
			if g, ok := groups[word]; ok {
				deps = strings.Fields(g)
			}
			for _, dep := range deps {
				if amongBase := word == "base" && slices.Contains(strings.Fields(groups["base"]), pkg); dep != pkg && !amongBase {
					visit(dep, append(way, pkg))
				}
			}
		}
		state[pkg] = closed
	}
	for pkg := range may {
		visit(pkg, nil)
	}
}
