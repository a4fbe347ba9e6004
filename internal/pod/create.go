package pod

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/crypto/ssh"

	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

// Create asks for a pod. The offer is a reference; only Max is the caller's
// word, as the most they will pay.
type Create struct {
	VolumeID uuid.UUID
	KeyID    uuid.UUID
	Offer    offer.Tuple
	Max      money.Rate
	Currency string
	Once     idem.Request // zero: no Idempotency-Key was sent
	// AutoRelaunch starts the pod again on another cloud when its machine is lost.
	AutoRelaunch bool
	// RelaunchOf is a pod of the team that has ended: the new one gets its name,
	// host key and, if that is free, port. Zero: none.
	RelaunchOf uuid.UUID
}

// minBalance is what a wallet must hold for a pod to be created (product.md section 9).
const minBalance = money.Cent

// Create rents a pod: in one transaction everything of server rule 7 is
// checked in its order, the volume is attached and the pod waits as pending.
// The provider is called afterwards.
func (s *Service) Create(ctx context.Context, scope team.Scope, in Create) (*Pod, error) {
	var made *Pod
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		p, err := s.createTx(ctx, tx, scope, in)
		made = p
		return err
	})
	if err != nil {
		return nil, err
	}
	fail.Point("pod.create.committed")
	return made, nil
}

func (s *Service) createTx(ctx context.Context, tx pgx.Tx, scope team.Scope, in Create) (*Pod, error) {
	scope, err := team.LockTx(ctx, tx, scope)
	if err != nil {
		return nil, err
	}
	now, wall := s.Clock.Now(), s.Clock.Wall()
	podID, err := idem.RunTx(ctx, tx, in.Once, func() (uuid.UUID, error) {
		p, err := s.insertTx(ctx, tx, scope, in, now, wall)
		if err != nil {
			return uuid.Nil, err
		}
		return p.ID, nil
	})
	if err != nil {
		return nil, err
	}
	return findPod(ctx, tx, podID)
}

// insertTx makes the pod's row and its first job, once everything is checked.
func (s *Service) insertTx(ctx context.Context, tx pgx.Tx, scope team.Scope, in Create, now, wall time.Time) (*Pod, error) {
	var before *Pod
	if in.RelaunchOf != uuid.Nil {
		var err error
		if before, err = s.endedTx(ctx, tx, scope, in.RelaunchOf); err != nil {
			return nil, err
		}
	}
	p, err := s.checkTx(ctx, tx, scope, in, now, wall)
	if err != nil {
		return nil, err
	}
	if before != nil {
		p.RelaunchOf = &before.ID
	}
	return p, s.bearTx(ctx, tx, p, before)
}

// bearTx writes a checked pod down, with a port and keys of its own or those of
// the pod whose place it takes, and its first job.
func (s *Service) bearTx(ctx context.Context, tx pgx.Tx, p, before *Pod) error {
	var err error
	if before == nil {
		p.SSHPort, err = takePort(ctx, tx, p.ID)
	} else {
		p.Attempts = before.Attempts // the names of machines go on
		p.SSHPort, err = takePortOf(ctx, tx, p.ID, before.ID)
	}
	if err != nil {
		return err
	}
	if err := s.drawKeys(p); err != nil {
		return err
	}
	if before != nil {
		if err := s.inheritKey(p, before); err != nil {
			return err
		}
	}
	if err := insertPod(ctx, tx, p); err != nil {
		return err
	}
	if before != nil {
		before.RelaunchedAs, before.RelaunchUntilWallAt, before.NextWallAt = &p.ID, nil, nil
		before.StatusDetail = strings.TrimSuffix(before.StatusDetail, startingAgain)
		if err := savePod(ctx, tx, before); err != nil {
			return err
		}
	}
	return s.Jobs.AddTx(ctx, tx, ReconcileJob{PodID: p.ID}, job.Options{})
}

