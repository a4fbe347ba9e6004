package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"homeport.dev/homeport/internal/app"
)

// damageCommand lists what the object store lost or changed.
func damageCommand(s *settings) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "damage", Short: "List damaged objects and each volume's newest whole version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd, s, func(ctx context.Context, m *app.Admin) error {
				found, err := m.Damage(ctx)
				if err != nil {
					return err
				}
				lines := []string{fmt.Sprintf("%d damaged objects", len(found))}
				for _, d := range found {
					lines = append(lines, fmt.Sprintf("%s  %q  %s %s %s since %s: %s", d.VolumeID, d.Name, d.Kind, d.Object[:12], d.What, d.FoundAt.Format("2006-01-02"), wholeVersion(d)))
				}
				return result(cmd.OutOrStdout(), asJSON, map[string]any{"damaged": found}, strings.Join(lines, "\n"))
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return c
}

// wholeVersion says which version of a damaged object's volume is whole.
func wholeVersion(d app.DamagedObject) string {
	switch {
	case d.LastGoodSeq != nil:
		return fmt.Sprintf("version %d is whole", *d.LastGoodSeq)
	case d.Locked:
		return "locked, a whole version is looked for within 10 minutes of unlocking"
	}
	return "no whole version is known"
}
