package wallet

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
)

const sqlInsertAccount = `
insert into account (id, team_id, kind) values ($1, $2, $3) on conflict on constraint account_once do nothing`

const sqlInsertWallet = `
insert into wallet (team_id, account_id, receivable_account_id, balance_usd_micro, receivable_usd_micro, settled_us,
  burn_usd_micro_per_hour, pod_burn_usd_micro_per_hour, month_us, month_spent_usd_micro, version, created_at)
select $1, w.id, r.id, 0, 0, $2, 0, 0, $3, 0, 0, $4
from account w join account r on r.team_id = w.team_id and r.kind = 'receivable'
where w.team_id = $1 and w.kind = 'wallet'
on conflict (team_id) do nothing`

// OpenTx gives a team its wallet, at 0.00. A team that has one keeps it.
func (s *Service) OpenTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, now time.Time) error {
	batch := &pgx.Batch{}
	batch.Queue(sqlInsertAccount, id.New(), teamID, "wallet")
	batch.Queue(sqlInsertAccount, id.New(), teamID, "receivable")
	batch.Queue(sqlInsertWallet, teamID, now.UnixMicro(), monthStart(now.UnixMicro()), now)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("open the wallet of team %s: %w", teamID, err)
	}
	return nil
}
