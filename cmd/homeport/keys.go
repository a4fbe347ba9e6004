package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"homeport.dev/homeport/internal/app"
)

// keysCommand rotates the master keys.
func keysCommand(s *settings) *cobra.Command {
	keys := &cobra.Command{
		Use: "keys", Short: "The master keys that seal the secrets in the database",
		Long: "The master keys that seal the secrets in the database. They are named by an id that tells nothing of the key.",
	}
	keys.AddCommand(listKeysCommand(s), rotateCommand(s), retireCommand(s))
	return keys
}

func listKeysCommand(s *settings) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the keys and how many values are sealed under each", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd, s, func(ctx context.Context, m *app.Admin) error {
				list, err := m.MasterKeys(ctx)
				if err != nil {
					return err
				}
				return result(cmd.OutOrStdout(), asJSON, map[string]any{"keys": list}, keysText(list))
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return c
}

func keysText(list []app.MasterKey) string {
	lines := []string{fmt.Sprintf("%d master keys", len(list))}
	for _, k := range list {
		line := fmt.Sprintf("%s  %-8s %d values", k.ID, k.State, k.Values)
		for _, name := range slices.Sorted(maps.Keys(k.Columns)) {
			line += fmt.Sprintf(", %d %s", k.Columns[name], name)
		}
		if !k.Held && k.State != "retired" {
			line += "  (NOT HERE)"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func rotateCommand(s *settings) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "rotate", Short: "Make a new key current and seal everything again under it", Args: cobra.NoArgs,
		Long: "Make a new key current and seal everything again under it, while the nodes go on serving.\n" +
			"The key is appended to master.key of the state folder. Nodes with another state folder need that line too: until each\n" +
			"node that serves has it, nothing is sealed under it. Where HOMEPORT_MASTER_KEY holds the keys, append a comma and a new\n" +
			"key to it on every node, start them again one after another, and run this.\n" +
			"It may be run again after it was interrupted anywhere. Backups made before the old key is retired still need it.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd, s, func(ctx context.Context, m *app.Admin) error {
				done, err := m.RotateMasterKey(ctx)
				if err != nil {
					return err
				}
				return result(cmd.OutOrStdout(), asJSON, done, rotationText(done))
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return c
}

func rotationText(done app.KeyRotation) string {
	text := fmt.Sprintf("The master key %s is current; %d values were sealed again.", done.Key, done.Resealed)
	if !done.Fresh {
		text += "\nThis ended the rotation that was begun before: for another one, retire the old key first."
	}
	for _, id := range done.Old {
		text += fmt.Sprintf("\nNothing is sealed under %s any more: back up master.key, then run homeport keys retire %s.", id, id)
	}
	return text
}

func retireCommand(s *settings) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "retire ID", Short: "End a key under which nothing is sealed any more", Args: cobra.ExactArgs(1),
		Long: "End a key under which nothing is sealed any more. It is moved from master.key to a file of its own beside it, which\n" +
			"backups of the database from its time need: keep it with them, and delete it with the last of them.\n" +
			"Run it once more on each other machine that has a file with the key.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, s, func(ctx context.Context, m *app.Admin) error {
				done, err := m.RetireMasterKey(ctx, args[0])
				if err != nil {
					return err
				}
				text := fmt.Sprintf("The master key %s is retired.", done.ID)
				if done.Kept != "" {
					text += " Backups made before this retirement need it: it lies in " + done.Kept + " now."
				} else {
					text += " Where HOMEPORT_MASTER_KEY holds it, take it out; backups made before this retirement need it."
				}
				return result(cmd.OutOrStdout(), asJSON, done, text)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return c
}
