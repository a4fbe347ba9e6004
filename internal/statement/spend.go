package statement

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// By says what spend is summed up by.
type By string

// The sums of spend.
const (
	ByPod    By = "pod"
	ByVolume By = "volume"
	ByMember By = "member"
	ByDay    By = "day"
)

// maxDays bounds a question for spend.
const maxDays = 366

// A Line is one sum of spend: charges less refunds.
type Line struct {
	Key           string // the pod's, volume's or member's id, or the day; empty: a member whom nobody knows
	Name          string // for people
	Pods, Storage money.USD
}

// Spend sums up what the scope's team spent on the UTC days from the first to
// the last, both included: what cost most first, or by day. Empty days are this
// month's first and today. The fault is ErrRange.
func (s *Service) Spend(ctx context.Context, scope team.Scope, first, last string, by By) ([]Line, error) {
	now := s.Clock.Now()
	from, to, err := days(first, last, now)
	if err != nil {
		return nil, err
	}
	p, err := s.Wallet.Period(ctx, scope, from, to, now)
	if err != nil {
		return nil, err
	}
	who := people{}
	if by == ByMember {
		err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) (err error) {
			who, err = s.people(ctx, tx, scope.TeamID(), p)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("sum up the spend of team %s: %w", scope.TeamID(), err)
		}
	}
	return lines(p.Usage, by, who), nil
}

// days reads the days of a question; to is the midnight after the last.
func days(first, last string, now time.Time) (from, to time.Time, err error) {
	today := now.Truncate(24 * time.Hour)
	from, to = time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC), today
	if last != "" {
		if to, err = time.Parse(time.DateOnly, last); err != nil {
			return from, to, ErrRange.Because(err)
		}
	}
	if first != "" {
		if from, err = time.Parse(time.DateOnly, first); err != nil {
			return from, to, ErrRange.Because(err)
		}
	}
	to = to.AddDate(0, 0, 1)
	if !from.Before(to) || to.Sub(from) > maxDays*24*time.Hour {
		return from, to, ErrRange
	}
	return from, to, nil
}

// key says which line a day's usage belongs to; false: to none.
func (by By) key(u wallet.Usage, who people) (key, name string, ok bool) {
	switch by {
	case ByPod:
		return u.ResourceID.String(), u.Description, u.Kind == wallet.PodRuntime
	case ByVolume:
		return u.ResourceID.String(), u.Description, u.Kind == wallet.VolumeStorage
	case ByMember:
		if user := who.creators[u.ResourceID]; user != uuid.Nil {
			return user.String(), who.emails[user], true
		}
		return "", "", true
	case ByDay:
		day := u.Day.Format(time.DateOnly)
		return day, day, true
	}
	return "", "", false
}

func lines(usage []wallet.Usage, by By, who people) []Line {
	at := map[string]*Line{}
	for _, u := range usage {
		key, name, ok := by.key(u, who)
		if !ok {
			continue
		}
		if at[key] == nil {
			at[key] = &Line{Key: key, Name: name}
		}
		if u.Kind == wallet.PodRuntime {
			at[key].Pods += u.Net()
		} else {
			at[key].Storage += u.Net()
		}
	}
	list := make([]Line, 0, len(at))
	for _, l := range at {
		list = append(list, *l)
	}
	slices.SortFunc(list, func(a, b Line) int {
		if by == ByDay {
			return cmp.Compare(a.Key, b.Key)
		}
		return cmp.Or(cmp.Compare(b.Pods+b.Storage, a.Pods+a.Storage), cmp.Compare(a.Key, b.Key))
	})
	return list
}
