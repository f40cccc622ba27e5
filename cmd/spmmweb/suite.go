//go:build js

// The conformance suite: what passed, whose bits are the same, and the manifest.

package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/cmd/spmmweb/digests"
	"github.com/spmmrun/spmm/conformance"
	_ "github.com/spmmrun/spmm/portable/webgpu"
)

// row is a line of the table: the cases of a format.
type row struct {
	Format string           `json:"format"`
	Cells  map[string]*cell `json:"cells"` // by class
}

// cell counts the cases of a format and a class.
type cell struct {
	Pass        int `json:"pass"`
	Fail        int `json:"fail"`
	Unsupported int `json:"unsupported"`
}

var classes = []string{
	conformance.SameSign, conformance.MixedSign, conformance.NonFinite, conformance.Subnormal, conformance.General,
	conformance.Reproducible,
}

// suite runs it. The request has a filter ("": all cases) and the table of digests.
func suite(ctx context.Context, r request) error {
	table, err := digests.Read(strings.NewReader(r.text("digests")))
	if err != nil {
		return err
	}
	o := conformance.Options{}
	if f := r.text("filter"); f != "" {
		if o.Filter, err = regexp.Compile(f); err != nil {
			return err
		}
	}
	dev, err := spmm.OpenBackend(ctx, "webgpu")
	if err != nil {
		return err
	}
	defer dev.Close()
	var p progress
	o.Progress = func(done, all int, c *conformance.Result) { p.at(done, all, c.ID) }
	p.at(0, 1, "compiling kernels")
	m, err := conformance.Run(ctx, dev, o)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := m.Encode(&text); err != nil {
		return err
	}
	rows, failed := summary(m)
	same := table.Compare(m)
	post("suite", answer{
		"device": m.Device, "counts": m.Summary, "classes": classes, "rows": rows, "failed": failed, "same": same,
		"manifest": text.String(), "file": fileName(m), "whole": m.Filter == "", "report": report(m, same),
	})
	return nil
}

// summary counts cases, and lists the first that failed.
func summary(m *conformance.Manifest) (rows []row, failed []string) {
	const most = 50
	at := map[string]int{}
	failed = []string{}
	for i := range m.Cases {
		c := &m.Cases[i]
		format, _, _ := strings.Cut(c.ID, "/")
		if _, ok := at[format]; !ok {
			at[format] = len(rows)
			rows = append(rows, row{format, map[string]*cell{}})
		}
		cells, class := rows[at[format]].Cells, conformance.Class(c.ID)
		if cells[class] == nil {
			cells[class] = &cell{}
		}
		switch c.Status {
		case conformance.Pass:
			cells[class].Pass++
		case conformance.Unsupported:
			cells[class].Unsupported++
		default:
			cells[class].Fail++
			if len(failed) < most {
				failed = append(failed, fmt.Sprintf("%s with %s: %s", c.ID, c.Variant, c.Error))
			}
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.Format, b.Format) })
	return rows, failed
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// fileName is the manifest's name.
func fileName(m *conformance.Manifest) string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(m.Device.Name), "-"), "-")
	return "webgpu-" + name + ".json"
}

// report is the text that comes with a contributed manifest.
func report(m *conformance.Manifest, same []digests.Agreement) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Device: %s\nBrowser: %s\nSuite %s, %s tier", m.Device.Name, m.Device.Driver, m.Suite, m.Tier)
	if m.Filter != "" {
		b.WriteString(", only a sample of the cases")
	}
	b.WriteString("\nResult:")
	for _, s := range slices.Sorted(maps.Keys(m.Summary)) {
		fmt.Fprintf(&b, " %d %s", m.Summary[s], s)
	}
	b.WriteString("\n")
	for _, a := range same {
		if a.Compared > 0 {
			fmt.Fprintf(&b, "Same bits as %s: %d of %d cases\n", a.Device, a.Same, a.Compared)
		}
	}
	fmt.Fprintf(&b, "\nThe manifest, %s, is attached; seal %s.\n\nWhat GPU, computer and system is it? (Browsers do not tell.)\n", fileName(m), m.Seal)
	return b.String()
}
