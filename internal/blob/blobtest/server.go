package blobtest

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Server is a real S3 service on this machine, versitygw, over a folder. It
// is a program of its own so that tests may kill it at any instant. It is
// built from its own module, tools/versitygw.
type Server struct {
	Endpoint, Region, Bucket, KeyID, Secret string

	t    testing.TB
	root string
	args []string
	mu   sync.Mutex
	cmd  *exec.Cmd
}

// NewServer starts a service with one empty bucket, which ends with the test.
// versions says that it keeps what is deleted. Where the program cannot be
// built the test fails, or is skipped with HOMEPORT_TEST_SKIP_S3=1.
func NewServer(t testing.TB, versions bool) *Server {
	t.Helper()
	program, err := gateway()
	if err != nil {
		giveUp(t, err)
	}
	root := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s := &Server{
		Endpoint: "http://" + addr, Region: "us-east-1", Bucket: "volumes", KeyID: "homeport-test", Secret: "not-a-secret-at-all",
		t: t, root: root,
	}
	s.args = []string{program, "--quiet", "--port", addr, "--region", s.Region, "posix"}
	for _, dir := range []string{"data/" + s.Bucket, "meta", "versions"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if versions {
		s.args = append(s.args, "--versioning-dir", filepath.Join(root, "versions"))
	}
	s.args = append(s.args, filepath.Join(root, "data"))
	s.Start()
	t.Cleanup(s.Kill)
	if versions {
		s.enableVersions()
	}
	return s
}

// giveUp ends a test for which there is no service. Nobody loses all tests of
// S3 without noticing: leaving them out is asked for.
func giveUp(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("HOMEPORT_TEST_SKIP_S3") == "1" {
		t.Skipf("HOMEPORT_TEST_SKIP_S3=1, and versitygw cannot be built here: %v", err)
	}
	t.Fatalf("versitygw cannot be built here (offline, HOMEPORT_TEST_SKIP_S3=1 leaves the tests of S3 out): %v", err)
}

// Start runs the service and returns when it answers.
func (s *Server) Start() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	s.cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID="+s.KeyID, "ROOT_SECRET_ACCESS_KEY="+s.Secret)
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.t.Fatal("versitygw does not answer")
		}
	}
}

// Kill ends the service at once, as a power cut does.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// File is where the bytes of an object lie, for tests that damage them. key is
// its name in the bucket.
func (s *Server) File(key string) string {
	return filepath.Join(s.root, "data", s.Bucket, filepath.FromSlash(key))
}

// gateway builds the service's program once and keeps it.
var gateway = sync.OnceValues(func() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "tools", "versitygw", "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("tools/versitygw is not above the test")
		}
		dir = up
	}
	source := filepath.Join(dir, "tools", "versitygw")
	sums, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, ".cache", fmt.Sprintf("versitygw-%08x", crc32.ChecksumIEEE(sums)))
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(program+".lock", os.O_CREATE|os.O_RDWR, 0o600) // one test builds it, others wait
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	half := program + ".half"
	build := exec.Command("go", "build", "-o", half, "github.com/versity/versitygw/cmd/versitygw")
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, os.Rename(half, program)
})
