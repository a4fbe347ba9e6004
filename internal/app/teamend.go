package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// endTeamTx ends what a deleted team owned (server rule 26), in the order of
// the locks: its keys, its volumes, its subscription, its wallet. It has no pods
// any more.
func (a *App) endTeamTx(ctx context.Context, tx pgx.Tx, end team.Ending) error {
	if err := a.keys.EndTeamTx(ctx, tx, end.TeamID, end.By, end.At); err != nil {
		return err
	}
	if err := a.volumes.EndTeamTx(ctx, tx, end.TeamID, end.Personal, end.By, end.At); err != nil {
		return err
	}
	if err := a.payments.EndTeamTx(ctx, tx, end.TeamID); err != nil {
		return err
	}
	return a.closeWalletTx(ctx, tx, end)
}

// closeWalletTx gives what is left to the personal teams of those who paid it.
func (a *App) closeWalletTx(ctx context.Context, tx pgx.Tx, end team.Ending) error {
	return a.wallet.CloseTx(ctx, tx, wallet.Closing{
		TeamID: end.TeamID, Name: end.Name, At: end.At, Otherwise: end.Personal, Taken: a.payments.TakenTx,
		Homes: func(ctx context.Context, tx pgx.Tx, payments []string) (map[string]uuid.UUID, error) {
			payers, err := a.payments.PayersTx(ctx, tx, payments)
			if err != nil {
				return nil, err
			}
			homes := make(map[string]uuid.UUID, len(payers))
			for payment, user := range payers {
				if homes[payment], err = a.teams.PersonalTx(ctx, tx, user, end.At); err != nil {
					return nil, err
				}
			}
			return homes, nil
		},
	})
}

// returnLateMoney gives back what reached the wallets of deleted teams: a
// checkout that was open at the deletion was paid.
func (a *App) returnLateMoney(ctx context.Context) error {
	teams, err := a.wallet.ClosedWithMoney(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, teamID := range teams {
		err := pg.InTx(ctx, a.pool, func(tx pgx.Tx) error {
			end, err := a.teams.EndedTx(ctx, tx, teamID, a.clock.Now())
			if err != nil {
				return err
			}
			return a.closeWalletTx(ctx, tx, end)
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("return the late money of team %s: %w", teamID, err))
		}
	}
	return errors.Join(errs...)
}
