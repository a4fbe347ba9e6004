package offer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Health is how a cloud does, for its operator. Instants are wall time.
type Health struct {
	Adapter  string
	State    string     // of its breaker
	Reason   string     // why that is not closed
	OpenedAt *time.Time // since when it is not
	ProbeAt  *time.Time // open: when it is tried again
	AskedAt  time.Time
	ListedAt *time.Time // the last good list; nil: none yet
	Offers   int        // in it
	Trouble  string     // with the last list or, while the breaker is not closed, the last call
}

const sqlListHealth = `
select s.adapter, coalesce(b.state, 'closed') as state, coalesce(b.reason, '') as reason, b.opened_at, b.probe_at,
  s.asked_at, s.listed_at, s.offers, coalesce(nullif(s.trouble, ''), b.trouble, '') as trouble
from offer_source s left join provider_breaker b on b.adapter = s.adapter
where s.adapter = any($1) order by s.adapter`

// Health tells how each cloud does whose offers are for sale.
func (s *Service) Health(ctx context.Context) ([]Health, error) {
	rows, _ := s.Pool.Query(ctx, sqlListHealth, slices.Sorted(maps.Keys(s.Adapters)))
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[Health])
	if err != nil {
		return nil, fmt.Errorf("read how the clouds do: %w", err)
	}
	return list, nil
}
