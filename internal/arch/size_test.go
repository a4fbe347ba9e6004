package arch

import (
	"bytes"
	"go/ast"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// How long things may be, in lines. Beyond that a file is split by use case.
const (
	maxFile         = 400
	maxFunction     = 60
	maxTestFile     = 800
	maxTestFunction = 120
	maxWebFile      = 300
	maxWebTest      = 800
)

func TestGoFilesAreShort(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, anything) {
		file, function := maxFile, maxFunction
		if s.test || s.support() {
			file, function = maxTestFile, maxTestFunction
		}
		if n := s.fset.File(s.file.Pos()).LineCount() - 1; n > file {
			t.Errorf("%s has %d lines, more than %d: split it by use case", s.path, n, file)
		}
		for _, decl := range s.file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && s.lines(fn) > function {
				t.Errorf("%s: %s has %d lines, more than %d", s.at(fn), fn.Name.Name, s.lines(fn), function)
			}
		}
	}
}

func TestWebFilesAreShort(t *testing.T) {
	t.Parallel()
	err := walk(func(name string) error {
		if !strings.HasPrefix(name, "web/") || !strings.HasSuffix(name, ".ts") && !strings.HasSuffix(name, ".tsx") ||
			strings.HasSuffix(name, ".gen.ts") || strings.HasSuffix(name, ".d.ts") {
			return nil
		}
		raw, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		limit := maxWebFile
		if strings.Contains(name, ".test.") || strings.HasPrefix(name, "web/e2e/") {
			limit = maxWebTest
		}
		if n := bytes.Count(raw, []byte("\n")); n > limit {
			t.Errorf("%s has %d lines, more than %d", name, n, limit)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
