// Package payment takes money in: it makes checkout orders (topup), and turns a
// processor's paid events into credit (payment_event). It keeps what a team is
// to a processor (payment_customer).
//
// What always holds: only a paid and verified event, or a paid session that
// was read from the processor, posts a credit; the event's row, the order's
// state and the credit are one transaction; a payment is posted once, whatever
// number of events, in whatever order, tell of it, because its ledger key is
// the payment's id; the amount and currency are those of the order. Coming
// back from a checkout credits nothing.
//
// What refunds and disputes took is kept in payment_case. Their states only go
// forward and each moves money once, so their events, too, may come twice, late
// and in any order, also before the payment that they are about.
//
// A team may save a card (card_setup, payment_card) and agree to have its wallet
// topped up by it (auto_topup): then an order is made without a person, one at a
// time, committed before the processor is asked under its id, and credited by
// the same code.
//
// The processors themselves are payment/stripe and payment/testpay. Both speak
// Stripe's event format, so both go through the same code.
package payment
