// Package bintest is for tests that run Homeport's binaries as an operator does.
package bintest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Run runs a package's tests and returns their exit status. *bin is meanwhile
// the folder of the binaries: HOMEPORT_BIN, or one of binaries that are built
// for these tests alone, with further flags of go build. The package stands
// directly in a folder of the module's root.
func Run(m *testing.M, bin *string, flags ...string) int {
	if *bin = os.Getenv("HOMEPORT_BIN"); *bin != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "hpbin")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	*bin = dir
	args := append([]string{"build", "-o", dir + "/"}, flags...)
	build := exec.Command("go", append(args, "../../cmd/homeport", "../../cmd/homeport-agent")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("build: %v\n%s", err, out))
	}
	if err := os.Chmod(dir, 0o755); err != nil { // pods' users run the agent
		panic(err)
	}
	return m.Run()
}

// WriteProgram writes a program that can be run at once: a process that another
// test is just starting would hold the file open for writing, and its start
// would be refused as "text file busy".
func WriteProgram(t testing.TB, path string, text []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, text, 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}

// Environ is this process's environment without settings of Homeport.
func Environ() []string {
	var env []string
	for _, line := range os.Environ() {
		if !strings.HasPrefix(line, "HOMEPORT_") {
			env = append(env, line)
		}
	}
	return env
}

// FreePort is a TCP port of the loopback interface on which nobody listens.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
