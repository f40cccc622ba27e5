// spmmrun man, which make install and releases call: the manual's pages, from the commands' help.

package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man FOLDER",
		Short:  "Write the manual's pages into a folder, a file for each command",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			number, _ := build()
			root := c.Root()
			root.DisableAutoGenTag = true // a date would make each build's pages others
			header := &doc.GenManHeader{Section: "1", Source: "spmmrun " + number, Manual: "spmmrun"}
			return doc.GenManTree(root, header, args[0])
		},
	}
}
