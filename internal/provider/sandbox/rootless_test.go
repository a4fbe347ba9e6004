//go:build linux

package sandbox_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ordinary is a user that owns nothing on any host.
const ordinary = 61_234

// TestAsOrdinaryUser runs the tests of machines again without root.
func TestAsOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("this is the ordinary user")
	}
	home, err := os.MkdirTemp("", "homeport-rootless-") //nolint:usetesting // t.TempDir is closed to the ordinary user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	bin := filepath.Join(home, "sandbox.test")
	copySelf(t, bin)
	if err := os.Chown(home, ordinary, ordinary); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, "-test.v", "-test.run", "^Test(Machine|Pod|User|Terminate|Node|Half|Name|One|Taken|Left|Dropped)")
	cmd.Dir = home
	cmd.Env = []string{"TMPDIR=" + home, "HOME=" + home, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "SKIP: TestMachineOutlivesItsNode") {
		t.Skipf("ordinary users cannot run pods here:\n%s", out)
	}
}

func copySelf(t *testing.T, to string) {
	t.Helper()
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