// checkTx makes every check of server rule 7 in its order and attaches the
// volume. Its lock comes before the wallet's, whichever of their refusals wins.
func (s *Service) checkTx(ctx context.Context, tx pgx.Tx, scope team.Scope, in Create, now, wall time.Time) (*Pod, error) {
	vol, err := s.Volumes.FindTx(ctx, tx, scope, in.VolumeID)
	if err != nil {
		return nil, err
	}
	if _, err := s.Keys.FindTx(ctx, tx, scope, in.KeyID); err != nil {
		return nil, err
	}
	quote, err := s.Offers.QuoteTx(ctx, tx, offer.Ask{
		Tuple: in.Offer, Plan: scope.Plan(), Max: in.Max, Currency: in.Currency, SizeBytes: vol.SizeBytes,
	})
	if err != nil {
		return nil, err
	}
	if err := s.checkLimitsTx(ctx, tx, scope, quote.Offer.GPUCount, now); err != nil {
		return nil, err
	}
	podID, err := s.podID(ctx, tx, in.RelaunchOf)
	if err != nil {
		return nil, err
	}
	att, attached := s.Volumes.AttachTx(ctx, tx, scope, in.VolumeID, podID, now)
	if attached != nil && !errors.Is(attached, volume.ErrInUse) {
		return nil, attached
	}
	needed := s.needed(quote.Rate)
	err = s.Wallet.RequireTx(ctx, tx, scope.TeamID(), needed, now)
	if errors.Is(err, wallet.ErrInsufficient) && needed > minBalance {
		cents := (needed + money.Cent - 1) / money.Cent
		err = wallet.ErrInsufficient.With("Insufficient Funds: this pod needs a balance of at least $%d.%02d.", cents/100, cents%100)
	}
	if err != nil {
		return nil, err
	}
	if attached != nil {
		return nil, attached
	}
	o := quote.Offer
	return &Pod{
		ID: podID, TeamID: scope.TeamID(), CreatedBy: scope.UserID(), VolumeID: vol.ID, VolumeEpoch: att.Epoch,
		SSHKeyID: in.KeyID, Status: Pending, Offer: o, Adapter: quote.Adapter, Provider: o.Provider, Country: o.Country,
		GPUType: o.GPUType, GPUCount: o.GPUCount, Rate: quote.Rate, MaxRate: max(in.Max, quote.Rate),
		ListRate: quote.ListRate, SSHHost: s.Host, CreatedAt: now, StatusWallAt: wall, ProgressWallAt: wall,
		NextWallAt: &wall, AutoRelaunch: in.AutoRelaunch,
	}, nil
}

// needed is the balance a new pod asks for: the minimum, or the configured runway.
func (s *Service) needed(rate money.Rate) money.USD {
	runway := money.Cost(rate, 0, s.Limits.MinRunway.Microseconds())
	return max(minBalance, runway)
}

const sqlCountGPUs = `
select coalesce(sum(gpu_count), 0) from pod where team_id = $1 and status <> 'deleted'`

const sqlCountEarlyEnds = `
select count(*) from pod
 where team_id = $1 and ended_by_user_early and delete_requested_at >= $2`

// checkLimitsTx holds server rules 6 and 7 (guards). The team is locked.
func (s *Service) checkLimitsTx(ctx context.Context, tx pgx.Tx, scope team.Scope, gpus int, now time.Time) error {
	if err := s.checkGPUsTx(ctx, tx, scope.TeamID(), scope.Plan(), gpus); err != nil {
		return err
	}
	var early int
	day := now.Truncate(24 * time.Hour)
	if err := tx.QueryRow(ctx, sqlCountEarlyEnds, scope.TeamID(), day).Scan(&early); err != nil {
		return fmt.Errorf("count early ends of team %s: %w", scope.TeamID(), err)
	}
	if early >= s.Limits.FreeSetups {
		return ErrSetups
	}
	return nil
}

// checkGPUsTx holds server rule 6.
func (s *Service) checkGPUsTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, plan team.Plan, gpus int) error {
	limit := s.Limits.HobbyGPUs
	if plan == team.Pro {
		limit = s.Limits.ProGPUs
	}
	var have int
	if err := tx.QueryRow(ctx, sqlCountGPUs, teamID).Scan(&have); err != nil {
		return fmt.Errorf("count GPUs of team %s: %w", teamID, err)
	}
	if have+gpus > limit {
		return ErrGPULimit.With("Your plan allows %d GPUs at once; %d are in use and this pod needs %d.", limit, have, gpus)
	}
	return nil
}

// drawKeys makes the pod's own host key, which stays through its relaunches,
// and the key with which we log in to see that it is reachable.
func (s *Service) drawKeys(p *Pod) error {
	hostPEM, hostKey, err := drawKey("homeport pod " + id.First(p.ID))
	if err != nil {
		return err
	}
	probePEM, probeKey, err := drawKey("homeport probe")
	if err != nil {
		return err
	}
	p.HostKeySealed = s.Box.Seal(hostPEM, hostKeyPurpose(p.ID))
	p.HostKeyFingerprint = ssh.FingerprintSHA256(hostKey)
	p.ProbeKeySealed = s.Box.Seal(probePEM, probeKeyPurpose(p.ID))
	p.ProbeKeyLine = string(ssh.MarshalAuthorizedKey(probeKey))
	return nil
}

func hostKeyPurpose(podID uuid.UUID) string  { return "pod host key " + podID.String() }
func probeKeyPurpose(podID uuid.UUID) string { return "pod probe key " + podID.String() }

func drawKey(comment string) ([]byte, ssh.PublicKey, error) {
	key := ed25519.NewKeyFromSeed(id.Bytes(ed25519.SeedSize))
	block, err := ssh.MarshalPrivateKey(key, comment)
	if err != nil {
		return nil, nil, fmt.Errorf("draw an SSH key: %w", err)
	}
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("draw an SSH key: %w", err)
	}
	return pem.EncodeToMemory(block), public, nil
}
