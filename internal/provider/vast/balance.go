package vast

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
)

var _ provider.Accountant = (*Cloud)(nil)

// Balance implements provider.Accountant. What was paid in advance is in credit,
// which Vast's description leaves out; balance is what it says of an account
// without one.
func (c *Cloud) Balance(ctx context.Context) (money.USD, error) {
	var said struct {
		Credit  json.Number `json:"credit"`
		Balance json.Number `json:"balance"`
	}
	if err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodGet, Path: "/v0/users/current/", Class: cloudapi.Balance}, &said); err != nil {
		return 0, err
	}
	text := said.Credit
	if text == "" {
		text = said.Balance
	}
	amount, err := money.ParseDown(text.String())
	if err != nil {
		return 0, fmt.Errorf("credit %q: %w", text, err)
	}
	return amount, nil
}
