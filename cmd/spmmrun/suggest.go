// Misspelt commands and flags.

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spmmrun/spmm/formats/gen"
)

// suggestCommand is the error for a first argument that is no matrix and looks like a command, nil if it may be a
// matrix.
func suggestCommand(c *cobra.Command, arg string) error {
	if _, err := os.Stat(arg); !errors.Is(err, fs.ErrNotExist) || strings.HasPrefix(arg, gen.Prefix) || arg == "-" {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			names = append(names, sub.Name())
		}
	}
	if name := nearest(arg, names); name != "" {
		return fmt.Errorf("%s: no such file, and no such command; did you mean %s %s?", arg, c.CommandPath(), name)
	}
	return nil
}

// suggestFlag adds to the error of an unknown flag the one that was probably meant.
func suggestFlag(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	name := unknown.GetSpecifiedName()
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		name, _, _ = strings.Cut(short, "=") // -backend instead of --backend
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if meant := nearest(name, names); meant != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, meant)
	}
	return fmt.Errorf("%w; see %s --help", err, c.CommandPath())
}

// nearest returns the word that s was probably meant to be, "" if none: one that differs by at most two edits, or
// begins with s.
func nearest(s string, words []string) string {
	best, least := "", 3
	for _, w := range words {
		if d := edits(s, w); d < least && d < len(w)-1 {
			best, least = w, d
		}
	}
	for _, w := range words {
		if best == "" && len(s) > 1 && strings.HasPrefix(w, s) {
			best = w
		}
	}
	return best
}

// edits returns the least number of letters to insert, delete, replace or swap with their neighbour that make b of a
// (optimal string alignment).
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	d := make([][]int, len(x)+1)
	for i := range d {
		d[i] = make([]int, len(y)+1)
		d[i][0] = i
	}
	for j := range y {
		d[0][j+1] = j + 1
	}
	for i := range x {
		for j := range y {
			cost := toInt(x[i] != y[j])
			d[i+1][j+1] = min(d[i][j+1]+1, d[i+1][j]+1, d[i][j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				d[i+1][j+1] = min(d[i+1][j+1], d[i-1][j-1]+1)
			}
		}
	}
	return d[len(x)][len(y)]
}
