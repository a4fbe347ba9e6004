package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// root is the module's folder, seen from this package.
const root = "../.."

const module = "homeport.dev/homeport"

// A source is one Go file of the module.
type source struct {
	path string // from the root, with slashes
	pkg  string // the package's short name: "pod", "provider/sandbox", "cmd/homeport"
	test bool   // a _test.go file
	file *ast.File
	fset *token.FileSet
}

// support says whether the file belongs to a package that only tests import.
func (s source) support() bool { return isSupport(s.pkg) }

func isSupport(pkg string) bool { return strings.HasSuffix(pkg, "test") || pkg == "sim" }

// at is where a node stands, for messages.
func (s source) at(n ast.Node) string {
	return s.path + ":" + strconv.Itoa(s.fset.Position(n.Pos()).Line)
}

// lines is how many lines a node covers.
func (s source) lines(n ast.Node) int {
	return s.fset.Position(n.End()).Line - s.fset.Position(n.Pos()).Line + 1
}

// imports maps the names under which the file knows packages to their paths.
func (s source) imports() map[string]string {
	names := make(map[string]string, len(s.file.Imports))
	for _, spec := range s.file.Imports {
		p := unquote(spec.Path.Value)
		name := path.Base(p)
		if name == "v2" {
			name = path.Base(path.Dir(p))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = p
	}
	return names
}

func unquote(literal string) string {
	s, err := strconv.Unquote(literal)
	if err != nil {
		return literal
	}
	return s
}

// shortName turns an import path of this module into a package's short name.
func shortName(importPath string) (string, bool) {
	rest, ok := strings.CutPrefix(importPath, module+"/")
	return strings.TrimPrefix(rest, "internal/"), ok
}

// passed are folders that hold nothing that was written here.
var passed = map[string]bool{
	".git": true, "node_modules": true, "dist": true, "bin": true, "testdata": true,
	"test-results": true, "playwright-report": true, "coverage": true,
}

// walk calls fn for each file of the tree, with its path from the root.
func walk(fn func(name string) error) error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) { // somebody else's temporary file
				return nil
			}
			return err
		}
		if d.IsDir() {
			if passed[d.Name()] {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil || !d.Type().IsRegular() || rel == ".git" { // of a worktree
			return err
		}
		return fn(filepath.ToSlash(rel))
	})
}

var parsed = sync.OnceValues(func() ([]source, error) {
	var all []source
	fset := token.NewFileSet()
	err := walk(func(name string) error {
		if !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "tools/") {
			return nil
		}
		file, err := parser.ParseFile(fset, filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := strings.TrimPrefix(path.Dir(name), "internal/")
		all = append(all, source{path: name, pkg: pkg, test: strings.HasSuffix(name, "_test.go"), file: file, fset: fset})
		return nil
	})
	return all, err
})

// temporary is a package that holds go.mod together until its last user is
// there. No rule is for it.
const temporary = "deps"

// sources returns every Go file that fit wants.
func sources(t *testing.T, fit func(source) bool) []source {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	var some []source
	for _, s := range all {
		if s.pkg != temporary && fit(s) {
			some = append(some, s)
		}
	}
	if len(some) == 0 {
		t.Fatal("no source was found: this test looks at nothing")
	}
	return some
}

// product is what goes into the binaries.
func product(s source) bool { return !s.test && !s.support() }

func anything(source) bool { return true }

// calledName is the package path and function of a call like fault.New(…).
func calledName(names map[string]string, call *ast.CallExpr) (pkg, fn string) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	return names[id.Name], sel.Sel.Name
}
