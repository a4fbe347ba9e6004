//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

const maxToken = 4 << 10 // bytes

// options of `homeport-agent run`, from the environment. The token is not
// among them: every process of the pod could read it there.
type options struct {
	url       string   // HOMEPORT_AGENT_URL: of the control plane
	token     string   // read from HOMEPORT_AGENT_TOKEN_FILE, else from standard input
	ssh       []string // HOMEPORT_AGENT_SSH: addresses to listen on, by commas; default :22
	stateDir  string   // HOMEPORT_AGENT_STATE_DIR; default /var/lib/homeport-agent
	workspace string   // HOMEPORT_AGENT_WORKSPACE; default /workspace
}

// readOptions reads the options, and the token from where they say. A token
// file stays: the agent may be started again.
func readOptions(environ []string, stdin io.Reader) (options, error) {
	o := options{ssh: []string{":22"}, stateDir: "/var/lib/homeport-agent", workspace: "/workspace"}
	tokenFile := ""
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if value == "" {
			continue
		}
		switch name {
		case "HOMEPORT_AGENT_URL":
			o.url = value
		case "HOMEPORT_AGENT_TOKEN_FILE":
			tokenFile = value
		case "HOMEPORT_AGENT_SSH":
			o.ssh = strings.Split(value, ",")
		case "HOMEPORT_AGENT_STATE_DIR":
			o.stateDir = value
		case "HOMEPORT_AGENT_WORKSPACE":
			o.workspace = value
		}
	}
	if o.url == "" {
		return o, errors.New("HOMEPORT_AGENT_URL is not set")
	}
	from := stdin
	if tokenFile != "" {
		f, err := os.Open(tokenFile)
		if err != nil {
			return o, fmt.Errorf("open the token: %w", err)
		}
		defer f.Close()
		from = f
	}
	b, err := io.ReadAll(io.LimitReader(from, maxToken))
	if err != nil {
		return o, fmt.Errorf("read the token: %w", err)
	}
	if o.token = strings.TrimSpace(string(b)); o.token == "" {
		return o, errors.New("the token is empty")
	}
	return o, nil
}
