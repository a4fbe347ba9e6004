package hyperstack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"homeport.dev/homeport/internal/provider/cloudapi"
)

// where is where the machines of a region stand, and the key that lies there.
type where struct{ environment, key string }

type environment struct {
	Name   string `json:"name"`
	Region string `json:"region"`
}

type keypair struct {
	Name        string      `json:"name"`
	PublicKey   string      `json:"public_key"`
	Environment environment `json:"environment"`
}

// place is where a region's machines go. What is missing there is made once; when
// Hyperstack refuses to make it, another node may have been faster.
func (c *Cloud) place(ctx context.Context, region string) (where, error) {
	c.mu.Lock()
	known, ok := c.places[region]
	c.mu.Unlock()
	if ok {
		return known, nil
	}
	w := where{environment: "homeport-" + strings.ToLower(region), key: c.keyName()}
	err := once(
		func() (bool, error) { return c.hasEnvironment(ctx, w.environment, region) },
		func() error {
			return c.add(ctx, "/core/environments", environment{w.environment, region})
		})
	if err != nil {
		return where{}, fmt.Errorf("environment of %s: %w", region, err)
	}
	err = once(
		func() (bool, error) { return c.hasKey(ctx, w) },
		func() error {
			return c.add(ctx, "/core/keypairs", map[string]string{"name": w.key, "environment_name": w.environment, "public_key": c.publicKey})
		})
	if err != nil {
		return where{}, fmt.Errorf("bootstrap key of %s: %w", region, err)
	}
	c.mu.Lock()
	c.places[region] = w
	c.mu.Unlock()
	return w, nil
}

func (c *Cloud) forget(region string) {
	c.mu.Lock()
	delete(c.places, region)
	c.mu.Unlock()
}

// once adds what is not there.
func once(there func() (bool, error), add func() error) error {
	ok, err := there()
	if ok || err != nil {
		return err
	}
	refusal := add()
	if refusal == nil {
		return nil
	}
	if ok, err = there(); err == nil && !ok {
		err = refusal
	}
	return err
}

// keyName is what our bootstrap key is called: its own name, since several
// installations may share an environment.
func (c *Cloud) keyName() string {
	sum := sha256.Sum256([]byte(strings.Join(strings.Fields(c.publicKey)[:2], " ")))
	return "homeport-" + hex.EncodeToString(sum[:4])
}

func (c *Cloud) add(ctx context.Context, path string, body any) error {
	var answer struct {
		Status bool `json:"status"`
	}
	err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodPost, Path: path, Body: body}, &answer)
	if err == nil && !answer.Status {
		err = errors.New("the answer says that it did not succeed")
	}
	return err
}

func (c *Cloud) hasEnvironment(ctx context.Context, name, region string) (bool, error) {
	list, err := pages(ctx, c, "/core/environments", "environments", func(e environment) string { return e.Name })
	i := slices.IndexFunc(list, func(e environment) bool { return e.Name == name })
	if err == nil && i >= 0 && list[i].Region != region {
		err = fmt.Errorf("%s stands in %s", name, list[i].Region)
	}
	return i >= 0, err
}

func (c *Cloud) hasKey(ctx context.Context, w where) (bool, error) {
	list, err := pages(ctx, c, "/core/keypairs", "keypairs", func(k keypair) string { return k.Environment.Name + "/" + k.Name })
	i := slices.IndexFunc(list, func(k keypair) bool { return k.Environment.Name == w.environment && k.Name == w.key })
	if err == nil && i >= 0 && !sameKey(list[i].PublicKey, c.publicKey) {
		err = fmt.Errorf("%s is another key", w.key)
	}
	return i >= 0, err
}

// sameKey compares two lines of keys but for their comments.
func sameKey(a, b string) bool {
	one, two := strings.Fields(a), strings.Fields(b)
	return len(one) >= 2 && len(two) >= 2 && slices.Equal(one[:2], two[:2])
}

// What a list is asked for, and at most.
const (
	onPage    = 100
	mostPages = 50
)

// pages reads a list of Hyperstack's to its end, which is where a page brings
// nothing new: it may show fewer at once than it was asked for, repeat some when
// others end meanwhile, and count the page where we would want the whole. id
// tells its elements apart.
func pages[T any](ctx context.Context, c *Cloud, path, member string, id func(T) string) ([]T, error) {
	var all []T
	seen := map[string]bool{}
	for n := 1; n <= mostPages; n++ {
		var answer map[string]json.RawMessage
		err := c.api.Do(ctx, cloudapi.Call{
			Method: http.MethodGet, Path: path, Query: url.Values{"page": {strconv.Itoa(n)}, "pageSize": {strconv.Itoa(onPage)}},
		}, &answer)
		var page *[]T
		if err == nil && answer[member] != nil {
			err = json.Unmarshal(answer[member], &page)
		}
		if err == nil && page == nil {
			err = errors.New("the answer has no list") // {} must not read as: all are gone
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", path, err)
		}
		fresh := 0
		for _, one := range *page {
			if !seen[id(one)] {
				seen[id(one)] = true
				all = append(all, one)
				fresh++
			}
		}
		if fresh == 0 {
			return all, nil
		}
	}
	return nil, fmt.Errorf("list %s: there is no last page", path)
}
