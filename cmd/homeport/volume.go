package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"homeport.dev/homeport/internal/app"
	"homeport.dev/homeport/internal/fault"
)

func volumeCommand(s *settings) *cobra.Command {
	volume := &cobra.Command{Use: "volume", Short: "Volumes: their versions, and what is in them"}
	volume.AddCommand(repositoryCommand(s), versionsCommand(s), lsCommand(s), catCommand(s), tarCommand(s), restoreCommand(s), damageCommand(s))
	return volume
}

// onVolume runs a command on a volume named by its first argument.
func onVolume(cmd *cobra.Command, s *settings, args []string, run func(ctx context.Context, m *app.Admin, volumeID uuid.UUID) error) error {
	volumeID, err := uuid.Parse(args[0])
	if err != nil {
		return fmt.Errorf("%q is not a volume's id", args[0])
	}
	return withAdmin(cmd, s, func(ctx context.Context, m *app.Admin) error {
		err := run(ctx, m, volumeID)
		if f := fault.Of(err); f != nil { // what a user would read, and why
			return fmt.Errorf("%s (%w)", f.Detail, err)
		}
		return err
	})
}

func repositoryCommand(s *settings) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "repository ID", Short: "Name a volume's repository, for a plain restic", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onVolume(cmd, s, args, func(ctx context.Context, m *app.Admin, volumeID uuid.UUID) error {
				r, err := m.VolumeRepository(ctx, volumeID)
				if err != nil {
					return err
				}
				password := r.Password
				if r.TeamKey {
					password = "the volume's key, which only its team has"
				}
				text := fmt.Sprintf("repository  %s\npassword    %s\nsnapshot    %s", r.Repository, password, r.Snapshot)
				return result(cmd.OutOrStdout(), asJSON, r, text)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return c
}

func versionsCommand(s *settings) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "versions ID", Short: "List the versions of a volume, newest first", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onVolume(cmd, s, args, func(ctx context.Context, m *app.Admin, volumeID uuid.UUID) error {
				versions, err := m.VolumeVersions(ctx, volumeID)
				if err != nil {
					return err
				}
				return result(cmd.OutOrStdout(), asJSON, map[string]any{"versions": versions}, versionsText(versions))
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return c
}

func versionsText(versions []app.VersionLine) string {
	if len(versions) == 0 {
		return "Nothing is committed yet."
	}
	lines := []string{fmt.Sprintf("%8s  %-20s  %15s  %9s  %s", "VERSION", "TIME", "BYTES", "ENTRIES", "BY")}
	for _, v := range versions {
		by := "pod " + v.PodID
		if v.RestoredFrom != nil {
			by = fmt.Sprintf("restored from %d", *v.RestoredFrom)
		}
		if v.Added != nil {
			by += fmt.Sprintf(", files +%d ~%d -%d", *v.Added, *v.Changed, *v.Removed)
		}
		lines = append(lines, fmt.Sprintf("%8d  %-20s  %15d  %9d  %s", v.Version, v.CreatedAt.UTC().Format(time.RFC3339), v.SizeBytes, v.Entries, by))
	}
	return strings.Join(lines, "\n")
}

// versionFlag adds the flag that names a version.
func versionFlag(c *cobra.Command) *string {
	return c.Flags().String("version", "latest", "number of the version")
}

// pathOf is the second argument, if there is one.
func pathOf(args []string) string {
	if len(args) > 1 {
		return args[1]
	}
	return ""
}

func lsCommand(s *settings) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "ls ID [PATH]", Short: "List a folder of a version", Args: cobra.RangeArgs(1, 2),
		Long: "List a folder of a version. PATH is relative to /workspace. Names with other than printable\ncharacters are quoted as in Go.",
	}
	version := versionFlag(c)
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return onVolume(cmd, s, args, func(ctx context.Context, m *app.Admin, volumeID uuid.UUID) error {
			out := bufio.NewWriter(cmd.OutOrStdout())
			err := m.VolumeList(ctx, volumeID, *version, pathOf(args), func(e app.EntryLine) error { return writeEntry(out, asJSON, e) })
			return errors.Join(err, out.Flush())
		})
	}
	return c
}

func writeEntry(w io.Writer, asJSON bool, e app.EntryLine) error {
	if asJSON {
		return json.NewEncoder(w).Encode(e)
	}
	name := printable(e.Name)
	if e.Target != "" {
		name += " -> " + printable(e.Target)
	}
	_, err := fmt.Fprintf(w, "%s  %15d  %s  %s\n", e.Mode, e.Size, e.ModifiedAt.UTC().Format(time.RFC3339), name)
	return err
}

// printable quotes a name that a terminal would not show as it is.
func printable(name string) string {
	quoted := strconv.Quote(name)
	if quoted[1:len(quoted)-1] == name {
		return name
	}
	return quoted
}

func catCommand(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use: "cat ID PATH", Short: "Write a file of a version to the standard output", Args: cobra.ExactArgs(2),
	}
	version := versionFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return onVolume(cmd, s, args, func(ctx context.Context, m *app.Admin, volumeID uuid.UUID) error {
			return m.VolumeCat(ctx, cmd.OutOrStdout(), volumeID, *version, args[1])
		})
	}
	return c
}

func tarCommand(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use: "tar ID [PATH]", Short: "Write a folder of a version to the standard output, as a tar archive", Args: cobra.RangeArgs(1, 2),
	}
	version := versionFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if f, ok := cmd.OutOrStdout().(*os.File); ok {
			if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
				return errors.New("an archive is not for a terminal: redirect the output to a file or a pipe")
			}
		}
		return onVolume(cmd, s, args, func(ctx context.Context, m *app.Admin, volumeID uuid.UUID) error {
			return m.VolumeTar(ctx, cmd.OutOrStdout(), volumeID, *version, pathOf(args))
		})
	}
	return c
}

func restoreCommand(s *settings) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "restore ID VERSION", Short: "Make the files of a version the newest again, as a new version", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onVolume(cmd, s, args, func(ctx context.Context, m *app.Admin, volumeID uuid.UUID) error {
				v, err := m.VolumeRestore(ctx, volumeID, args[1])
				if err != nil {
					return err
				}
				return result(cmd.OutOrStdout(), asJSON, v, fmt.Sprintf("Version %d is the newest.", v.Version))
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return c
}
