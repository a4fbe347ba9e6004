package agentedge

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the installer
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"text/template"
)

//go:embed install.sh
var installer string

// Arches are the processors for which a node may have an agent, as Go names them.
var Arches = []string{"amd64", "arm64"}

// A Binary is the agent for one processor.
type Binary struct {
	Path string
	Sum  string // SHA-256 of the file, hex
}

// FindAgents returns the agents that path names, by processor; path makes a
// file's name of one. A file that is not there is left out.
func FindAgents(path func(arch string) string) (map[string]Binary, error) {
	found := map[string]Binary{}
	for _, arch := range Arches {
		sum, err := hashFile(path(arch))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the agent for %s: %w", arch, err)
		}
		found[arch] = Binary{Path: path(arch), Sum: sum}
	}
	return found, nil
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Install serves what a new machine fetches: GET /agent/install, a script, and
// GET /agent/bin/{sha256}, the agents. Neither is a secret. A binary's address
// is its hash, so that of nodes with different versions one never gives what
// another's script does not expect. base is the address at which machines reach
// the nodes.
func Install(base string, agents map[string]Binary) (http.Handler, error) {
	t, err := template.New("install").Option("missingkey=error").Parse(installer)
	if err != nil {
		return nil, fmt.Errorf("the installer: %w", err)
	}
	var script bytes.Buffer
	if err := t.Execute(&script, map[string]any{"Base": base, "Agents": agents}); err != nil {
		return nil, fmt.Errorf("the installer: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /agent/install", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/x-shellscript; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(script.Bytes()) // the machine asks again
	})
	mux.HandleFunc("GET /agent/bin/{sum}", func(w http.ResponseWriter, r *http.Request) {
		for _, b := range agents {
			if b.Sum == r.PathValue("sum") {
				w.Header().Set("Content-Type", "application/octet-stream")
				w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
				http.ServeFile(w, r, b.Path)
				return
			}
		}
		http.Error(w, "There is no such agent here.", http.StatusNotFound)
	})
	return mux, nil
}
