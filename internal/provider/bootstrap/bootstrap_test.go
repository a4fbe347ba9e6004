package bootstrap_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"homeport.dev/homeport/internal/bintest"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/bootstrap"
)

var long = provider.Bootstrap{AgentURL: "https://a-rather-long-name-of-a-homeport.cloud.example.com:8443", Token: strings.Repeat("t", 64)}

func TestEveryFormIsSmallAndHoldsThePayload(t *testing.T) {
	t.Parallel()
	script, err := bootstrap.Script(long)
	if err != nil || len(script) > bootstrap.MaxPayload {
		t.Fatalf("%d bytes, %v", len(script), err)
	}
	init, err := bootstrap.CloudInit(long)
	if err != nil || !strings.HasPrefix(init, "#cloud-config\n") || !strings.Contains(init, base64.StdEncoding.EncodeToString([]byte(script))) {
		t.Errorf("cloud-init is %s, %v", init, err)
	}
	args, err := bootstrap.Args(long)
	if err != nil || len(strings.Join(args, " ")) > 4096 || args[0] != "/bin/sh" || !strings.Contains(args[2], "m='container'") {
		t.Errorf("arguments are %q, %v", args, err)
	}
	for _, line := range strings.Split(script, "\n") {
		if strings.Contains(line, "curl") && strings.Contains(line, long.Token) {
			t.Errorf("the token is an argument: %s", line)
		}
	}
}

func TestWhatCouldBreakOutOfTheScriptIsRefused(t *testing.T) {
	t.Parallel()
	for _, b := range []provider.Bootstrap{
		{AgentURL: "", Token: "t"},
		{AgentURL: "https://x.example/path", Token: "t"},
		{AgentURL: "https://x.example'; reboot; '", Token: "t"},
		{AgentURL: "file:///etc/passwd", Token: "t"},
		{AgentURL: "https://x.example", Token: ""},
		{AgentURL: "https://x.example", Token: "t'; reboot; '"},
		{AgentURL: "https://x.example", Token: "two\nlines"},
		{AgentURL: "https://x.example", Token: strings.Repeat("t", 900)},
	} {
		if script, err := bootstrap.Script(b); err == nil {
			t.Errorf("%+v gives %s", b, script)
		}
	}
}

// TestPayloadRunsWhatItFetched runs the payload for real, with curl and then
// with wget alone: it gets past a node that fails and a script that was cut
// off, and the token is on standard input only.
func TestPayloadRunsWhatItFetched(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"curl", "wget"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			out := filepath.Join(dir, "out")
			whole := "env >" + out + ".env\nprintf '%s %s' \"$HP_TOKEN\" \"$HP_MODE\" >" + out + "\n# end\n"
			calls := 0
			node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.String() != bootstrap.InstallPath {
					t.Errorf("asked for %s", r.URL)
				}
				switch calls++; calls {
				case 1:
					http.Error(w, "starting", http.StatusServiceUnavailable)
				case 2:
					_, _ = w.Write([]byte("echo cut >" + out + ".cut\n"))
				default:
					_, _ = w.Write([]byte(whole))
				}
			}))
			t.Cleanup(node.Close)
			script, err := bootstrap.Script(provider.Bootstrap{AgentURL: node.URL, Token: "secret-token"})
			if err != nil {
				t.Fatal(err)
			}
			tools(t, dir, tool, map[string]string{"sleep": "#!/bin/sh\n", "id": "#!/bin/sh\necho 0\n"})
			cmd := exec.Command("/bin/sh", "-s")
			cmd.Stdin = strings.NewReader(script)
			cmd.Env = []string{"PATH=" + dir, "LD_PRELOAD=/no/such/library.so"}
			if said, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			got, _ := os.ReadFile(out)
			env, _ := os.ReadFile(out + ".env")
			_, cut := os.Stat(out + ".cut")
			if string(got) != "secret-token machine" || strings.Contains(string(env), "secret-token") || cut == nil || calls != 3 {
				t.Errorf("after %d calls the installer had %q; cut off script ran: %t; environment: %s", calls, got, cut == nil, env)
			}
		})
	}
}

// TestTokenIsNoArgumentInAContainer runs a container's command, as it is and as
// clouds get it that take one line: while the installer runs, none of the programs
// that brought it was started with the token. Arguments are there for all to see.
func TestTokenIsNoArgumentInAContainer(t *testing.T) {
	t.Parallel()
	programs := map[string]string{}
	for _, name := range []string{"cat", "tr", "base64"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		programs[name] = "#!/bin/sh\nexec " + path + ` "$@"` + "\n"
	}
	dir := t.TempDir()
	tools(t, dir, "curl", programs)
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`echo "$HP_MODE"; cat /proc/$$/cmdline /proc/$PPID/cmdline /proc/$TOP/cmdline | tr '\0' ' '` + "\n# end\n"))
	}))
	t.Cleanup(node.Close)
	args, err := bootstrap.Args(provider.Bootstrap{AgentURL: node.URL, Token: "secret-token"})
	if err != nil {
		t.Fatal(err)
	}
	inBase64 := base64.StdEncoding.EncodeToString([]byte(args[2]))
	for name, line := range map[string]string{"as it is": args[2], "one line": `eval "$(echo ` + inBase64 + ` | base64 -d)"`} {
		cmd := exec.Command(args[0], args[1], "TOP=$$\nexport TOP\n"+line)
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
		said, err := cmd.CombinedOutput()
		if err != nil || !strings.HasPrefix(string(said), "container\nsh ") {
			t.Errorf("%s: %v: %s", name, err, said)
		}
		if strings.Contains(string(said), "secret-token") || strings.Contains(string(said), inBase64[:40]) {
			t.Errorf("%s: all see the token: %s", name, said)
		}
	}
}

// tools makes a folder of programs: the one that fetches, what a script needs,
// and stand-ins.
func tools(t *testing.T, dir, fetcher string, standIns map[string]string) {
	t.Helper()
	for _, name := range []string{fetcher, "sh", "env"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range standIns {
		bintest.WriteProgram(t, filepath.Join(dir, name), []byte(text))
	}
}
