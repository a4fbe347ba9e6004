package pod

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

// A LostJob asks for the letter that tells one admin that a pod lost its
// machine, and whether it was started again.
type LostJob struct {
	PodID   uuid.UUID `json:"pod_id"`
	AdminID uuid.UUID `json:"admin_id"`
}

// Kind names the job.
func (LostJob) Kind() string { return "pod.lost" }

// tellLossTx has the team's admins told of a lost pod, once what becomes of it is known.
func (s *Service) tellLossTx(ctx context.Context, tx pgx.Tx, p *Pod) error {
	admins, err := s.Teams.AdminsTx(ctx, tx, p.TeamID)
	if err != nil {
		return err
	}
	for _, admin := range admins {
		if err := s.Jobs.AddTx(ctx, tx, LostJob{PodID: p.ID, AdminID: admin}, job.Options{MaxAttempts: mail.Attempts}); err != nil {
			return err
		}
	}
	return nil
}

// SendLost sends a LostJob's letter, unless the team has ended or the person is
// no admin of it any more. It may run twice: the letter then has the same key.
// The fault mail.ErrUnavailable means that it should run again.
func (s *Service) SendLost(ctx context.Context, j LostJob) error {
	var name, to string
	var lost, next *Pod
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) (err error) {
		if lost, err = findPod(ctx, tx, j.PodID); err != nil {
			return err
		}
		if name, err = s.Teams.NameTx(ctx, tx, lost.TeamID); err != nil {
			return err
		}
		admins, err := s.Teams.AdminsTx(ctx, tx, lost.TeamID)
		if err != nil || !slices.Contains(admins, j.AdminID) {
			return err
		}
		if lost.RelaunchedAs != nil {
			if next, err = findPod(ctx, tx, *lost.RelaunchedAs); err != nil {
				return err
			}
		}
		to, err = s.Teams.EmailTx(ctx, tx, j.AdminID)
		return err
	})
	if errors.Is(err, team.ErrNotFound) || err == nil && to == "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read what became of pod %s: %w", j.PodID, err)
	}
	title := "Pod " + id.First(lost.ID) + " lost its machine"
	key := "lost-" + lost.ID.String() + "-" + j.AdminID.String()
	return mail.Deliver(ctx, s.Mail, s.Logger, s.lossLetter(title, name, lost, next), to, title, key)
}

func (s *Service) lossLetter(title, name string, lost, next *Pod) mail.Layout {
	paragraphs := []string{
		fmt.Sprintf("The machine of a pod of the team %s is gone: %dx %s at %s, %s.", mail.Harmless(name, "with a web address for a name"),
			lost.GPUCount, strings.ReplaceAll(lost.GPUType, "_", " "), lost.Provider, lost.Country),
		lastSynced(lost) + " What was charged after the machine was last known to work is given back.",
	}
	if next != nil {
		paragraphs = append(paragraphs, fmt.Sprintf(
			"It is started again at %s, %s, for $%s per hour, with the same volume, SSH name and host key. Charging begins when it is ready; its SSH command is on the pods page.",
			next.Provider, next.Country, next.Rate.Decimal()))
	} else {
		if _, why, ok := strings.Cut(lost.StatusDetail, " It could not be started again: "); ok {
			paragraphs = append(paragraphs, "It could not be started again by itself: "+why)
		}
		paragraphs = append(paragraphs, "For 15 minutes the pods page starts it again in one click, with the same volume, SSH name and host key. After that, create a pod with that volume to go on with the same data.")
	}
	return mail.Layout{Title: title, Paragraphs: paragraphs, Action: &mail.Action{Label: "Show the pods", URL: s.AgentURL + "/pods"}}
}
