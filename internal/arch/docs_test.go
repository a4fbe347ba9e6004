package arch

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

func TestExportedNamesHaveComments(t *testing.T) {
	t.Parallel()
	described := map[string]bool{}
	for _, s := range sources(t, func(s source) bool { return !s.test }) {
		described[s.pkg] = described[s.pkg] || s.file.Doc.Text() != ""
		for _, decl := range s.file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				checkFunc(t, s, decl)
			case *ast.GenDecl:
				checkGroup(t, s, decl)
			}
		}
	}
	for pkg, ok := range described {
		if !ok {
			t.Errorf("package %s has no comment: what it owns, what always holds, what it leaves to others", pkg)
		}
	}
}

func checkFunc(t *testing.T, s source, fn *ast.FuncDecl) {
	t.Helper()
	if fn.Name.IsExported() && fn.Doc.Text() == "" && (fn.Recv == nil || exportedReceiver(fn.Recv)) {
		t.Errorf("%s: %s has no comment", s.at(fn), fn.Name.Name)
	}
}

func exportedReceiver(list *ast.FieldList) bool {
	for e := list.List[0].Type; ; {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

// checkGroup wants a comment on each exported type, and on each constant or
// variable or the group that it stands in.
func checkGroup(t *testing.T, s source, g *ast.GenDecl) {
	t.Helper()
	grouped := g.Doc.Text() != ""
	for _, spec := range g.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() && spec.Doc.Text() == "" && (!grouped || len(g.Specs) > 1) {
				t.Errorf("%s: type %s has no comment", s.at(spec), spec.Name.Name)
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() && !grouped && spec.Doc.Text() == "" && spec.Comment.Text() == "" {
					t.Errorf("%s: %s %s has no comment", s.at(spec), g.Tok, name.Name)
				}
			}
		}
	}
}

// TestFaultsSayWhenTheyOccur wants a comment of its own on each fault.
func TestFaultsSayWhenTheyOccur(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, product) {
		names := s.imports()
		for _, decl := range s.file.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for _, value := range v.Values {
					call, ok := value.(*ast.CallExpr)
					if !ok {
						continue
					}
					pkg, fn := calledName(names, call)
					if pkg != module+"/internal/fault" || fn != "New" {
						continue
					}
					if v.Doc.Text() == "" && v.Comment.Text() == "" && (len(g.Specs) > 1 || g.Doc.Text() == "") {
						t.Errorf("%s: fault %s does not say when it occurs", s.at(v), v.Names[0].Name)
					}
				}
			}
		}
	}
}

// badNames say nothing of what a package owns.
var badNames = []string{"util", "utils", "common", "helper", "helpers", "types", "model", "models", "manager", "misc", "shared"}

func TestPackageNamesSayWhatTheyOwn(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, anything) {
		for _, bad := range badNames {
			if s.file.Name.Name == bad {
				t.Errorf("%s: package %s: name what it owns", s.path, bad)
			}
		}
		if base := s.pkg[strings.LastIndex(s.pkg, "/")+1:]; product(s) && !strings.HasPrefix(s.pkg, "cmd/") && s.file.Name.Name != base {
			t.Errorf("%s: package %s lies in folder %s", s.path, s.file.Name.Name, base)
		}
	}
}
