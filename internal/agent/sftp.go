//go:build linux

package agent

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pkg/sftp"
)

// SFTPCommand is the first argument with which the agent's binary is run again
// to serve one SFTP session, from the folder it is started in.
const SFTPCommand = "sftp"

// stdio is the session's channel as the child sees it.
type stdio struct {
	io.Reader
	io.Writer
}

// Close is what the server calls when it ends; the process ends with it.
func (stdio) Close() error { return nil }

// SFTP serves one session on standard input and output, until the client ends
// it. It runs as a process of the user's, with the user's rights.
func SFTP() error {
	// The package's own option for a folder would make every link absolute.
	server, err := sftp.NewServer(stdio{os.Stdin, os.Stdout})
	if err != nil {
		return fmt.Errorf("start sftp: %w", err)
	}
	if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("serve sftp: %w", err)
	}
	return nil
}
