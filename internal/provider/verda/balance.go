package verda

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
)

var _ provider.Accountant = (*Cloud)(nil)

// Balance implements provider.Accountant.
func (c *Cloud) Balance(ctx context.Context) (money.USD, error) {
	var said struct {
		Amount   json.Number `json:"amount"`
		Currency string      `json:"currency"`
	}
	if err := c.do(ctx, cloudapi.Call{Method: http.MethodGet, Path: "/balance", Class: cloudapi.Balance}, &said); err != nil {
		return 0, err
	}
	amount, err := money.ParseDown(said.Amount.String())
	if err != nil || !strings.EqualFold(said.Currency, "usd") {
		return 0, fmt.Errorf("balance %q in %q is not in USD", said.Amount, said.Currency)
	}
	return amount, nil
}
