// Package bootstrap is how the agent gets onto a machine: one payload below
// 1 KB, the same for every cloud, in the forms in which clouds take it. The
// payload fetches the node's installer and hands it the instance's token on its
// standard input: the token is in no URL, no argument and no environment. It
// tries again until it works or an hour has passed.
package bootstrap

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"homeport.dev/homeport/internal/provider"
)

// MaxPayload is the size of a payload in bytes, at most: clouds that take least
// take 4096, in base64 and with their own words around it.
const MaxPayload = 1024

// InstallPath is where a node serves the installer.
const InstallPath = "/agent/install"

var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)

// payload is a POSIX script. Its parts: LD_PRELOAD of some images breaks curl;
// the installer is run only when it arrived whole; a user who is not root has sudo.
const payload = `#!/bin/sh
unset LD_PRELOAD
u='%s'
t='%s'
m='%s'
s=
[ "$(id -u)" = 0 ] || s='sudo -n'
get() { curl -fsSL -m 60 "$u" 2>/dev/null || wget -qO- -T 60 "$u"; }
go() { i=$(get) && [ "${i##*# end}" = "" ] && printf 'HP_TOKEN=%%s\nHP_MODE=%%s\n%%s\n' "$t" "$m" "$i" | $s sh; }
n=0
until go; do
n=$((n+1))
[ $n -lt 360 ] || exit 1
sleep 10
done
`

// modes of the installer: a machine keeps the agent by its init, in a container
// the payload is the only process and stays.
const (
	machine   = "machine"
	container = "container"
)

func render(b provider.Bootstrap, mode string) (string, error) {
	u, err := url.Parse(b.AgentURL)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.Path != "" || u.RawQuery != "" || u.User != nil ||
		strings.ContainsAny(b.AgentURL, "'\\\n\r") {
		return "", fmt.Errorf("agents cannot dial %q", b.AgentURL)
	}
	if !tokenForm.MatchString(b.Token) {
		return "", fmt.Errorf("the instance's token is not of the form that a script can carry")
	}
	text := fmt.Sprintf(payload, b.AgentURL+InstallPath, b.Token, mode)
	if len(text) > MaxPayload {
		return "", fmt.Errorf("the start-up script has %d bytes, more than %d", len(text), MaxPayload)
	}
	return text, nil
}

// Script is the payload as a script, for clouds that run one at the first boot.
func Script(b provider.Bootstrap) (string, error) { return render(b, machine) }

// CloudInit is the payload as cloud-init's user data.
func CloudInit(b provider.Bootstrap) (string, error) {
	script, err := render(b, machine)
	if err != nil {
		return "", err
	}
	return "#cloud-config\nwrite_files:\n- path: /run/homeport-start\n  permissions: '0700'\n  encoding: b64\n  content: " +
		base64.StdEncoding.EncodeToString([]byte(script)) + "\nruncmd:\n- [sh, /run/homeport-start]\n- [rm, -f, /run/homeport-start]\n", nil
}

// Container is the payload as a script that a container's first program runs; it
// ends only with the agent.
func Container(b provider.Bootstrap) (string, error) { return render(b, container) }

// Args is Container as the command of a container. The shell that has it among its
// arguments, which every program of the pod can see, gives way to one that reads it.
func Args(b provider.Bootstrap) ([]string, error) {
	script, err := Container(b)
	if err != nil {
		return nil, err
	}
	return []string{"/bin/sh", "-c", "exec /bin/sh -s <<'HOMEPORT'\n" + script + "HOMEPORT\n"}, nil
}
