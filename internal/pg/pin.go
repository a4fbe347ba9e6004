package pg

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// symlinkList is the npm package's list of the links that npm cannot carry.
const symlinkList = "pg-symlinks.json"

// Prepare returns binaries that the user cred can run: b itself, or a copy in
// dir/<version>. A copy is made of an npm package, whose libraries must be
// linked first and which a later npm install may replace under the data, and of
// an installation that cred cannot reach.
func (b Binaries) Prepare(dir string, cred *syscall.Credential) (Binaries, error) {
	if b.Package == "" && reachable(b.Dir, cred) {
		return b, nil
	}
	root := filepath.Dir(b.Dir)
	if _, err := os.Stat(filepath.Join(root, "share")); err != nil {
		return Binaries{}, fmt.Errorf("the database's user cannot reach %s, and it is no tree that can be copied: %w", b.Dir, err)
	}
	target := filepath.Join(dir, b.Version)
	pinned := Binaries{Dir: filepath.Join(target, "bin"), Version: b.Version, Major: b.Major}
	if _, err := os.Stat(target); err == nil {
		return pinned, nil
	}
	building := target + ".new"
	if err := os.RemoveAll(building); err != nil {
		return Binaries{}, err
	}
	if err := os.MkdirAll(building, 0o755); err != nil {
		return Binaries{}, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // whatever the umask says
		return Binaries{}, err
	}
	if err := copyTree(root, building); err != nil {
		return Binaries{}, fmt.Errorf("copy PostgreSQL from %s: %w", root, err)
	}
	if err := linkLibraries(building); err != nil {
		return Binaries{}, fmt.Errorf("link PostgreSQL's libraries: %w", err)
	}
	return pinned, os.Rename(building, target)
}

// pinnedBinaries lists the copies that Prepare made in dir.
func pinnedBinaries(dir string) []Binaries {
	bins, _ := filepath.Glob(filepath.Join(dir, "*", "bin"))
	var found []Binaries
	for _, bin := range bins {
		if strings.HasSuffix(filepath.Dir(bin), ".new") {
			continue
		}
		if b, err := askVersion(bin); err == nil {
			found = append(found, b)
		}
	}
	return found
}

// reachable says whether the user may enter every folder on the way to dir and
// look into it. nil is ourselves, who found dir by entering it.
func reachable(dir string, cred *syscall.Credential) bool {
	if cred == nil {
		return true
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return false
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return false
		}
		enter := fs.FileMode(0o001)
		switch {
		case st.Uid == cred.Uid:
			enter = 0o100
		case st.Gid == cred.Gid:
			enter = 0o010
		}
		if info.Mode()&enter == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// copyTree copies folders, files and links from src into the folder dst, for
// everybody to read. Static libraries stay behind: nothing is built here.
func copyTree(src, dst string) error {
	return filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		target := filepath.Join(dst, rel)
		switch {
		case d.IsDir():
			if err := os.MkdirAll(target, 0o755); err != nil {
				return err
			}
			return os.Chmod(target, 0o755) // whatever the umask says
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case !d.Type().IsRegular() || strings.HasSuffix(path, ".a"):
			return nil
		}
		return copyFile(path, target)
	})
}

func copyFile(src, dst string) (err error) {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(dst, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Chmod(info.Mode().Perm() | 0o444)
}

// linkLibraries makes the symbolic links that the npm package lists for its
// install script, which may not have run.
func linkLibraries(root string) error {
	raw, err := os.ReadFile(filepath.Join(root, symlinkList))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(raw, &links); err != nil {
		return fmt.Errorf("read %s: %w", symlinkList, err)
	}
	for _, l := range links {
		rel := strings.TrimPrefix(filepath.ToSlash(l.Target), "native/")
		if !filepath.IsLocal(rel) {
			return fmt.Errorf("%s names %s, which is outside the package", symlinkList, l.Target)
		}
		err := os.Symlink(filepath.Base(l.Source), filepath.Join(root, rel))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return os.Remove(filepath.Join(root, symlinkList)) // a copy is an installation like others
}
