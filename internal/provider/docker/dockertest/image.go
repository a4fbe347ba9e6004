package dockertest

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// programs are what the installer, the agent's shells and the tests use.
var programs = []string{
	"sh", "bash", "curl", "id", "uname", "mkdir", "chmod", "mv", "cat", "sleep", "sha256sum", "ls", "cp", "rm", "stat", "head", "tail", "cut", "cmp",
	"sync", "env", "echo", "true", "ln", "find", "sort", "touch", "truncate", "grep", "readlink", "df", "nproc", "setsid", "od", "base64", "timeout", "tr",
}

// extra files that libraries look for.
var extra = []string{"/etc/ssl/certs/ca-certificates.crt"}

// small files of the image.
var small = map[string]string{
	"etc/passwd": "root:x:0:0:root:/root:/bin/bash\n", "etc/group": "root:x:0:\n", "etc/nsswitch.conf": "hosts: files dns\n",
	"etc/shells": "/bin/bash\n/bin/sh\n",
}

// hostImage writes a root file system of this host's programs and their libraries.
func hostImage(ctx context.Context, w io.Writer) error {
	files := slices.Clone(extra)
	for _, name := range programs {
		path, err := exec.LookPath(name)
		if err != nil {
			return fmt.Errorf("this host lacks %s: %w", name, err)
		}
		libs, err := libraries(ctx, path)
		if err != nil {
			return err
		}
		files = append(append(files, path), libs...)
	}
	slices.Sort(files)
	t := tar.NewWriter(w)
	for _, dir := range []string{
		"bin", "usr", "usr/bin", "lib", "lib64", "usr/lib", "etc", "etc/ssl", "etc/ssl/certs", "dev", "proc", "sys", "run", "var", "opt", "root", "cache",
	} {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
			return fmt.Errorf("write the image: %w", err)
		}
	}
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}); err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	for name, text := range small {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return fmt.Errorf("write the image: %w", err)
		}
		if _, err := io.WriteString(t, text); err != nil {
			return fmt.Errorf("write the image: %w", err)
		}
	}
	for _, path := range slices.Compact(files) {
		if err := copyFile(t, path); err != nil {
			return err
		}
	}
	return t.Close()
}

// copyFile adds a file under the name by which it is looked for, whatever links
// lead to it here.
func copyFile(t *tar.Writer, path string) error {
	f, err := os.Open(path)
	if os.IsNotExist(err) && slices.Contains(extra, path) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	names := []string{strings.TrimPrefix(path, "/")}
	if dir, name := filepath.Split(path); dir == "/usr/bin/" {
		names = append(names, "bin/"+name) // both are one folder on most hosts
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: names[0], Mode: int64(info.Mode() & fs.ModePerm), Size: info.Size()}
	if err := t.WriteHeader(h); err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	if _, err := io.Copy(t, f); err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	for _, name := range names[1:] {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: names[0], Mode: h.Mode}); err != nil {
			return fmt.Errorf("write the image: %w", err)
		}
	}
	return nil
}

var libraryLine = regexp.MustCompile(`(?m)(?:=> |^\s*)(/\S+) \(0x`)

// libraries are the files that a program is linked to.
func libraries(ctx context.Context, path string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "ldd", path).Output()
	if err != nil {
		return nil, fmt.Errorf("libraries of %s: %w", path, err)
	}
	var list []string
	for _, m := range libraryLine.FindAllStringSubmatch(string(out), -1) {
		list = append(list, m[1])
	}
	return list, nil
}
