package app

import (
	"homeport.dev/homeport/internal/notice"
	"homeport.dev/homeport/internal/payment"
)

// topUpNotice is what the admins are told of their team's automatic top-ups.
func topUpNotice(n payment.News) notice.Notice {
	kinds := map[payment.NewsKind]notice.Kind{
		payment.NewsDeclined: notice.TopUpDeclined, payment.NewsOff: notice.TopUpOff,
		payment.NewsAuthentication: notice.TopUpAuthentication, payment.NewsCapped: notice.TopUpCapped,
		payment.NewsCardRemoved: notice.TopUpCardRemoved, payment.NewsPayerLeft: notice.TopUpPayerLeft,
		payment.NewsPayerDemoted: notice.TopUpPayerDemoted,
	}
	return notice.Notice{
		TeamID: n.TeamID, Kind: kinds[n.Kind], Key: n.Key, PostedAt: n.At, To: n.To,
		Facts: notice.Facts{Amount: n.Amount, Spent: n.Paid, Limit: n.Cap, Card: n.Card.Label(), EndsAt: n.NextAt},
	}
}
