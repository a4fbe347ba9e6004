package pod

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/crypto/ssh"

	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/wallet"
)

// probe logs in as root through the published host and port with the pod's
// probe key: only then is a pod ready, and only then does its meter start.
func (s *Service) probe(ctx context.Context, p *Pod, in *Instance) (bool, error) {
	if in == nil || in.State != Running {
		return false, nil
	}
	if in.CheckAsked && in.CheckedWallAt == nil {
		return false, nil // it is not known yet to be what was sold
	}
	if in.Host == "" { // its agent was faster than its cloud's list
		return s.watch(ctx, in)
	}
	if err := s.Names(ctx, p, in); err != nil {
		return false, err
	}
	if err := s.logIn(ctx, p); err != nil {
		s.Logger.InfoContext(ctx, "pod is not reachable yet", "pod", p.ID, "err", err)
		return false, nil
	}
	err := s.changeInstance(ctx, in, func(tx pgx.Tx, p *Pod, in *Instance) error {
		if p.Status != Mounting || p.RestoredWallAt == nil || in.State != Running {
			return nil
		}
		if in.Outcome == "" {
			in.turned(OutcomeReady, s.Clock.Wall())
			if err := saveInstance(ctx, tx, in); err != nil {
				return err
			}
		}
		return s.readyTx(ctx, tx, p)
	})
	if err != nil {
		return false, err
	}
	fail.Point("pod.ready.committed")
	return false, nil
}

func (s *Service) readyTx(ctx context.Context, tx pgx.Tx, p *Pod) error {
	status, err := p.Status.After(Reached)
	if err != nil {
		return err
	}
	now, wall := s.Clock.Now(), s.Clock.Wall()
	p.Status, p.ReadyAt, p.StatusWallAt, p.Progress = status, &now, wall, 100
	p.StatusReason, p.StatusDetail = "", ""
	p.NextWallAt = ptr(wall.Add(s.Limits.Quiet))
	if err := savePod(ctx, tx, p); err != nil {
		return err
	}
	return s.startMeterTx(ctx, tx, p, now)
}

func (s *Service) startMeterTx(ctx context.Context, tx pgx.Tx, p *Pod, at time.Time) error {
	return s.Wallet.StartTx(ctx, tx, wallet.Start{
		TeamID: p.TeamID, ResourceID: p.ID, Kind: wallet.PodRuntime, Rate: p.Rate, At: at,
		Description: fmt.Sprintf("Pod %s · %dx %s", id.First(p.ID), p.GPUCount, strings.ReplaceAll(p.GPUType, "_", " ")),
	})
}

// logIn proves that the published address leads to this pod's own SSH server.
func (s *Service) logIn(ctx context.Context, p *Pod) error {
	probePEM, err := s.Box.Open(p.ProbeKeySealed, probeKeyPurpose(p.ID))
	if err != nil {
		return err
	}
	signer, err := ssh.ParsePrivateKey(probePEM)
	if err != nil {
		return fmt.Errorf("probe key: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	addr := net.JoinHostPort(s.dialHost(p), strconv.Itoa(p.SSHPort))
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	client, _, _, err := ssh.NewClientConn(conn, addr, &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if ssh.FingerprintSHA256(key) != p.HostKeyFingerprint {
				return errors.New("another host key answers")
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	_ = client.Close() // logged in: whoever hangs up first
	return nil
}

// dialHost is the published name; names below localhost are this machine
// wherever a resolver knows them or not (RFC 6761).
func (s *Service) dialHost(p *Pod) string {
	if s.Host == "localhost" || strings.HasSuffix(s.Host, ".localhost") {
		return "127.0.0.1"
	}
	return s.name(p)
}
