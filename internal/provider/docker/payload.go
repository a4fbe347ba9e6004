package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/moby/moby/client"
)

// payloadFile is what a container's first program runs. It holds the instance's
// token and is root's alone: a container's command is there to see for all of its
// programs, and for whoever may list containers.
const payloadFile = "/opt/homeport/start"

// place puts the payload into a container that does not run yet. An engine that
// restarts it runs the same file.
func (c *Cloud) place(ctx context.Context, made, payload string) error {
	packed, err := pack(payload)
	if err != nil {
		return err
	}
	return do(ctx, makeFor, func(ctx context.Context) error {
		_, err := c.engine.CopyToContainer(ctx, made, client.CopyToContainerOptions{DestinationPath: "/", Content: bytes.NewReader(packed)})
		return err
	}, payload)
}

// pack is an archive of the payload and its folder.
func pack(payload string) ([]byte, error) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	file := strings.TrimPrefix(payloadFile, "/")
	for _, h := range []*tar.Header{
		{Typeflag: tar.TypeDir, Name: path.Dir(file) + "/", Mode: 0o755},
		{Typeflag: tar.TypeReg, Name: file, Mode: 0o600, Size: int64(len(payload))},
	} {
		if err := t.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("pack the payload: %w", err)
		}
	}
	if _, err := io.WriteString(t, payload); err != nil {
		return nil, fmt.Errorf("pack the payload: %w", err)
	}
	if err := t.Close(); err != nil {
		return nil, fmt.Errorf("pack the payload: %w", err)
	}
	return b.Bytes(), nil
}
