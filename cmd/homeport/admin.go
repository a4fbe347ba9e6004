package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"homeport.dev/homeport/internal/app"
)

// withAdmin runs a command on an opened administration, and closes it.
func withAdmin(cmd *cobra.Command, s *settings, run func(ctx context.Context, m *app.Admin) error) error {
	c, err := s.load()
	if err != nil {
		return err
	}
	m, err := app.OpenAdmin(cmd.Context(), c, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	return errors.Join(run(cmd.Context(), m), m.Close(cmd.Context()))
}

// result writes what a command found: one JSON object, or text for people.
func result(w io.Writer, asJSON bool, v any, text string) error {
	if asJSON {
		return json.NewEncoder(w).Encode(v)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

func migrateCommand(s *settings) *cobra.Command {
	var asJSON bool
	status := &cobra.Command{
		Use: "status", Short: "List the schema's migrations", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd, s, func(ctx context.Context, m *app.Admin) error {
				list, err := m.Migrations(ctx)
				if err != nil {
					return err
				}
				text := ""
				for _, g := range list {
					text += fmt.Sprintf("%04d  %s\n", g.Version, g.Name)
				}
				return result(cmd.OutOrStdout(), asJSON, map[string]any{"migrations": list}, text)
			})
		},
	}
	status.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	migrate := &cobra.Command{Use: "migrate", Short: "The database's schema"}
	migrate.AddCommand(status)
	return migrate
}

func ledgerCommand(s *settings) *cobra.Command {
	var asJSON bool
	verify := &cobra.Command{
		Use: "verify", Short: "Recompute every wallet and name each row that is wrong", Args: cobra.NoArgs,
		Long: "Recompute every wallet from its transfers and segments, in one read-only snapshot that no one waits for.\n" +
			"The exit status is 1 when a row is wrong.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd, s, func(ctx context.Context, m *app.Admin) error {
				r, err := m.VerifyLedger(ctx)
				if err != nil {
					return err
				}
				if err := result(cmd.OutOrStdout(), asJSON, r, ledgerText(r)); err != nil {
					return err
				}
				if !r.OK {
					return fmt.Errorf("%d rows of the books are wrong", len(r.Problems))
				}
				return nil
			})
		},
	}
	verify.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	ledger := &cobra.Command{Use: "ledger", Short: "The books"}
	ledger.AddCommand(verify, reconcileCommand(s))
	return ledger
}

func reconcileCommand(s *settings) *cobra.Command {
	var asJSON bool
	var day, subject, note, by string
	reconcile := &cobra.Command{
		Use: "reconcile", Short: "Compare the payment processor's book with the clearing account", Args: cobra.NoArgs,
		Long: "Read the processor's own record of the days that are over, or of one day, and compare it with the clearing account.\n" +
			"What our side did not hear of is read again and done; what still differs is listed, and adjusted by nobody.\n" +
			"The exit status is 1 while something differs that was not acknowledged.\n" +
			"With --acknowledge nothing is read: somebody knows why the books differ about a payment, refund or line. It stays listed,\n" +
			"but counts no more, here and in the metrics, unless it changes.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd, s, func(ctx context.Context, m *app.Admin) error {
				run := func() (app.ClearingReport, error) { return m.ReconcileClearing(ctx, day) }
				if subject != "" {
					run = func() (app.ClearingReport, error) { return m.AcknowledgeClearing(ctx, subject, note, by) }
				}
				r, err := run()
				if err != nil {
					return err
				}
				if err := result(cmd.OutOrStdout(), asJSON, r, clearingText(r)); err != nil {
					return err
				}
				if !r.OK {
					return fmt.Errorf("the books differ in %d places", r.Differing)
				}
				return nil
			})
		},
	}
	reconcile.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	reconcile.Flags().StringVar(&day, "day", "", "a UTC day, as 2027-03-14; read again if it was read")
	reconcile.Flags().StringVar(&subject, "acknowledge", "", "the payment, refund, dispute or line, as it is listed")
	reconcile.Flags().StringVar(&note, "note", "", "what it is")
	reconcile.Flags().StringVar(&by, "by", os.Getenv("USER"), "who knows")
	reconcile.MarkFlagsRequiredTogether("acknowledge", "note")
	reconcile.MarkFlagsMutuallyExclusive("acknowledge", "day")
	return reconcile
}

