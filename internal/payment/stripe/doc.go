// Package stripe collects real money through Stripe. It implements
// payment.Processor and owns no table.
//
// What always holds: every call that makes something at Stripe carries an
// idempotency key made from our id, so that repeating it makes nothing twice;
// nothing is believed that Stripe did not sign (its events) or answer (its
// objects); no card data reaches this program, the payer gives it on Stripe's
// own page.
//
// The webhook endpoint at Stripe has to be made with the API version that this
// program is built for, which is stripe.APIVersion; events of another one are
// refused.
package stripe
