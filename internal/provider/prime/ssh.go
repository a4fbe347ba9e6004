package prime

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"homeport.dev/homeport/internal/provider/cloudapi"
)

// keyName is what our bootstrap key is called at Prime.
const keyName = "homeport"

type sshKey struct {
	ID        string `json:"id"`
	PublicKey string `json:"publicKey"`
}

type sshKeyRequest struct {
	Name      string `json:"name"`
	PublicKey string `json:"publicKey"`
}

// bootstrapKey is what Prime calls our bootstrap key, which it is told once. Of
// two nodes that tell it at the same time both keys are right.
func (c *Cloud) bootstrapKey(ctx context.Context) (string, error) {
	own := c.pusher.PublicKey()
	c.mu.Lock()
	known, of := c.keyID, c.keyOf
	c.mu.Unlock()
	if known != "" && of == own {
		return known, nil
	}
	var found string
	err := each(ctx, c, "/ssh_keys/", func(k sshKey) {
		if found == "" && sameKey(k.PublicKey, own) {
			found = k.ID
		}
	})
	if err != nil {
		return "", fmt.Errorf("list the SSH keys: %w", err)
	}
	if found == "" {
		var made sshKey
		call := cloudapi.Call{Method: http.MethodPost, Path: "/ssh_keys/", Body: sshKeyRequest{keyName, own}, Class: reads}
		if err := c.api.Do(ctx, call, &made); err != nil {
			return "", fmt.Errorf("add the bootstrap key: %w", err)
		}
		if found = made.ID; found == "" {
			return "", fmt.Errorf("add the bootstrap key: the answer names no key")
		}
	}
	c.mu.Lock()
	c.keyID, c.keyOf = found, own
	c.mu.Unlock()
	return found, nil
}

func (c *Cloud) forgetKey() {
	c.mu.Lock()
	c.keyID = ""
	c.mu.Unlock()
}

// sameKey compares two lines of keys but for their comments.
func sameKey(a, b string) bool {
	one, two := strings.Fields(a), strings.Fields(b)
	return len(one) >= 2 && len(two) >= 2 && slices.Equal(one[:2], two[:2])
}

// oneOrMany is a text, or the texts of a pod's nodes, of which any may be null.
type oneOrMany []string

// UnmarshalJSON implements json.Unmarshaler.
func (o *oneOrMany) UnmarshalJSON(b []byte) error {
	var one *string
	if json.Unmarshal(b, &one) == nil {
		*o = nil
		if one != nil {
			*o = oneOrMany{*one}
		}
		return nil
	}
	var many []*string
	if err := json.Unmarshal(b, &many); err != nil {
		return fmt.Errorf("neither a text nor a list of texts: %w", err)
	}
	*o = nil
	for _, m := range many {
		if m != nil {
			*o = append(*o, *m)
		}
	}
	return nil
}

// login is where and as whom a machine lets the bootstrap key in.
type login struct {
	user, host string
	port       int
}

// login reads "root@192.0.2.7 -p 22", with or without an ssh before it; false =
// it is not known yet.
func (o oneOrMany) login() (login, bool) {
	if len(o) != 1 {
		return login{}, false
	}
	at := login{port: 22}
	words := strings.Fields(o[0])
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case word == "ssh" && i == 0:
		case word == "-p" && i+1 < len(words):
			i++
			port, err := strconv.Atoi(words[i])
			if err != nil || port < 1 || port > 65535 {
				return login{}, false
			}
			at.port = port
		case strings.Count(word, "@") == 1 && at.host == "":
			at.user, at.host, _ = strings.Cut(word, "@")
		default:
			return login{}, false
		}
	}
	ok := at.user != "" && at.host != "" && (net.ParseIP(at.host) != nil || !strings.ContainsAny(at.host, ":/?#[]%"))
	return at, ok
}
