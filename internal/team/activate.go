package team

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const sqlActivateTeam = `
insert into team (id, name, description, plan, state, max_members, subscription_id, subscriber_id, created_by, created_at)
values (@id, @name, @description, 'pro', 'active', @seats, @subscription, @by, @by, @now)
on conflict (id) do update set plan = 'pro', state = 'active', max_members = excluded.max_members,
  subscription_id = excluded.subscription_id, subscriber_id = excluded.subscriber_id, expires_at = null
where team.state = 'inactive'`

// ActivateTx makes a team of a plot that was paid for: on the Pro plan, with
// its seats and a wallet, and the payer as its admin. A plot that was released
// meanwhile becomes the same team. The caller sees to it that this happens
// once; a team that is active or deleted is an error.
func (s *Service) ActivateTx(ctx context.Context, tx pgx.Tx, p Plot, subscriptionID string, now time.Time) error {
	tag, err := tx.Exec(ctx, sqlActivateTeam, pgx.NamedArgs{
		"id": p.TeamID, "name": p.Name, "description": p.Description, "seats": p.Seats, "subscription": subscriptionID,
		"by": p.By, "now": now,
	})
	if err != nil {
		return fmt.Errorf("activate team %s: %w", p.TeamID, err)
	}
	if tag.RowsAffected() != 1 {
		return fmt.Errorf("activate team %s: it is not waiting for its payment", p.TeamID)
	}
	if err := joinTx(ctx, tx, p.TeamID, p.By, Admin, now); err != nil {
		return err
	}
	if s.Hooks.OpenWallet != nil {
		if err := s.Hooks.OpenWallet(ctx, tx, p.TeamID, now); err != nil {
			return err
		}
	}
	payer := Scope{team: p.TeamID, person: Person{ID: p.By}}
	return record(ctx, tx, payer, "team.create", p.TeamID, map[string]any{"seats": p.Seats}, now)
}
