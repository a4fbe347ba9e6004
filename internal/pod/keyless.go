package pod

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

// A KeylessJob asks for the letter that tells one admin of pods that nobody can
// log in to any more.
type KeylessJob struct {
	TeamID  uuid.UUID   `json:"team_id"`
	AdminID uuid.UUID   `json:"admin_id"`
	LeftID  uuid.UUID   `json:"left_id"` // whose keys were removed
	PodIDs  []uuid.UUID `json:"pod_ids"`
}

// Kind names the job.
func (KeylessJob) Kind() string { return "pod.keyless" }

const sqlPodsOfKeys = `
select id from pod
 where ssh_key_id = any($1) and status in ('pending', 'starting', 'mounting', 'ready')
 order by id`

// LeaveTx takes the keys of a person who left the team, or was removed, off its
// pods, which stay; the admins get a letter naming those that have none left
// (server rule 29). The team is locked.
func (s *Service) LeaveTx(ctx context.Context, tx pgx.Tx, teamID, userID uuid.UUID, now time.Time) error {
	keys, err := s.Keys.LeaveTx(ctx, tx, teamID, userID, now)
	if err != nil || len(keys) == 0 {
		return err
	}
	rows, _ := tx.Query(ctx, sqlPodsOfKeys, keys)
	pods, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("list the pods of who left team %s: %w", teamID, err)
	}
	if len(pods) == 0 {
		return nil
	}
	admins, err := s.Teams.AdminsTx(ctx, tx, teamID)
	if err != nil {
		return err
	}
	for _, admin := range admins {
		letter := KeylessJob{TeamID: teamID, AdminID: admin, LeftID: userID, PodIDs: pods}
		if err := s.Jobs.AddTx(ctx, tx, letter, job.Options{MaxAttempts: mail.Attempts}); err != nil {
			return err
		}
	}
	return nil
}

const sqlListRunning = `
select id, gpu_type, gpu_count, provider, country from pod
 where id = any($1) and status in ('pending', 'starting', 'mounting', 'ready')
 order by created_at, id`

// A keylessPod is what the letter says of a pod.
type keylessPod struct {
	ID       uuid.UUID
	GPUType  string `db:"gpu_type"`
	GPUCount int    `db:"gpu_count"`
	Provider string
	Country  string
}

func (p keylessPod) String() string {
	return fmt.Sprintf("%s: %dx %s at %s, %s", id.First(p.ID), p.GPUCount, strings.ReplaceAll(p.GPUType, "_", " "), p.Provider, p.Country)
}

// SendKeyless sends a KeylessJob's letter, unless all its pods have ended, the
// team has, or the person is no admin of it any more. It may run twice: the
// letter then has the same key. The fault mail.ErrUnavailable means that it
// should run again.
func (s *Service) SendKeyless(ctx context.Context, j KeylessJob) error {
	var name, to, left string
	var pods []keylessPod
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) (err error) {
		if name, err = s.Teams.NameTx(ctx, tx, j.TeamID); err != nil {
			return err
		}
		admins, err := s.Teams.AdminsTx(ctx, tx, j.TeamID)
		if err != nil || !slices.Contains(admins, j.AdminID) {
			return err
		}
		if to, err = s.Teams.EmailTx(ctx, tx, j.AdminID); err != nil {
			return err
		}
		if left, err = s.Teams.EmailTx(ctx, tx, j.LeftID); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, sqlListRunning, j.PodIDs)
		pods, err = pgx.CollectRows(rows, pgx.RowToStructByName[keylessPod])
		return err
	})
	if errors.Is(err, team.ErrNotFound) || err == nil && (len(pods) == 0 || to == "") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read what has no key left in team %s: %w", j.TeamID, err)
	}
	const title = "Pods without an SSH key"
	key := "keyless-" + j.PodIDs[0].String() + "-" + j.AdminID.String()
	return mail.Deliver(ctx, s.Mail, s.Logger, s.keylessLetter(title, name, left, pods), to, title, key)
}

func (s *Service) keylessLetter(title, name, left string, pods []keylessPod) mail.Layout {
	paragraphs := []string{
		left + " is no longer in the team " + mail.Harmless(name, "with a web address for a name") + ", and their SSH keys were removed from its pods.",
		"Nobody can log in to these pods any more. They keep running, and are charged, until they are deleted:",
	}
	for _, p := range pods {
		paragraphs = append(paragraphs, p.String())
	}
	return mail.Layout{
		Title:      title,
		Paragraphs: append(paragraphs, "Deleting a pod syncs its volume first. To go on with the same data, create a pod with that volume and another key."),
		Action:     &mail.Action{Label: "Show the pods", URL: s.AgentURL + "/pods"},
	}
}
