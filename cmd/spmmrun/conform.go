// spmmrun conform: the conformance suite on a device, into a manifest.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/spf13/cobra"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance"
	"github.com/spmmrun/spmm/internal/printable"
)

// conform holds the options of the command line.
type conform struct {
	backend, tier, filter string
	unlisted, bare        bool
	out, report, commit   string
	unfinished            *temporaries
}

func newConform(unfinished *temporaries) *cobra.Command {
	f := &conform{unfinished: unfinished}
	c := &cobra.Command{
		Use:   "conform [flags]",
		Short: "Run the conformance suite on a device and write its manifest",
		Long: `conform multiplies some thousands of small problems in every format and precision that a device runs, in
fast and in reproducible mode, checks every answer, and watches the memory around every buffer. It writes the results to a
manifest, which spmmrun verify checks on any machine and spmmrun compare compares with others. If it is interrupted or
the device is lost, the manifest has the cases that ran, and is marked as incomplete.

Exit codes: 0 all right, 1 some case failed or none passed, 2 usage, 3 backend unavailable or lost, 130 interrupted.`,
		Example: `  spmmrun conform
  spmmrun conform --backend vulkan:1 --out vulkan-my-gpu.json.gz
  spmmrun conform --backend cuda --filter '^csr/.*/T3/'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c.Context(), c.OutOrStdout(), newProgress(c.ErrOrStderr()))
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	f.backend = "auto"
	addBackend(c, deviceName{&f.backend}, "device to run on; auto takes the fastest")
	addChoice(c, &f.tier, "tier", "how much to run: minutes, or also larger problems and more seeds", string(conformance.Quick), string(conformance.Full))
	fs.StringVar(&f.filter, "filter", "", "only cases whose names match `REGEXP`")
	fs.StringVarP(&f.out, "out", "o", "", "write the manifest to `FILE.json`, or compressed to FILE.json.gz")
	fs.StringVar(&f.commit, "commit", "", "`HASH` of the source, if the build did not record it")
	fs.BoolVar(&f.unlisted, "unlisted", false, "also run matrix shapes that the device does not list (Mesa's driver for CPUs computes any)")
	fs.BoolVar(&f.bare, "bare", false, "leave out the sentinels around buffers, for tools that watch memory themselves")
	addChoice(c, &f.report, "report", "what to print: a table, or the manifest", "table", "json")
	return c
}

// run runs the suite and reports.
func (f *conform) run(ctx context.Context, stdout io.Writer, p *progress) error {
	defer p.end()
	o := conformance.Options{Tier: conformance.Tier(f.tier), Commit: f.commit, Unlisted: f.unlisted, Bare: f.bare}
	var err error
	if o.Filter, err = pattern(f.filter); err != nil {
		return fmt.Errorf("--filter: %w", err)
	}
	out, err := newOutput(f.out, f.unfinished, false)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	dev, err := spmm.OpenBackend(ctx, f.backend)
	if err != nil {
		return err
	}
	defer dev.Close()
	o.Progress = p.cases("conformance")
	start := time.Now()
	report := func(m *conformance.Manifest) error {
		p.end()
		if err := out.write(encoder(m, f.out)); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		if f.report == "json" {
			return m.Encode(stdout)
		}
		return printRun(stdout, m, time.Since(start))
	}
	o.Partial = func(m *conformance.Manifest) {
		if err := report(m); err != nil {
			p.warn(oneLine(err))
		}
	}
	m, err := conformance.Run(ctx, dev, o)
	if err != nil {
		return err
	}
	if err := report(m); err != nil {
		return err
	}
	return outcome(m)
}

// encoder writes a manifest as the name of its file says: compressed, or as it is.
func encoder(m *conformance.Manifest, name string) func(io.Writer) error {
	if !strings.HasSuffix(name, ".gz") {
		return m.Encode
	}
	return func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		return errors.Join(m.Encode(z), z.Close())
	}
}

// pattern compiles a regular expression, none if it is empty.
func pattern(s string) (*regexp.Regexp, error) {
	if s == "" {
		return nil, nil
	}
	return regexp.Compile(s)
}

// outcome is the error of a run that is not as it should be.
func outcome(m *conformance.Manifest) error {
	if n := m.Summary[conformance.Fail]; n > 0 {
		return fmt.Errorf("%d of %d cases failed: %w", n, len(m.Cases), errRefuted)
	}
	if len(m.ProbeErrors) > 0 {
		return fmt.Errorf("a probe could not be made: %s: %w", m.ProbeErrors[0], errRefuted)
	}
	if m.Summary[conformance.Pass] == 0 {
		return fmt.Errorf("no case passed: %w", errRefuted)
	}
	return nil
}

// printRun prints what a manifest says.
func printRun(w io.Writer, m *conformance.Manifest, took time.Duration) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "device\t%s\n", printable.String(m.Device.String()))
	suite := fmt.Sprintf("%s, tier %s", m.Suite, m.Tier)
	if m.Filter != "" {
		suite += ", cases " + m.Filter
	}
	fmt.Fprintf(t, "suite\t%s\n", suite)
	if m.Commit != "" {
		fmt.Fprintf(t, "source\t%s\n", printable.String(m.Commit))
	}
	fmt.Fprintf(t, "result\t%s in %.3g s\n", counts(m.Summary), took.Seconds())
	if m.Incomplete != nil {
		fmt.Fprintf(t, "incomplete\t%v\n", m.Incomplete)
	}
	for _, p := range m.Probes {
		fmt.Fprintf(t, "unit %s\t%s\n", p.Type, describe(p))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := printClasses(w, m); err != nil {
		return err
	}
	return printFailures(w, m)
}

// statuses in the order of the report.
var statuses = []conformance.Status{conformance.Pass, conformance.Fail, conformance.Waived, conformance.Unsupported}

func counts(n map[conformance.Status]int) string {
	var words []string
	for _, s := range statuses {
		if n[s] > 0 {
			words = append(words, fmt.Sprintf("%d %s", n[s], s))
		}
	}
	return strings.Join(words, ", ")
}

// describe puts a probe in words.
func describe(p conformance.Probe) string {
	s := fmt.Sprintf("%d fraction bits, %d terms at once, rounds %s, then %s; subnormal inputs %s", p.FractionBits, p.FusedTerms, p.Rounding, p.ChainRounding, p.SubnormalInputs)
	if p.SubnormalOutputs != "" {
		s += ", outputs " + p.SubnormalOutputs
	}
	s += "; NaN " + p.NaN
	if p.ComplementAdder {
		s += "; complements addends"
	}
	return s
}

// classes in the order of the columns.
var classes = []string{
	conformance.SameSign, conformance.MixedSign, conformance.NonFinite, conformance.Subnormal, conformance.General,
	conformance.Reproducible,
}

// printClasses prints a line for each format and a column for each class: how many passed, what else there
// was, and of class T2 the largest error over its bound.
func printClasses(w io.Writer, m *conformance.Manifest) error {
	type cell struct {
		n     map[conformance.Status]int
		worst float64
	}
	cells := map[string]map[string]*cell{}
	for i := range m.Cases {
		r := &m.Cases[i]
		format, _, _ := strings.Cut(r.ID, "/")
		if cells[format] == nil {
			cells[format] = map[string]*cell{}
			for _, c := range classes {
				cells[format][c] = &cell{n: map[conformance.Status]int{}}
			}
		}
		c := cells[format][conformance.Class(r.ID)]
		c.n[r.Status]++
		if r.Ratio != nil {
			c.worst = max(c.worst, *r.Ratio)
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "PASSED\t%s\n", strings.Join(classes, "\t"))
	for _, format := range slices.Sorted(maps.Keys(cells)) {
		fmt.Fprint(t, format)
		for _, class := range classes {
			c := cells[format][class]
			text := fmt.Sprint(c.n[conformance.Pass])
			if class == conformance.General && c.n[conformance.Pass] > 0 {
				text += fmt.Sprintf(" (%.2g)", c.worst)
			}
			for _, s := range statuses[1:] {
				if c.n[s] > 0 {
					text += fmt.Sprintf(", %d %s", c.n[s], s)
				}
			}
			fmt.Fprintf(t, "\t%s", text)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// printFailures lists the cases that failed or were waived, the first of them.
func printFailures(w io.Writer, m *conformance.Manifest) error {
	const most = 20
	left := 0
	for i := range m.Cases {
		r := &m.Cases[i]
		if r.Status != conformance.Fail && r.Status != conformance.Waived {
			continue
		}
		if left++; left <= most {
			if _, err := fmt.Fprintf(w, "%s: %s with %s: %s\n", r.Status, printable.String(r.ID), printable.String(r.Variant),
				printable.String(r.Error)); err != nil {
				return err
			}
		}
	}
	if left > most {
		_, err := fmt.Fprintf(w, "and %d more\n", left-most)
		return err
	}
	return nil
}
