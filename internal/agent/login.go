//go:build linux

package agent

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// self is this program, whatever its file is called by now.
const self = "/proc/self/exe"

const userPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// userCommand is path with args, their name first, as a process of root's in
// the pod: through Exec, in root's home, with nothing of the agent's own
// environment.
func userCommand(home, path string, args []string) *exec.Cmd {
	cmd := exec.Command(self)
	cmd.Args = append([]string{"homeport-agent", ExecCommand, path}, args...)
	cmd.Dir = home
	if info, err := os.Stat(home); err != nil || !info.IsDir() {
		cmd.Dir = "/"
	}
	cmd.Env = []string{"HOME=" + home, "USER=root", "LOGNAME=root", "SHELL=" + loginShell(), "PATH=" + userPath}
	return cmd
}

// loginShell is root's shell as the pod's passwd file has it, or another one
// that is there.
func loginShell() string {
	passwd, _ := os.ReadFile("/etc/passwd") // none: the next best
	for line := range strings.Lines(string(passwd)) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) == 7 && f[0] == "root" && executable(f[6]) {
			return f[6]
		}
	}
	if executable("/bin/bash") {
		return "/bin/bash"
	}
	return "/bin/sh"
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func baseName(path string) string { return filepath.Base(path) }

// connectionEnv says where a session comes from, as OpenSSH does.
func connectionEnv(remote, local net.Addr) []string {
	from, fromPort, err1 := net.SplitHostPort(remote.String())
	to, toPort, err2 := net.SplitHostPort(local.String())
	if err1 != nil || err2 != nil {
		return nil
	}
	return []string{
		"SSH_CLIENT=" + from + " " + fromPort + " " + toPort,
		"SSH_CONNECTION=" + from + " " + fromPort + " " + to + " " + toPort,
	}
}

// greet writes the message of the day on the terminal, unless root asked for
// quiet as everywhere else.
func (s *session) greet() {
	if _, err := os.Stat(filepath.Join(s.conn.server.home, ".hushlogin")); err == nil {
		return
	}
	if text := strings.TrimSpace(s.conn.server.motd()); text != "" {
		_, _ = s.ch.Write([]byte(terminalText(text)))
	}
}

// terminalText is text with the line ends of a terminal.
func terminalText(text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "\r\n", "\n")
	return strings.ReplaceAll(text, "\n", "\r\n") + "\r\n"
}
