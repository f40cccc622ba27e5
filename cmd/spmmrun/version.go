// spmmrun version

package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and what is built in",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return printVersion(c.OutOrStdout())
		},
	}
}

func printVersion(w io.Writer) error {
	_, err := fmt.Fprintln(w, version())
	return err
}

// version is the command's version, commit, compiler and backends.
func version() string {
	number, commit := build()
	if commit != "" {
		commit = " " + commit[:min(12, len(commit))]
	}
	return fmt.Sprintf("spmmrun %s%s, %s %s/%s, backends %s", number, commit,
		runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.Join(backendNames()[1:], " "))
}

// stamped is the version that the build names (make sets it, with -X), for sources that are not a checkout.
var stamped string

// build returns the module's version and the commit it was built from, "" if that was not recorded; "+changes" follows
// one whose files had been changed.
func build() (number, commit string) {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(stamped, "(devel)"), ""
	}
	changed := ""
	for _, s := range b.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+changes"
		}
	}
	if commit != "" {
		commit += changed
	}
	return cmp.Or(stamped, b.Main.Version, "(devel)"), commit
}
