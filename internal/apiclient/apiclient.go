// Package apiclient is a typed client of Homeport's API.
package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"homeport.dev/homeport/internal/apitype"
)

// A Client calls the API for one signed-in person and one team.
type Client struct {
	Base   string // of the API, such as http://localhost:8080/api
	Token  string // the session's access token
	TeamID string
	HTTP   *http.Client // nil: the default one
}

// A Refusal is an answer other than 2xx.
type Refusal struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// Error is the code and the sentence.
func (r *Refusal) Error() string { return fmt.Sprintf("%d %s: %s", r.Status, r.Code, r.Detail) }

// Call makes one call. in is the JSON body, nil for none; out takes the answer,
// nil to drop it. A refusal is a *Refusal.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		r := &Refusal{}
		_ = json.NewDecoder(resp.Body).Decode(r) // a proxy may answer something else
		r.Status = resp.StatusCode
		return fmt.Errorf("%s %s: %w", method, path, r)
	}
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// team is the query that names the team.
func (c *Client) team() string { return "?team_id=" + url.QueryEscape(c.TeamID) }

// UserInfo returns who is signed in.
func (c *Client) UserInfo(ctx context.Context) (apitype.UserInfo, error) {
	var out apitype.UserInfo
	return out, c.Call(ctx, http.MethodGet, "/user/info", nil, &out)
}

// Resources returns what can be rented, by GPU type.
func (c *Client) Resources(ctx context.Context) (map[string][]apitype.Offer, error) {
	var out map[string][]apitype.Offer
	return out, c.Call(ctx, http.MethodGet, "/resources"+c.team(), nil, &out)
}

// Pods returns the team's pods.
func (c *Client) Pods(ctx context.Context) ([]apitype.Pod, error) {
	var out []apitype.Pod
	return out, c.Call(ctx, http.MethodGet, "/pods"+c.team(), nil, &out)
}

// CreatePod rents a pod.
func (c *Client) CreatePod(ctx context.Context, in apitype.CreatePod) (apitype.Pod, error) {
	var out apitype.Pod
	return out, c.Call(ctx, http.MethodPost, "/pods", in, &out)
}

// DeletePod ends a pod.
func (c *Client) DeletePod(ctx context.Context, id string) error {
	return c.Call(ctx, http.MethodDelete, "/pods/"+url.PathEscape(id)+c.team(), nil, nil)
}

// Volumes returns the team's volumes.
func (c *Client) Volumes(ctx context.Context) ([]apitype.Volume, error) {
	var out []apitype.Volume
	return out, c.Call(ctx, http.MethodGet, "/volumes"+c.team(), nil, &out)
}

// CreateVolume creates a volume in the team.
func (c *Client) CreateVolume(ctx context.Context, name string) (apitype.Volume, error) {
	var out apitype.Volume
	return out, c.Call(ctx, http.MethodPost, "/volumes", apitype.CreateVolume{Name: name, TeamID: c.TeamID}, &out)
}

// Segments returns the rates at which a volume was charged.
func (c *Client) Segments(ctx context.Context, volumeID string) ([]apitype.Segment, error) {
	var out []apitype.Segment
	return out, c.Call(ctx, http.MethodGet, "/volumes/"+url.PathEscape(volumeID)+"/segments"+c.team(), nil, &out)
}

// CreateSSHKey keeps a public key.
func (c *Client) CreateSSHKey(ctx context.Context, name, publicKey string) (apitype.SSHKey, error) {
	var out apitype.SSHKey
	in := apitype.CreateSSHKey{Name: name, PublicKey: publicKey, TeamID: c.TeamID}
	return out, c.Call(ctx, http.MethodPost, "/ssh-keys", in, &out)
}

// Balance returns the wallet with its estimates.
func (c *Client) Balance(ctx context.Context) (apitype.Balance, error) {
	var out apitype.Balance
	return out, c.Call(ctx, http.MethodGet, "/wallet/balance"+c.team()+"&include_estimates=true", nil, &out)
}

// Transactions returns the newest lines of the wallet's history.
func (c *Client) Transactions(ctx context.Context) ([]apitype.Transaction, error) {
	var out []apitype.Transaction
	return out, c.Call(ctx, http.MethodGet, "/wallet/transactions"+c.team()+"&limit=1000", nil, &out)
}

// CheckoutTeam starts the subscription of a new team.
func (c *Client) CheckoutTeam(ctx context.Context, in apitype.TeamCheckout) (apitype.Checkout, error) {
	var out apitype.Checkout
	return out, c.Call(ctx, http.MethodPost, "/teams/checkout", in, &out)
}

// CheckoutCredit starts a payment of an amount in USD, as decimal text.
func (c *Client) CheckoutCredit(ctx context.Context, amount string) (apitype.Checkout, error) {
	var out apitype.Checkout
	in := apitype.CreditCheckout{Amount: apitype.Decimal(amount)}
	return out, c.Call(ctx, http.MethodPost, "/wallet/credit/checkout"+c.team(), in, &out)
}
