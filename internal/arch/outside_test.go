package arch

import (
	"go/ast"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// An outsideRule says which packages may use what comes from outside.
type outsideRule struct {
	prefix string // of the import path
	only   string // the packages that may; "x/*" is all below x
	why    string
}

var outsideRules = []outsideRule{
	{
		"github.com/jackc/pgx", "pg pg/pgtest job idem audit masterkey mail/mailbox app queue payment/testpay team team/teamtest auth sshkey " +
			"interest wallet notice volume offer pod meter payment statement provider/ratelimit sim", "SQL lives in the domain, never in an edge",
	},
	{"github.com/riverqueue/river", "queue pg", "the domain knows job.Queue; pg runs its migrations"},
	{"github.com/stripe/stripe-go", "payment payment/*", "the rest speaks of checkouts and events"},
	{"github.com/danielgtaylor/huma", "api", "one edge speaks OpenAPI"},
	{"github.com/golang-jwt", "auth gotrue", "tokens are read in one place"},
	{"github.com/minio", "", "blob/s3 speaks to all services itself"},
	{"github.com/aws", "blob/s3 blob/blobtest", "the rest knows blob.Store"},
	{"github.com/wneessen/go-mail", "mail", "the rest knows mail's contract"},
	{"github.com/spf13/cobra", "cmd/homeport", "commands are parsed in one place"},
	{"github.com/gliderlabs/ssh", "agent", "pods are the only SSH servers"},
	{"github.com/creack/pty", "agent sandboxinit", "pods are the only terminals"},
	{"github.com/moby", "provider/docker provider/docker/dockertest", "one adapter speaks to the engine"},
	{
		"net/http", "blob blob/* provider/* payment/* api agentedge webhook devdoor gotrue apiclient app agent web sim cmd/*",
		"the domain does not know HTTP",
	},
	{"math/rand", "sim", "only the simulation rolls dice, from a seed"},
	{
		"testing", "pg/pgtest blob/blobtest dns/dnstest provider/providertest provider/providertest/* provider/docker/dockertest team/teamtest bintest sim " +
			"provider/shadeform/* provider/runpod/* provider/lambda/* provider/vast/* provider/prime/* provider/verda/* provider/hyperstack/*",
		"products do not test themselves",
	},
	{"github.com/google/go-cmp", "", "tests only"},
	{"github.com/getkin/kin-openapi", "provider/providertest/cloudtest", "doubles of clouds are held to published descriptions"},
	{"pgregory.net/rapid", "sim", "tests only"},
	{"github.com/emersion/go-smtp", "", "tests only"},
	{"github.com/anishathalye/porcupine", "sim", "tests only"},
	{"unsafe", "sandboxinit agent provider/sandbox", "only kernel calls need it"},
}

// bannedOutside may not be used even by tests.
var bannedOutside = map[string]string{
	"github.com/stretchr/testify": "testing and go-cmp are enough",
	"github.com/golang/mock":      "no mocks are generated",
	"go.uber.org/mock":            "no mocks are generated",
	"github.com/lib/pq":           "pgx is the driver",
	"database/sql":                "pgx is used directly",
	"log":                         "log/slog is the logger",
}

func TestOutsideModules(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, anything) {
		for _, spec := range s.file.Imports {
			imp := unquote(spec.Path.Value)
			for banned, why := range bannedOutside {
				if under(imp, banned) && imp != "log/slog" {
					t.Errorf("%s: %s is not used here: %s", s.at(spec), imp, why)
				}
			}
			for _, r := range outsideRules {
				if !s.test && under(imp, r.prefix) && imp != "net/http/httptest" && !listed(s.pkg, r.only) {
					t.Errorf("%s: %s must not import %s: %s", s.at(spec), s.pkg, imp, r.why)
				}
			}
		}
	}
}

func under(imp, prefix string) bool { return imp == prefix || strings.HasPrefix(imp, prefix+"/") }

func listed(pkg, list string) bool {
	for word := range strings.FieldsSeq(list) {
		if dir, below := strings.CutSuffix(word, "/*"); word == pkg || below && strings.HasPrefix(pkg, dir+"/") {
			return true
		}
	}
	return false
}

// TestAgentIsSmall keeps the control plane out of the binary that is sent to
// every pod.
func TestAgentIsSmall(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", module+"/cmd/homeport-agent").Output()
	if err != nil {
		t.Fatalf("list what the agent links: %v", err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, module+"/internal/agent") {
		t.Fatal("the agent does not link package agent: this test looks at nothing")
	}
	for _, dep := range deps {
		for _, banned := range []string{
			"github.com/jackc/pgx", "github.com/riverqueue", "github.com/danielgtaylor/huma", "github.com/minio", "github.com/aws",
			"github.com/stripe", "github.com/wneessen", module + "/internal/pg", module + "/internal/app", module + "/internal/job",
		} {
			if under(dep, banned) {
				t.Errorf("the agent links %s", dep)
			}
		}
	}
}

// A callRule says who may call a function of the standard library or uuid.
type callRule struct {
	pkg, fn string // fn "" is every function of the package
	only    string
	why     string
}

var callRules = []callRule{
	{"time", "Now", "clock", "pass now, or read clock"},
	{"time", "Since", "clock", "pass now, or read clock"},
	{"time", "Until", "clock", "pass now, or read clock"},
	{"crypto/rand", "", "id seal snapshot", "id draws all randomness, but for the nonces of what encrypts"},
	{"github.com/google/uuid", "New", "id", "id makes all ids"},
	{"github.com/google/uuid", "NewRandom", "id", "id makes all ids"},
	{"github.com/google/uuid", "NewString", "id", "id makes all ids"},
	{"github.com/google/uuid", "NewV7", "id", "pods are addressed by the first segment of their id"},
	{"github.com/google/uuid", "NewSHA1", "id", "id.Derive keeps parts apart"},
	{"context", "Background", "cmd/*", "a context comes from the caller"},
	{"context", "TODO", "", "a context comes from the caller"},
	{"os", "Exit", "cmd/* sandboxinit", "return an error"},
	{"log/slog", "Default", "cmd/*", "a logger comes from the caller"},
	{"log/slog", "SetDefault", "cmd/*", "a logger comes from the caller"},
}

func TestTimeChanceAndContextComeFromTheCaller(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, product) {
		names := s.imports()
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr) // a call, or the function as a value
			if !ok {
				return true
			}
			id, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			for _, r := range callRules {
				if names[id.Name] == r.pkg && (r.fn == "" || r.fn == sel.Sel.Name) && !listed(s.pkg, r.only) {
					t.Errorf("%s: %s.%s: %s", s.at(sel), path.Base(r.pkg), sel.Sel.Name, r.why)
				}
			}
			return true
		})
	}
}

// TestPanicsAreExplained: where a panic cannot be avoided, its line says why it
// never happens, or the function's comment says when it does.
func TestPanicsAreExplained(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, product) {
		explained := map[int]bool{}
		for _, group := range s.file.Comments {
			explained[s.fset.Position(group.Pos()).Line] = true
		}
		for _, decl := range s.file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || strings.Contains(fn.Doc.Text(), "panics") {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "panic" && !explained[s.fset.Position(call.Pos()).Line] {
						t.Errorf("%s: panic: return an error that names the invariant, or say on the line why it cannot happen", s.at(call))
					}
				}
				return true
			})
		}
	}
}
