package lambda

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"homeport.dev/homeport/internal/provider/cloudapi"
)

type sshKey struct {
	Name      string `json:"name"`
	PublicKey string `json:"public_key"`
}

// bootstrapKey is what Lambda calls our bootstrap key, which it is told once.
// When it refuses to be told, another node may have been faster.
func (c *Cloud) bootstrapKey(ctx context.Context) (string, error) {
	c.mu.Lock()
	known := c.keyName
	c.mu.Unlock()
	if known != "" {
		return known, nil
	}
	found, err := c.findKey(ctx)
	if err == nil && found == "" {
		var refusal error
		if found, refusal = c.addKey(ctx); refusal != nil {
			if found, err = c.findKey(ctx); err == nil && found == "" {
				err = refusal
			}
		}
	}
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	c.keyName = found
	c.mu.Unlock()
	return found, nil
}

func (c *Cloud) forgetKey() {
	c.mu.Lock()
	c.keyName = ""
	c.mu.Unlock()
}

// findKey looks for our key; "" = Lambda does not have it.
func (c *Cloud) findKey(ctx context.Context) (string, error) {
	var answer struct {
		Data *[]sshKey `json:"data"`
	}
	err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodGet, Path: "/ssh-keys", Class: calls}, &answer)
	if err == nil && answer.Data == nil {
		err = errors.New("the answer has no list")
	}
	if err != nil {
		return "", fmt.Errorf("list the SSH keys: %w", err)
	}
	for _, k := range *answer.Data {
		if k.Name != "" && sameKey(k.PublicKey, c.publicKey) {
			return k.Name, nil
		}
	}
	return "", nil
}

// addKey tells Lambda our key. Its name is the key's own, since names are unique
// in an account that several installations may share.
func (c *Cloud) addKey(ctx context.Context) (string, error) {
	sum := sha256.Sum256([]byte(strings.Join(strings.Fields(c.publicKey)[:2], " ")))
	name := "homeport-" + hex.EncodeToString(sum[:4])
	var answer struct {
		Data sshKey `json:"data"`
	}
	call := cloudapi.Call{Method: http.MethodPost, Path: "/ssh-keys", Body: sshKey{name, c.publicKey}, Class: calls}
	err := c.api.Do(ctx, call, &answer)
	if err == nil && (answer.Data.Name == "" || !sameKey(answer.Data.PublicKey, c.publicKey)) {
		err = errors.New("the answer names another key, or none")
	}
	if err != nil {
		return "", fmt.Errorf("add the bootstrap key: %w", err)
	}
	return answer.Data.Name, nil
}

// sameKey compares two lines of keys but for their comments.
func sameKey(a, b string) bool {
	one, two := strings.Fields(a), strings.Fields(b)
	return len(one) >= 2 && len(two) >= 2 && slices.Equal(one[:2], two[:2])
}
