package wallet

import "github.com/google/uuid"

// The accounts of the house, made by the migration that made the table.
var (
	stripeClearing = uuid.MustParse("00000000-0000-4000-8000-000000000001")
	testClearing   = uuid.MustParse("00000000-0000-4000-8000-000000000002")
	usagePod       = uuid.MustParse("00000000-0000-4000-8000-000000000003")
	usageStorage   = uuid.MustParse("00000000-0000-4000-8000-000000000004")
	dispute        = uuid.MustParse("00000000-0000-4000-8000-000000000005")
	promoAccount   = uuid.MustParse("00000000-0000-4000-8000-000000000006")
	writeoff       = uuid.MustParse("00000000-0000-4000-8000-000000000007")
)

// clearing is the account that a credit of this source comes from.
func (s Source) clearing() (uuid.UUID, bool) {
	switch s {
	case Stripe:
		return stripeClearing, true
	case Test:
		return testClearing, true
	case Disputed:
		return dispute, true
	case Promo:
		return promoAccount, true
	}
	return uuid.Nil, false
}

// usage is the account that collects what resources of this kind cost.
func (k Kind) usage() uuid.UUID {
	if k == PodRuntime {
		return usagePod
	}
	return usageStorage
}
