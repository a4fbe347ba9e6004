package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"homeport.dev/homeport/internal/app"
)

// settings collects the flags that set a setting: --set NAME=value, and one
// flag for those that are set most.
type settings struct {
	set                  map[string]string
	addr, state, failing string
}

// load reads the configuration of every command in the same way.
func (s *settings) load() (app.Config, error) {
	flags := map[string]string{}
	for name, value := range s.set {
		flags[name] = value
	}
	for name, value := range map[string]string{"ADDR": s.addr, "STATE_DIR": s.state, "FAILPOINT": s.failing} {
		if value != "" {
			flags[name] = value
		}
	}
	return app.Load(os.Environ(), flags)
}

func rootCommand() *cobra.Command {
	s := &settings{}
	root := &cobra.Command{
		Use: "homeport", Short: "GPUs from any cloud, volumes that move between them",
		SilenceUsage: true, SilenceErrors: true, Version: app.Version,
	}
	root.PersistentFlags().StringToStringVar(&s.set, "set", nil, "a setting, as NAME=value")
	root.PersistentFlags().StringVar(&s.addr, "addr", "", "address to serve on")
	root.PersistentFlags().StringVar(&s.state, "state-dir", "", "folder of all state")
	root.PersistentFlags().StringVar(&s.failing, "failpoint", "", "die at this failpoint (tests)")
	root.AddCommand(serveCommand(s), checkCommand(s), migrateCommand(s), ledgerCommand(s), volumeCommand(s), sandboxCommand(s),
		podCommand(s), reaperCommand(s), keysCommand(s), failpointsCommand(), sshConfigCommand(s))
	return root
}

func serveCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Serve until SIGTERM", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.load()
			if err != nil {
				return err
			}
			return app.Run(cmd.Context(), c, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
}

func checkCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "check-config", Short: "Check the settings and name every mistake", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := s.load(); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "The settings are good.")
			return err
		},
	}
}
