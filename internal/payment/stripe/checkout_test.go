package stripe_test

import (
	"testing"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
)

// Whatever ways to pay an account has switched on, credit is bought with those
// that say at once whether they paid.
func TestATopUpTakesNoMethodThatPaysLater(t *testing.T) {
	t.Parallel()
	w := connect(t, false)
	_, err := w.CreateTopUp(t.Context(), payment.Order{
		ID: id.New(), TeamID: id.New(), CustomerID: "cus_1", Amount: 25 * money.Dollar,
		SuccessURL: "https://homeport.test/billing?checkout=success", CancelURL: "https://homeport.test/billing?checkout=cancel",
	})
	if err != nil {
		t.Fatal(err)
	}
	w.last(t, "POST /v1/checkout/sessions").want(t, "", map[string]string{"payment_method_types[0]": "card", "payment_method_types[1]": ""})
}
