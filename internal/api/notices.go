package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/notice"
	"homeport.dev/homeport/internal/team"
)

func (s *server) registerNotices() {
	session(s, huma.Operation{
		OperationID: "list-notices", Method: http.MethodGet, Path: "/notices",
		Summary: "What the team is told about its money at this instant, newest first",
	}, s.listNotices)
	session(s, huma.Operation{
		OperationID: "dismiss-notice", Method: http.MethodDelete, Path: "/notices/{id}", DefaultStatus: http.StatusNoContent,
		Summary: "Hide a notice from the caller",
	}, s.dismissNotice)
}

type noticesIn struct {
	Bearer
	InTeam
}

func (s *server) listNotices(ctx context.Context, p team.Person, in noticesIn) (*list[apitype.Notice], error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Read)
	if err != nil {
		return nil, err
	}
	notices, err := s.Notices.List(ctx, scope, s.Clock.Now())
	if err != nil {
		return nil, err
	}
	return listOf(notices, noticeOf), nil
}

func noticeOf(n notice.Notice) apitype.Notice {
	f := n.Facts
	out := apitype.Notice{
		ID: n.ID.String(), TeamID: n.TeamID.String(), Kind: string(n.Kind), CreatedAt: n.PostedAt, EndsAt: f.EndsAt,
		Balance: apitype.Decimal(f.Balance.Decimal()), SpendingPerHour: apitype.Decimal(f.Spending.Decimal()),
		MonthSpent: apitype.Decimal(f.Spent.Decimal()), MonthLimit: apitype.Decimal(f.Limit.Decimal()), Volumes: f.Volumes, Card: f.Card,
	}
	if f.Amount > 0 {
		amount := apitype.Decimal(f.Amount.Decimal())
		out.TopUpAmount = &amount
	}
	return out
}

func (s *server) dismissNotice(ctx context.Context, p team.Person, in OneIn) (*nothing, error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Read)
	if err != nil {
		return nil, err
	}
	noticeID, err := parse(in.ID, notice.ErrNotFound)
	if err != nil {
		return nil, err
	}
	return nil, s.Notices.Dismiss(ctx, scope, noticeID)
}
