// spmmrun man, which make install and releases call: the manual's pages, from the commands' help.

package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
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
			root.DisableAutoGenTag = true // a day would make each build's pages others; the month is SOURCE_DATE_EPOCH's
			forManual(root)
			header := &doc.GenManHeader{Section: "1", Source: "spmmrun " + number, Manual: "spmmrun"}
			return doc.GenManTree(root, header, args[0])
		},
	}
}

// forManual has the help of a command, and of those below it, say in Markdown what it says on a terminal: indented
// paragraphs keep their lines, and flags that take one of some words name these.
func forManual(c *cobra.Command) {
	paragraphs := strings.Split(c.Long, "\n\n")
	for i, p := range paragraphs {
		if strings.HasPrefix(p, "  ") {
			paragraphs[i] = "```\n" + p + "\n```"
		}
	}
	c.Long = strings.Join(paragraphs, "\n\n")
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if words := f.Value.Type(); strings.Contains(words, "|") {
			f.Usage += " (" + strings.ReplaceAll(words, "|", ", ") + ")"
		}
	})
	for _, below := range c.Commands() {
		forManual(below)
	}
}
