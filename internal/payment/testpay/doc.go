// Package testpay is the built-in test checkout: a small stand-in for Stripe.
// It owns the tables testpay_*.
//
// A payer chooses on its page how the payment ends. A paid session queues an
// event in Stripe's own format, which is signed with this installation's
// secret and posted over HTTP to our own webhook until that answers 200: from
// there on, test money takes the same way as real money.
//
// Who tests plays the payer's bank too: refunds, disputes and how they end; and
// can have events delivered badly, on purpose (Chaos).
//
// It mints spendable credit, so the server refuses to start with it beside a
// Stripe key, or unasked beside a real provider's key.
package testpay