func clearingText(r app.ClearingReport) string {
	text := fmt.Sprintf("%d days read, %d events made up for: ", len(r.Days), r.Repaired)
	if r.OK {
		text += "the books agree."
	} else {
		text += fmt.Sprintf("the books differ in %d places, by %s USD.", r.Differing, r.DifferenceUSD)
	}
	for _, d := range r.Days {
		text += fmt.Sprintf("\n%s  payments %s, refunds %s, disputes %s, fees %s, payouts %s, others %s",
			d.Day, d.PaymentsUSD, d.RefundsUSD, d.DisputesUSD, d.FeesUSD, d.PayoutsUSD, d.OthersUSD)
	}
	for _, p := range r.Problems {
		text += fmt.Sprintf("\n%-15s %s (%s USD): %s", p.Kind, p.Subject, p.OffUSD, p.Detail)
		if p.AcknowledgedAt != nil {
			text += fmt.Sprintf("\n%-15s on %s by %s: %s", "  acknowledged", p.AcknowledgedAt.Format(time.DateOnly), p.AcknowledgedBy, p.Note)
		}
	}
	return text
}

func ledgerText(r app.LedgerReport) string {
	text := fmt.Sprintf("%d wallets, %d segments, %d transfers: ", r.Wallets, r.Segments, r.Transfers)
	if r.OK {
		return text + "the books are right."
	}
	text += fmt.Sprintf("%d rows are wrong, by %s USD.", len(r.Problems), r.ImbalanceUSD)
	for _, p := range r.Problems {
		text += fmt.Sprintf("\n%-12s %s (team %s): %s", p.Kind, p.Row, p.TeamID, p.Detail)
	}
	return text
}

func podCommand(s *settings) *cobra.Command {
	var asJSON bool
	cutOff := &cobra.Command{
		Use: "cut-off POD", Short: "End a pod's last sync at its last committed snapshot", Args: cobra.ExactArgs(1),
		Long: "A pod that was deleted, or ran out of money, keeps its machine until its files are synced, for as long as its agent says\n" +
			"that bytes move. This ends it now: what was not committed is lost. A pod that is in no last sync stays as it is.",
		RunE: func(cmd *cobra.Command, args []string) error {
			podID, err := uuid.Parse(args[0])
			if err != nil {
				return fmt.Errorf("%q is no pod's id", args[0])
			}
			return withAdmin(cmd, s, func(ctx context.Context, m *app.Admin) error {
				status, detail, err := m.CutOffPod(ctx, podID)
				if err != nil {
					return err
				}
				return result(cmd.OutOrStdout(), asJSON, map[string]string{"status": status, "status_detail": detail},
					strings.TrimSpace("The pod is "+status+". "+detail))
			})
		},
	}
	cutOff.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	pods := &cobra.Command{Use: "pod", Short: "Pods"}
	pods.AddCommand(cutOff)
	return pods
}

func reaperCommand(s *settings) *cobra.Command {
	var asJSON bool
	arm := &cobra.Command{
		Use: "arm", Short: "Confirm that the machines and payments of a restored database were looked through", Args: cobra.NoArgs,
		Long: "After a restore of the database no machine is ended as an orphan, no volume is purged and no saved card is charged:\n" +
			"what was made, taken out of the trash and paid after the backup has no row in it. Look through the providers' lists,\n" +
			"the trash and the payments first.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd, s, func(ctx context.Context, m *app.Admin) error {
				since, err := m.ArmReaper(ctx)
				if err != nil {
					return err
				}
				text := "Nothing was to confirm."
				if since != nil {
					text = fmt.Sprintf("Orphans are ended, volumes purged and saved cards charged again; the database was restored before %s.", since.UTC().Format(time.RFC3339))
				}
				return result(cmd.OutOrStdout(), asJSON, map[string]any{"restored_at": since}, text)
			})
		},
	}
	arm.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	reaper := &cobra.Command{Use: "reaper", Short: "The end of machines that no pod owns"}
	reaper.AddCommand(arm)
	return reaper
}

func sandboxCommand(s *settings) *cobra.Command {
	var asJSON bool
	stop := &cobra.Command{
		Use: "stop", Short: "End every sandbox pod of the state folder", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.load()
			if err != nil {
				return err
			}
			n, err := app.SandboxStop(cmd.Context(), c, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return result(cmd.OutOrStdout(), asJSON, map[string]int{"stopped": n}, fmt.Sprintf("%d sandbox pods ended.", n))
		},
	}
	stop.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	box := &cobra.Command{Use: "sandbox", Short: "The sandbox clouds"}
	box.AddCommand(stop)
	return box
}

func failpointsCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "failpoints", Short: "List the registered failpoints", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := ""
			for _, name := range app.Failpoints() {
				text += name + "\n"
			}
			return result(cmd.OutOrStdout(), asJSON, map[string]any{"failpoints": app.Failpoints()}, text)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return c
}

func sshConfigCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "ssh-config", Short: "Print the lines for ~/.ssh/config that make pod names work", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.load()
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), app.SSHConfig(c))
			return err
		},
	}
}
