package pod

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/provider"
)

// An agent that was brought to its machine says hello within pushEvery, or it is
// brought again, at the latest after twice that time: by then nothing of a try
// runs, which took pushFor here and provider.PushLives there.
const (
	pushEvery = 3 * time.Minute
	pushFor   = 45 * time.Second
)

const sqlRenewToken = `update instance set token_hash = $2 where id = $1`

// push brings the agent to a running machine whose cloud starts none. Only the
// token's hash is kept, so each try has a new one, which is committed before:
// the last one that arrived counts. A machine that lets nobody in is tried again
// at the next look, or in its turn where an agent was brought before, until the
// pod's time for its start is over. One that was let something run is tried
// again in its turn: its agent may be on its way, however the try ended.
func (s *Service) push(ctx context.Context, in *Instance, m provider.Machine) error {
	pusher, ok := s.Adapters[in.Provider].(provider.Pusher)
	if !ok || m.State != provider.Running || in.AgentSeenWallAt != nil {
		return nil
	}
	token := ""
	var before []byte
	first := false
	err := s.changeInstance(ctx, in, func(tx pgx.Tx, p *Pod, in *Instance) error {
		token = ""
		since := s.Clock.Wall().Sub(in.StateWallAt)
		// Tries counts the stretches of pushEvery after which the next one is due.
		if in.State != Running || !p.Status.SettingUp() || in.AgentSeenWallAt != nil || since < time.Duration(in.Tries)*pushEvery {
			return nil
		}
		token, before, first = id.Token(), in.TokenHash, in.Tries == 0
		in.Tries = int(since/pushEvery) + 2
		return renewToken(ctx, tx, in, id.Hash(token))
	})
	if err != nil || token == "" {
		return err
	}
	call, cancel := context.WithTimeout(ctx, pushFor)
	defer cancel()
	err = pusher.Push(call, m, provider.Bootstrap{AgentURL: s.AgentURL, Token: token, Hostname: id.First(in.PodID)})
	if err == nil {
		return nil
	}
	s.Logger.InfoContext(ctx, "the agent could not be brought to its machine yet", "provider", in.Provider, "instance", in.Name, "err", err)
	if !errors.Is(err, provider.ErrNotLetIn) {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	return s.changeInstance(ctx, in, func(tx pgx.Tx, _ *Pod, in *Instance) error {
		if in.State != Running || !bytes.Equal(in.TokenHash, id.Hash(token)) {
			return nil
		}
		if first {
			in.Tries = 0
		}
		// An agent that was brought before may be on its way, and has let nobody
		// else in: its token stays good.
		return renewToken(ctx, tx, in, before)
	})
}

func renewToken(ctx context.Context, tx pgx.Tx, in *Instance, hash []byte) error {
	if _, err := tx.Exec(ctx, sqlRenewToken, in.ID, hash); err != nil {
		return fmt.Errorf("renew the token of %s: %w", in.Name, err)
	}
	return saveInstance(ctx, tx, in)
}
