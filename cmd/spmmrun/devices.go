// spmmrun devices

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
)

func newDevices() *cobra.Command {
	var report string
	var measure bool
	c := &cobra.Command{
		Use:   "devices",
		Short: "List the devices, what they can do, and why a backend has none",
		Long: `List the devices, what they can do, and why a backend has none.

Choosing formats and attainable times need a device's rates. They are measured when the device is first used, and again
if a product is faster than they allow. --measure measures every device now and keeps the better of each rate, because
other programs lower them. Rates are files rates-*.json in the user's cache folder (SPMM_CACHE overrides it): remove
them to start over.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l := listDevices(c.Context(), measure)
			if err := c.Context().Err(); err != nil {
				return err
			}
			if report == "json" {
				return writeJSON(c.OutOrStdout(), l)
			}
			return l.table(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&measure, "measure", false, "measure each device again, keep the better of each rate, and show them")
	addReport(c, &report)
	return c
}

// deviceList is the report.
type deviceList struct {
	Devices []deviceEntry `json:"devices"`
	Absent  []absentEntry `json:"absent"`
}

type deviceEntry struct {
	backend.Info
	Matrix []string     `json:"matrix_shapes"`
	Rates  *ratesReport `json:"rates,omitempty"` // with --measure
	Error  string       `json:"error,omitempty"` // why it cannot be opened or measured
}

type absentEntry struct {
	Backend string `json:"backend"`
	Reason  string `json:"reason"`
}

// listDevices opens each device, as only then it tells what it can do.
func listDevices(ctx context.Context, measure bool) deviceList {
	present, absent := spmm.Devices(ctx)
	l := deviceList{Devices: []deviceEntry{}, Absent: []absentEntry{}}
	for _, i := range present {
		if ctx.Err() != nil {
			return l
		}
		e := deviceEntry{Info: i, Matrix: []string{}}
		d, err := spmm.Open(ctx, fmt.Sprintf("%s:%d", i.Backend, i.Index))
		if err != nil {
			e.Error = oneLine(err)
		} else {
			for _, s := range d.Caps().Matrix {
				e.Matrix = append(e.Matrix, s.String())
			}
			if measure {
				if e.Rates, err = measureDevice(ctx, d); err != nil {
					e.Error = oneLine(err)
				}
			}
			d.Close()
		}
		l.Devices = append(l.Devices, e)
	}
	for _, a := range absent {
		l.Absent = append(l.Absent, absentEntry{a.Backend, oneLine(a.Err)})
	}
	return l
}

func (l deviceList) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "DEVICE\tNAME\tVENDOR\tDRIVER\tKIND\tMEMORY\tMATRIX SHAPES")
	for _, d := range l.Devices {
		matrix := matrixShapes(d.Matrix)
		if d.Error != "" {
			matrix = "cannot be used: " + d.Error
		}
		fmt.Fprintf(t, "%s:%d\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Backend, d.Index, d.Name, orDash(d.Vendor), orDash(d.Driver),
			orDash(d.Kind), byteSize(d.Memory), matrix)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if slices.ContainsFunc(l.Devices, func(d deviceEntry) bool { return d.Rates != nil }) {
		if err := l.ratesTable(w); err != nil {
			return err
		}
	}
	for _, a := range l.Absent {
		if _, err := fmt.Fprintln(w, a.Reason); err != nil {
			return err
		}
	}
	return nil
}

// matrixShapes keeps a device's line readable: the first few shapes and how many more there are.
func matrixShapes(s []string) string {
	const shown = 2
	switch {
	case len(s) == 0:
		return "none"
	case len(s) > shown:
		return strings.Join(s[:shown], ", ") + fmt.Sprintf(" and %d more", len(s)-shown)
	}
	return strings.Join(s, ", ")
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// writeJSON writes a report.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
