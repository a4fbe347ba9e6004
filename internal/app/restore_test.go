package app

import (
	"testing"

	"homeport.dev/homeport/internal/payment/testpay"
)

// The backup does not know what cards paid after it: a team whose balance was
// topped up since looks poor, and must not pay again.
func TestNoCardIsChargedAfterARestoreUntilTheOperatorSaysSo(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{false, true} { // an order was in the backup
		q := newQuay(t)
		ada := q.sailor("ada")
		docks := q.crew(ada)
		q.charge() // this history of the database is known
		q.agreeWith(docks, testpay.Pay)
		if begun {
			q.must(q.payments.FollowAutoTopUps(t.Context()))
		}
		q.exec(`update installation set cluster = '1/00000001'`) // the backup was made elsewhere
		for range 3 {
			q.charge()
		}
		var orders, asked int
		q.must(q.pool.QueryRow(t.Context(), `select count(*), count(asked_at) from topup where automatic`).Scan(&orders, &asked))
		if b, err := q.wallet.Balance(t.Context(), docks, q.clock.Now()); err != nil || b.Balance != 0 || asked != 0 || (orders == 1) != begun {
			t.Errorf("begun %t: %d orders, %d of them asked for, balance %s, %v", begun, orders, asked, b.Balance, err)
		}
		since, err := q.pods.Arm(t.Context())
		if q.must(err); since == nil {
			t.Error("nothing was to confirm")
		}
		q.exec(`update topup set read_at = $1 where status = 'open'`, q.clock.Wall())
		q.charge()
		q.charge()
		q.must(q.pool.QueryRow(t.Context(), `select count(*) from topup where automatic and status = 'paid'`).Scan(&orders))
		if b, err := q.wallet.Balance(t.Context(), docks, q.clock.Now()); err != nil || b.Balance.Decimal() != "25" || orders != 1 {
			t.Errorf("begun %t: confirmed, the balance is %s by %d payments, %v", begun, b.Balance, orders, err)
		}
	}
}
