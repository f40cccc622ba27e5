// spmmrun compare: which devices agree?

package main

import (
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/spmmrun/spmm/conformance"
	"github.com/spmmrun/spmm/internal/printable"
)

func newCompare() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "compare [flags] A.json B.json...",
		Short: "Tell which devices gave the same bits, case by case and as a matrix",
		Long: `compare compares manifests. Outputs of classes T1 and T3 must be the same on all devices. Those of class T2
may differ in their last bits, and cases with subnormal operands have two right answers: of these the report only counts
how many are the same.

Each manifest has a letter. The matrix shows for each pair how many of their common cases agree; - marks pairs without a
common case, such as those of different versions of the suite. Below it are the cases that differ and must not, or with
--all every case: letters next to each other gave the same bits.

Exit codes: 0 all that must agree does, 1 something does not or nothing can be compared, 2 usage or no manifest.`,
		Args: atLeast(2, "manifests"),
		RunE: func(c *cobra.Command, args []string) error {
			mans, err := readManifests(args)
			if err != nil {
				return err
			}
			return compareManifests(c.OutOrStdout(), args, mans, all)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "print every case")
	return c
}

// letter names manifest i.
func letter(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return fmt.Sprintf("%s%d", letter(i%26), i/26)
}

func compareManifests(w io.Writer, paths []string, mans []*conformance.Manifest, all bool) error {
	cases := conformance.Agreements(mans...)
	for i, m := range mans {
		has := counts(m.Summary)
		if m.Incomplete != nil {
			has += fmt.Sprintf(", incomplete: %v", m.Incomplete)
		}
		fmt.Fprintf(w, "%s  %s: %s, suite %s: %s\n", letter(i), filepath.Base(paths[i]), printable.String(m.Device.String()),
			printable.String(m.Suite), has)
	}
	shared := 0
	for i, g := range []struct {
		title string
		has   func(a *conformance.Agreement) bool
	}{
		{"T1, nonfinite and T3 must be the same", func(a *conformance.Agreement) bool { return a.Exact }},
		{"subnormal operands may be kept or taken for zero",
			func(a *conformance.Agreement) bool { return conformance.Class(a.ID) == conformance.Subnormal }},
		{"T2 may differ in rounding",
			func(a *conformance.Agreement) bool { return conformance.Class(a.ID) == conformance.General }},
	} {
		n, err := printMatrix(w, g.title, cases, len(mans), g.has)
		if err != nil {
			return err
		}
		if i == 0 {
			shared = n
		}
	}
	differ := 0
	fmt.Fprintln(w)
	for i := range cases {
		a := &cases[i]
		if a.Wrong != "" {
			differ++
			fmt.Fprintf(w, "differs, %s: %s\n", groups(a), printable.String(a.Wrong))
		}
		if all {
			fmt.Fprintf(w, "%-*s  %s\n", 2*len(mans), groups(a), printable.String(a.ID))
		}
	}
	switch {
	case differ > 0:
		return fmt.Errorf("cases that differ and must not: %d: %w", differ, errRefuted)
	case shared == 0:
		return fmt.Errorf("no case of T1 or T3 is in two of the manifests: %w", errRefuted)
	}
	_, err := fmt.Fprintf(w, "all devices agree on every case of T1, nonfinite and T3 that they share\n")
	return err
}

// printMatrix prints of each pair how many of the cases of a kind that both have agree, and returns how many
// there are in all.
func printMatrix(w io.Writer, title string, cases []conformance.Agreement, n int,
	has func(*conformance.Agreement) bool) (int, error) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\n%s\n", title)
	for j := range n {
		fmt.Fprintf(t, "\t%s", letter(j))
	}
	fmt.Fprintln(t)
	total := 0
	for i := range n {
		fmt.Fprint(t, letter(i))
		for j := range n {
			both, same := 0, 0
			for k := range cases {
				if has(&cases[k]) {
					b, s := cases[k].Same(i, j)
					both, same = both+toInt(b), same+toInt(s)
				}
			}
			if i != j {
				total += both
			}
			if both == 0 {
				fmt.Fprint(t, "\t-")
				continue
			}
			fmt.Fprintf(t, "\t%d/%d", same, both)
		}
		fmt.Fprintln(t)
	}
	return total, t.Flush()
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// groups is the letters of the manifests, those with the same output side by side; - for those that have none.
func groups(a *conformance.Agreement) string {
	s, none := "", ""
	for g := 0; g < len(a.Groups); g++ {
		word := ""
		for i, x := range a.Groups {
			if x == g {
				word += letter(i)
			}
		}
		if word != "" && s != "" {
			s += " "
		}
		s += word
	}
	for i, x := range a.Groups {
		if x < 0 {
			none += letter(i)
		}
	}
	if none != "" {
		s += " -" + none
	}
	return s
}
