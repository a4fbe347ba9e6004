package arch

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg/pgtest"
)

// A statement is one constant sql… of the product.
type statement struct {
	pkg, name, text, at string
}

// theOneClock is the statement that may ask the database for the time: nodes
// follow its clock.
const theOneClock = "pg.sqlServerTime"

// statements returns every constant whose name begins with sql.
func statements(t *testing.T) []statement {
	t.Helper()
	known := constants(t)
	var found []statement
	eachConstant(t, func(s source, name *ast.Ident, value ast.Expr) {
		if !isStatement(name.Name) {
			return
		}
		text, ok := known.text(s, value)
		if !ok {
			t.Errorf("%s: %s is not made of constant strings", s.at(name), name.Name)
			return
		}
		found = append(found, statement{pkg: s.pkg, name: name.Name, text: text, at: s.at(name)})
	})
	return found
}

func isStatement(name string) bool {
	return len(name) > 3 && strings.HasPrefix(name, "sql") && name[3] >= 'A' && name[3] <= 'Z'
}

// eachConstant calls fn for every constant of the product.
func eachConstant(t *testing.T, fn func(s source, name *ast.Ident, value ast.Expr)) {
	t.Helper()
	for _, s := range sources(t, product) {
		for _, decl := range s.file.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for i := range v.Values {
					fn(s, v.Names[i], v.Values[i])
				}
			}
		}
	}
}

// A definition is a constant's value with the file it stands in.
type definition struct {
	in    source
	value ast.Expr
}

// constantSet knows all constants of the product by package and name.
type constantSet map[string]definition

func constants(t *testing.T) constantSet {
	t.Helper()
	known := constantSet{}
	eachConstant(t, func(s source, name *ast.Ident, value ast.Expr) {
		known[s.pkg+"."+name.Name] = definition{s, value}
	})
	return known
}

// text evaluates a string made of literals and constants.
func (c constantSet) text(s source, e ast.Expr) (string, bool) {
	name := ""
	switch e := e.(type) {
	case *ast.BasicLit:
		return unquote(e.Value), e.Kind == token.STRING
	case *ast.ParenExpr:
		return c.text(s, e.X)
	case *ast.BinaryExpr:
		x, okX := c.text(s, e.X)
		y, okY := c.text(s, e.Y)
		return x + y, okX && okY && e.Op == token.ADD
	case *ast.Ident:
		name = s.pkg + "." + e.Name
	case *ast.SelectorExpr:
		if id, ok := e.X.(*ast.Ident); ok {
			pkg, _ := shortName(s.imports()[id.Name])
			name = pkg + "." + e.Sel.Name
		}
	}
	d, ok := c[name]
	if !ok {
		return "", false
	}
	return c.text(d.in, d.value)
}

// TestStatementsFitTheSchema prepares every statement, so that a misspelt
// column fails here even where no other test runs the statement.
func TestStatementsFitTheSchema(t *testing.T) {
	t.Parallel()
	conn, err := pgtest.New(t).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, s := range statements(t) {
		text, _, err := pgx.NamedArgs{}.RewriteQuery(t.Context(), conn.Conn(), s.text, nil)
		if err != nil {
			t.Errorf("%s: %s: %v", s.at, s.name, err)
			continue
		}
		// Not kept: a prepared statement would hold the plan of hundreds.
		if _, err := conn.Conn().PgConn().Prepare(t.Context(), "", text, nil); err != nil {
			t.Errorf("%s: %s: %v", s.at, s.name, err)
		}
	}
}

var (
	asksTime   = regexp.MustCompile(`(?i)\b(now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday)\s*\(|\b(current_timestamp|current_date|current_time|localtimestamp|localtime)\b`)
	selectsAll = regexp.MustCompile(`(?i)\b(select|returning|select\s+distinct)\s+\*|\b\w+\.\*`)
	upperCase  = regexp.MustCompile(`\b(SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|JOIN|VALUES|RETURNING|SET)\b`)
)

func TestStatementsFollowTheRules(t *testing.T) {
	t.Parallel()
	sawClock := false
	for _, s := range statements(t) {
		isClock := s.pkg+"."+s.name == theOneClock
		sawClock = sawClock || isClock
		if asksTime.MatchString(s.text) && !isClock {
			t.Errorf("%s: %s asks the database for the time: pass it in", s.at, s.name)
		}
		if selectsAll.MatchString(s.text) {
			t.Errorf("%s: %s does not list its columns", s.at, s.name)
		}
		if upperCase.MatchString(s.text) {
			t.Errorf("%s: %s is not in lower case", s.at, s.name)
		}
	}
	if !sawClock {
		t.Errorf("%s is gone: its exception can go too", theOneClock)
	}
}

// sqlBesideConstants are packages that also run statements that cannot be
// prepared: DDL, listen, migrations.
var sqlBesideConstants = []string{"pg"}

// TestStatementsAreConstants finds SQL that is written into a call, where the
// tests above do not see it.
func TestStatementsAreConstants(t *testing.T) {
	t.Parallel()
	runs := map[string]int{"Exec": 1, "Query": 1, "QueryRow": 1, "Queue": 0, "Prepare": 2}
	for _, s := range sources(t, product) {
		if slices.Contains(sqlBesideConstants, s.pkg) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			at, ok := runs[sel.Sel.Name]
			if !ok || len(call.Args) <= at {
				return true
			}
			switch arg := call.Args[at].(type) {
			case *ast.BasicLit:
				if arg.Kind == token.STRING {
					t.Errorf("%s: the statement is not a constant sql…", s.at(call))
				}
			case *ast.BinaryExpr:
				t.Errorf("%s: the statement is put together at run time", s.at(call))
			}
			return true
		})
	}
}

