// spmmrun man, which make install and releases call: the manual's pages, from the commands' help.

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man FOLDER",
		Short:  "Write the manual's pages into a folder, a file for each command",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			date, err := manualDate()
			if err != nil {
				return err
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writeManual(args[0], c.Root(), date)
		},
	}
}

// manualDate is the month of the pages. A build that is to be repeated sets SOURCE_DATE_EPOCH, in seconds.
func manualDate() (string, error) {
	now := time.Now()
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return "", fmt.Errorf("SOURCE_DATE_EPOCH=%s: want seconds since 1970", epoch)
		}
		now = time.Unix(seconds, 0)
	}
	return now.UTC().Format("Jan 2006"), nil
}

// writeManual writes the pages of a command and those below it.
func writeManual(folder string, c *cobra.Command, date string) error {
	file := filepath.Join(folder, pageOf(c)+".1")
	if err := os.WriteFile(file, manualPage(c, date), 0o644); err != nil {
		return err
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			if err := writeManual(folder, below, date); err != nil {
				return err
			}
		}
	}
	return nil
}

func pageOf(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manualPage is a page in the language of man(7).
func manualPage(c *cobra.Command, date string) []byte {
	c.InitDefaultHelpFlag()
	var b bytes.Buffer
	number, _ := build()
	fmt.Fprintf(&b, ".TH %s 1 %q %q spmmrun\n", roff(strings.ToUpper(pageOf(c))), date, "spmmrun "+number)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(pageOf(c)), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n\\fB%s\\fP\n", roff(c.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	for i, p := range strings.Split(strings.TrimSpace(cmp.Or(c.Long, c.Short)), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(p, " ") || strings.HasPrefix(p, "\t") {
			example(&b, p)
		} else {
			b.WriteString(roff(p) + "\n")
		}
	}
	options(&b, "OPTIONS", c.NonInheritedFlags())
	options(&b, "OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		example(&b, c.Example)
	}
	if others := seeAlso(c); len(others) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(others, ", "))
	}
	return b.Bytes()
}

// example writes lines as they are.
func example(b *bytes.Buffer, lines string) {
	fmt.Fprintf(b, ".EX\n%s\n.EE\n", roff(lines))
}

// options writes a section on flags.
func options(b *bytes.Buffer, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		b.WriteString(".TP\n")
		if f.Shorthand != "" {
			fmt.Fprintf(b, "\\fB\\-%s\\fP, ", f.Shorthand)
		}
		value, usage := pflag.UnquoteUsage(f)
		fmt.Fprintf(b, "\\fB\\-\\-%s\\fP", roff(f.Name))
		if value != "" {
			fmt.Fprintf(b, " \\fI%s\\fP", roff(value))
		}
		b.WriteString("\n" + roff(usage))
		if !slices.Contains([]string{"", "0", "false", "[]"}, f.DefValue) {
			fmt.Fprintf(b, " (default %s)", roff(f.DefValue))
		}
		b.WriteString("\n")
	})
}

// seeAlso names the pages of the command above and of those below.
func seeAlso(c *cobra.Command) (pages []string) {
	if c.HasParent() {
		pages = append(pages, pageOf(c.Parent()))
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			pages = append(pages, pageOf(below))
		}
	}
	for i, p := range pages {
		pages[i] = fmt.Sprintf("\\fB%s\\fP(1)", roff(p))
	}
	return pages
}

// roff has man(7) print text as it is: characters and beginnings of lines that mean something to it are escaped.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
