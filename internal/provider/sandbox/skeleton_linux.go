package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// skeletonName changes with the content below: older machines keep theirs.
const skeletonName = "skeleton-1"

// Folders of a pod's root, empty at first.
var skeletonDirs = []string{
	"dev", "etc", "home", "media", "mnt", "opt/homeport/bin", "proc", "root", "run", "srv", "sys", "tmp", "usr",
	"var/cache", "var/lib/homeport-agent", "var/local", "var/log", "var/opt", "var/spool", "var/tmp", "workspace",
}

// What a pod sees of the host's /etc, if the host lets everybody read it.
// Everything else does not exist in there.
var etcAllowed = []string{
	"alternatives", "bash.bashrc", "bash_completion", "bash_completion.d", "bindresvport.blacklist", "ca-certificates.conf", "debian_version",
	"default/locale", "environment", "ethertypes", "fonts", "gai.conf", "host.conf", "inputrc", "java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
	"locale.alias", "locale.conf", "locale.gen", "localtime", "login.defs", "magic", "magic.mime", "mime.types", "nanorc", "networks", "nsswitch.conf",
	"os-release", "pam.conf", "pam.d", "perl", "profile", "profile.d", "protocols", "python3", "rpc", "security", "services", "shells", "skel",
	"ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "terminfo", "timezone", "vim", "xattr.conf",
}

// Files of the pod's own.
var skeletonFiles = map[string]string{ //nolint:gosec // etc/passwd holds no password
	"etc/passwd":                      "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	"etc/group":                       "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n",
	"etc/hostname":                    "pod\n",
	"etc/hosts":                       "127.0.0.1 localhost\n::1 localhost\n",
	"etc/resolv.conf":                 "",
	"opt/homeport/bin/homeport-agent": "", // mount point
}

// skeleton returns the root file system that all pods have below their own
// writes, made once per folder, and the host's folders beside /usr that its
// programs need.
func (s *Sandbox) skeleton() (dir string, extra []string, err error) {
	s.skel.Lock()
	defer s.skel.Unlock()
	links, extra, err := rootFolders()
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(s.dir, skeletonName)
	if _, err := os.Stat(dir); err == nil {
		return dir, extra, nil
	}
	tmp, err := os.MkdirTemp(s.dir, newPrefix)
	if err != nil {
		return "", nil, fmt.Errorf("make skeleton: %w", err)
	}
	if err := fillSkeleton(tmp, links, extra); err != nil {
		return "", nil, errors.Join(fmt.Errorf("make skeleton: %w", err), os.RemoveAll(tmp))
	}
	if err := os.Rename(tmp, dir); err != nil {
		_ = os.RemoveAll(tmp)
		if _, lost := os.Stat(dir); lost != nil { // else another node was faster
			return "", nil, fmt.Errorf("make skeleton: %w", err)
		}
	}
	return dir, extra, nil
}

// rootFolders finds how this host names its programs: links into /usr, or
// folders of their own.
func rootFolders() (links map[string]string, extra []string, err error) {
	links = map[string]string{}
	for _, n := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		info, err := os.Lstat("/" + n)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("look at /%s: %w", n, err)
		}
		if info.IsDir() {
			extra = append(extra, "/"+n)
			continue
		}
		if links[n], err = os.Readlink("/" + n); err != nil {
			return nil, nil, fmt.Errorf("look at /%s: %w", n, err)
		}
	}
	return links, extra, nil
}

func fillSkeleton(dir string, links map[string]string, extra []string) error {
	for _, d := range append(skeletonDirs, extra...) {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := os.Symlink("../run", filepath.Join(dir, "var/run")); err != nil {
		return err
	}
	for _, n := range etcAllowed {
		if err := copyTree(filepath.Join("/etc", n), filepath.Join(dir, "etc", n)); err != nil {
			return err
		}
	}
	for name, text := range skeletonFiles {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	modes := map[string]uint32{"": 0o755, "tmp": 0o1777, "var/tmp": 0o1777, "root": 0o700, "opt/homeport/bin/homeport-agent": 0o755}
	for name, mode := range modes {
		if err := unix.Chmod(filepath.Join(dir, name), mode); err != nil {
			return fmt.Errorf("mode of %s: %w", name, err)
		}
	}
	return nil
}

// copyTree copies folders, links and the files that everybody may read.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil // this host has none, or none for everybody
		}
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		at := to + strings.TrimPrefix(path, from)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		switch mode := info.Mode(); {
		case mode.IsDir():
			return os.MkdirAll(at, 0o755)
		case mode&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(target, at)
		case mode.IsRegular() && mode.Perm()&0o004 != 0:
			return copyFile(path, at, mode.Perm()&0o755)
		}
		return nil
	})
}

func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