// A table is one that a migration creates.
type table struct{ name, owner, file string }

var (
	createTable   = regexp.MustCompile(`(?i)^\s*create\s+(?:unlogged\s+)?table\s+(?:if\s+not\s+exists\s+)?(\w+)`)
	ownerLine     = regexp.MustCompile(`^-- owner: ([\w/]+)$`)
	migrationName = regexp.MustCompile(`^\d{4}_[a-z]+(_[a-z0-9]+)+\.sql$`)
)

func migrations(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "internal/pg/migrations/*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no migrations: %v", err)
	}
	texts := make(map[string]string, len(names))
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(name)] = string(raw)
	}
	return texts
}

// tables returns all tables, with their owners from the lines before them.
func tables(t *testing.T) map[string]table {
	t.Helper()
	found := map[string]table{"schema_migration": {"schema_migration", "pg", "migrate.go"}}
	for file, text := range migrations(t) {
		before := ""
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			if m := createTable.FindStringSubmatch(line); m != nil {
				owner := ownerLine.FindStringSubmatch(before)
				if owner == nil {
					t.Errorf("%s: the line before create table %s must be -- owner: <package>", file, m[1])
					owner = []string{"", ""}
				}
				if was, ok := found[m[1]]; ok {
					t.Errorf("%s: table %s was created in %s", file, m[1], was.file)
				}
				found[m[1]] = table{m[1], owner[1], file}
			}
			before = line
		}
	}
	return found
}

func TestMigrationsFollowTheRules(t *testing.T) {
	t.Parallel()
	numbers := map[string]string{}
	for file, text := range migrations(t) {
		if !migrationName.MatchString(file) {
			t.Errorf("%s: the name must be NNNN_verb_noun.sql", file)
			continue
		}
		if other, ok := numbers[file[:4]]; ok {
			t.Errorf("%s and %s share a number", file, other)
		}
		numbers[file[:4]] = file
		for i, line := range strings.Split(text, "\n") {
			code, _, _ := strings.Cut(line, "--")
			if asksTime.MatchString(code) {
				t.Errorf("%s:%d asks the database for the time", file, i+1)
			}
			if upperCase.MatchString(code) {
				t.Errorf("%s:%d is not in lower case", file, i+1)
			}
		}
	}
	for _, tab := range tables(t) {
		if _, ok := may[tab.owner]; !ok {
			t.Errorf("%s: table %s belongs to %q, which is no package", tab.file, tab.name, tab.owner)
		}
	}
}

// named finds the tables that a statement reads or writes: those that follow
// these words, and those after a comma behind them.
var named = regexp.MustCompile(`\b(?:from|join|into|update|using|table|truncate)\s+((?:(?:only\s+|lateral\s+)?\w+(?:\s+(?:as\s+)?\w+)?\s*,\s*)*(?:only\s+|lateral\s+)?\w+)`)

func TestTablesHaveOneOwner(t *testing.T) {
	t.Parallel()
	all := tables(t)
	for _, s := range statements(t) {
		for _, word := range namedTables(s.text) {
			if tab, ok := all[word]; ok && tab.owner != s.pkg {
				t.Errorf("%s: %s names table %s: ask its owner %s", s.at, s.name, word, tab.owner)
			}
		}
	}
}

// namedTables returns what stands in a statement where tables do.
func namedTables(text string) []string {
	var found []string
	for _, m := range named.FindAllStringSubmatch(strings.ToLower(text), -1) {
		for item := range strings.SplitSeq(m[1], ",") {
			words := strings.Fields(item)
			for len(words) > 1 && (words[0] == "only" || words[0] == "lateral") {
				words = words[1:]
			}
			found = append(found, words[0])
		}
	}
	return found
}

func TestTheChecksOfStatementsCheck(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"select a from pod where b = 1":                            {"pod"},
		"select p.a from pod p, team as t, volume where p.x = t.y": {"pod", "team", "volume"},
		"select a from pod p join only team t on true":             {"pod", "team"},
		"update pod set a = 1 from team":                           {"pod", "team"},
		"insert into pod (a) select b from (select b from team) x": {"pod", "team"},
		"delete from pod using team":                               {"pod", "team"},
	} {
		if got := namedTables(text); !slices.Equal(got, want) {
			t.Errorf("%q names %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]bool{
		"select now()": true, "select current_date": true, "select clock_timestamp ()": true,
		"select known(a), now_at from x": false,
	} {
		if asksTime.MatchString(text) != want {
			t.Errorf("asks %q for the time: %v, want %v", text, !want, want)
		}
	}
	for text, want := range map[string]bool{
		"select * from x": true, "insert into x (a) values (1) returning *": true, "select x.* from x": true,
		"select count(*), 2 * 3 from x": false, "select 0.5 * a from x": false,
	} {
		if selectsAll.MatchString(text) != want {
			t.Errorf("%q selects all: %v, want %v", text, !want, want)
		}
	}
}
