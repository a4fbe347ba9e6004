package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
)

// caseLifetime is how far back refunds and disputes are read again: no bank
// takes longer over a dispute.
const caseLifetime = 200 * 24 * time.Hour

// ReadCases reads the refunds and disputes from the processor and does what
// their events would have done: a lost event hides none. One that fails does
// not keep the others waiting.
func (s *Service) ReadCases(ctx context.Context) error {
	if s.Processor == nil {
		return nil
	}
	cases, err := s.Processor.ListCases(ctx, s.Clock.Wall().Add(-caseLifetime))
	if err != nil {
		return fmt.Errorf("list refunds and disputes: %w", err)
	}
	var failed []error
	for _, c := range cases {
		err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
			_, err := s.applyCase(ctx, tx, c)
			return err
		})
		if err != nil {
			failed = append(failed, fmt.Errorf("read case %s: %w", c.ID, err))
		}
	}
	return errors.Join(failed...)
}
