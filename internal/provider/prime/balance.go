package prime

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
)

var _ provider.Accountant = (*Cloud)(nil)

// Balance implements provider.Accountant: the wallet of the key's account. Prime's
// own programs read it; its description of the compute API leaves it out.
func (c *Cloud) Balance(ctx context.Context) (money.USD, error) {
	var said struct {
		Balance  json.Number `json:"balance_usd"`
		Currency string      `json:"currency"`
	}
	call := cloudapi.Call{Method: http.MethodGet, Path: "/billing/wallet", Query: url.Values{"limit": {"1"}}, Class: cloudapi.Balance}
	if err := c.api.Do(ctx, call, &said); err != nil {
		return 0, err
	}
	amount, err := money.ParseDown(said.Balance.String())
	if err != nil || !strings.EqualFold(said.Currency, "usd") {
		return 0, fmt.Errorf("balance %q in %q is not in USD", said.Balance, said.Currency)
	}
	return amount, nil
}
