package pg

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// Role is the database role, and superuser, of servers that Homeport starts.
const Role = "homeport"

// InitDB makes a data directory in dir, which must be empty and owned by the
// given user. cred is nil to run as the current user. Extra arguments go to
// initdb.
func (b Binaries) InitDB(ctx context.Context, dir string, cred *syscall.Credential, extra ...string) error {
	args := []string{
		"-D", dir, "-U", Role, "-E", "UTF8", "--auth-local=trust", "--auth-host=scram-sha-256",
		"--no-instructions", "--data-checksums",
	}
	if b.Major >= 17 { // its own locale: no change of glibc or ICU can reorder an index
		args = append(args, "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")
	} else {
		args = append(args, "--locale=C.UTF-8")
	}
	cmd := exec.CommandContext(ctx, b.path("initdb"), append(args, extra...)...)
	cmd.Dir = "/"
	cmd.Env = ServerEnv()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// ServerEnv is the environment that servers run in: nothing of the caller's
// reaches them.
func ServerEnv() []string {
	return []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
}

// ServerUser is the identity a server runs under. PostgreSQL refuses root, so
// root becomes postgres, or nobody where that user does not exist; anyone else
// stays who they are, which is nil.
func ServerUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL cannot run as root, and there is neither a user postgres nor nobody: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Username, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
