package verda

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
)

// scriptRequest is the body of POST /scripts.
type scriptRequest struct {
	Name   string `json:"name"`
	Script string `json:"script"`
}

// script is one of GET /scripts.
type script struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// A script without a machine is kept for long enough that none can appear any
// more, and of the others a few are deleted at a time, while it takes no more
// of its caller's time than sweepFor.
const (
	scriptKept  = time.Hour
	sweepAtMost = 20
	sweepFor    = 10 * time.Second
)

// scriptName is the machine's name, and when the script was made: Verda's list
// does not tell that.
func scriptName(machine string, at time.Time) string {
	return machine + "." + strconv.FormatInt(at.Unix(), 10)
}

// readScriptName is the way back; false = the script is none of ours.
func readScriptName(name string) (machine string, at time.Time, ok bool) {
	machine, seconds, _ := strings.Cut(name, ".")
	n, err := strconv.ParseInt(seconds, 10, 64)
	return machine, time.Unix(n, 0), err == nil && n > 0
}

// addScript leaves a machine's start-up script at Verda, and returns its id.
func (c *Cloud) addScript(ctx context.Context, l provider.Launch, text string) (string, error) {
	body := scriptRequest{Name: scriptName(l.Name, c.clock.Wall()), Script: text}
	var answer cloudapi.Answer
	err := c.do(ctx, cloudapi.Call{
		Method: http.MethodPost, Path: "/scripts", Body: body, Class: makes, Hide: []string{text, l.Bootstrap.Token},
	}, &answer)
	if err != nil {
		return "", fmt.Errorf("add the script of %s: %w", l.Name, err)
	}
	id, ok := idOf(answer)
	if !ok {
		return "", fmt.Errorf("add the script of %s: the answer names none", l.Name)
	}
	return id, nil
}

// dropScript deletes a script, also for a caller who is tired of waiting. What
// fails is left to sweep.
func (c *Cloud) dropScript(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := c.deleteScript(ctx, id); err != nil {
		c.logger.WarnContext(ctx, "a start-up script is not deleted yet", "cloud", Name, "script", id, "err", err)
	}
}

func (c *Cloud) deleteScript(ctx context.Context, id string) error {
	err := c.do(ctx, cloudapi.Call{Method: http.MethodDelete, Path: "/scripts/" + url.PathEscape(id), Class: ends}, nil)
	var f *cloudapi.Failure
	if errors.As(err, &f) && (f.Status == http.StatusNotFound || f.Status < 500 && f.Says("not found", "invalid script id", "does not exist")) {
		return nil
	}
	return err
}

// sweep deletes the scripts of machines that are not there any more, such as
// those of a launch or an end that broke off.
func (c *Cloud) sweep(ctx context.Context, prefix string, machines []provider.Machine) error {
	ctx, cancel := context.WithTimeout(ctx, sweepFor)
	defer cancel()
	scripts, err := list[script](ctx, c, "/scripts", nil)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, m := range machines {
		there[m.Name] = m.State != provider.Gone
	}
	deleted := 0
	for _, s := range scripts {
		machine, at, ours := readScriptName(s.Name)
		if !ours || !strings.HasPrefix(machine, prefix) || there[machine] || c.clock.Wall().Sub(at) < scriptKept || deleted == sweepAtMost {
			continue
		}
		deleted++
		if err := c.deleteScript(ctx, s.ID); err != nil {
			return fmt.Errorf("delete the script of %s: %w", machine, err)
		}
	}
	return nil
}
