package wallet_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// march is what the month did to a team's balance.
func (h *house) march(scope team.Scope) wallet.Totals {
	h.t.Helper()
	months, err := h.w.Months(h.t.Context(), scope, h.clock.Now())
	if err != nil {
		h.t.Fatal(err)
	}
	return months[len(months)-1].Totals
}

// Two days in the trash at a dollar per hour cost 48 dollars, whatever else ran
// and was settled meanwhile; they are entered on the day on which they are
// charged, so that no month that is over changes.
func TestTheTimeInTheTrashIsChargedInFull(t *testing.T) {
	t.Parallel()
	const penny = perHour / 100
	for name, tt := range map[string]struct {
		at     time.Time // of the deletion
		other  money.Rate
		settle time.Duration // how often the other meter's days are posted; 0: never
	}{
		"alone":                          {at: noon},
		"beside a meter":                 {at: noon, other: penny},
		"beside a meter that is settled": {at: noon, other: penny, settle: 6 * time.Hour},
		"over the end of a month":        {at: time.Date(2027, 3, 31, 1, 0, 0, 0, time.UTC), other: penny, settle: 24 * time.Hour},
		"over it, alone":                 {at: time.Date(2027, 3, 31, 1, 0, 0, 0, time.UTC)},
		"until a midnight":               {at: time.Date(2027, 3, 30, 0, 0, 0, 0, time.UTC), other: penny, settle: 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			scope := h.scope()
			h.credit(scope.TeamID(), 100*money.Dollar)
			h.clock.Advance(tt.at.Sub(noon))
			if tt.other > 0 {
				h.start(scope.TeamID(), wallet.PodRuntime, tt.other)
			}
			for range 48 {
				h.clock.Advance(time.Hour)
				if tt.settle > 0 && h.clock.Now().Sub(tt.at)%tt.settle == 0 {
					h.settle()
				}
			}
			march := h.march(scope)
			volume := id.New()
			before, spent := h.balance(scope).Balance, h.balance(scope).MonthSpent
			h.do(func(ctx context.Context, tx pgx.Tx) error {
				return h.w.ResumeTx(ctx, tx, wallet.Start{
					TeamID: scope.TeamID(), ResourceID: volume, Kind: wallet.VolumeStorage, Rate: perHour, At: tt.at, Description: "Volume data",
				}, h.clock.Now())
			})
			b := h.balance(scope)
			if got := before - b.Balance; got != 48*money.Dollar {
				t.Errorf("48 hours in the trash cost %s", got.Decimal())
			}
			if got := b.MonthSpent - spent; got != 48*money.Dollar {
				t.Errorf("48 hours count as %s of the month's limit", got.Decimal())
			}
			if b.SpendingPerHour != perHour+tt.other {
				t.Errorf("spending %s", b.SpendingPerHour.Decimal())
			}
			if now := h.clock.Now(); now.Month() != tt.at.Month() && march != h.march(scope) {
				t.Errorf("March was %+v, is %+v", march, h.march(scope))
			}
			h.clock.Advance(time.Hour)
			var sum money.USD
			rows := 0
			for _, r := range h.history(scope, 1000) {
				sum += r.Amount
				if r.ResourceID != volume {
					continue
				}
				rows++
				day := h.clock.Now().Truncate(24 * time.Hour)
				if r.Amount != -49*money.Dollar || r.Type != "charge" || r.CreatedAt.Before(day) || r.Description != "Storage: Volume data, 49 h" {
					t.Errorf("the volume's row: %+v", r)
				}
			}
			if rows != 1 || sum != h.balance(scope).Balance {
				t.Errorf("%d rows of the volume; all rows make %s, the balance is %s", rows, sum.Decimal(), h.balance(scope).Balance.Decimal())
			}
			h.verify()
			h.clock.Advance(24 * time.Hour)
			h.settle()
			h.verify()
			if got := before - h.balance(scope).Balance; got != (48+25)*money.Dollar+25*money.USD(tt.other) {
				t.Errorf("25 hours later %s are charged", got.Decimal())
			}
		})
	}
}
