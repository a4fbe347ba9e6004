package hyperstack

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

// Balance implements provider.Accountant: the credit of our organization.
func (c *Cloud) Balance(ctx context.Context) (money.USD, error) {
	var said struct {
		Data struct {
			Credit json.Number `json:"credit"`
		} `json:"data"`
	}
	if err := c.api.Do(ctx, cloudapi.Call{Method: http.MethodGet, Path: "/billing/user-credit/credit", Class: cloudapi.Balance}, &said); err != nil {
		return 0, err
	}
	amount, err := money.ParseDown(said.Data.Credit.String())
	if err != nil {
		return 0, fmt.Errorf("credit %q: %w", said.Data.Credit, err)
	}
	return amount, nil
}
