// spmmrun kernels

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/spec"
)

func newKernels() *cobra.Command {
	var report string
	c := &cobra.Command{
		Use:   "kernels [FORMAT]",
		Short: "List the kernels: what each computes, its tiles, what it needs, and where it is the fastest",
		Long: `List the kernels: what each computes, its tiles, what it needs of a device, and where it is the fastest.

A format has several kernels for each API. Which of them multiplies is decided by the device, the packed matrix and the
number of columns; a report names it. --variant of spmmrun and spmmrun bench asks for one by the names that are listed:
FORMAT/KERNEL or FORMAT/KERNEL/TILE.`,
		Example: `  spmmrun kernels
  spmmrun kernels dense
  spmmrun --variant dense/hopper/128x192 --precision f16 gen:uniform,rows=4096,density=0.7`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return kernelFormats(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && !slices.Contains(kernelFormats(), args[0]) {
				return unknownName("format", args[0], kernelFormats())
			}
			l := listKernels(args...)
			if report == "json" {
				return writeJSON(c.OutOrStdout(), l)
			}
			return l.write(c.OutOrStdout())
		},
	}
	addReport(c, &report)
	return c
}

// unknownName says what a name might have been.
func unknownName(what, name string, known []string) error {
	if meant := nearest(name, known); meant != "" {
		return fmt.Errorf("unknown %s %q; did you mean %s?", what, name, meant)
	}
	return fmt.Errorf("unknown %s %q: want %s", what, name, orList(known))
}

// kernelFormats lists the formats, and the kernels of reproducible mode.
func kernelFormats() []string {
	var names []string
	for _, k := range allKernels() {
		names = append(names, k.Name)
	}
	return names
}

func allKernels() []*spec.Format { return append(shaders.Formats(), shaders.Reproducible) }

// kernelList is the report.
type kernelList struct {
	Kernels []kernelEntry `json:"kernels"`
}

type kernelEntry struct {
	Name    string   `json:"name"` // FORMAT/KERNEL
	Backend string   `json:"backend"`
	Sources []string `json:"sources"` // below shaders/FORMAT; none for code in Go
	Tiles   []string `json:"tiles"`   // rows by columns of C; none where the launch decides
	Types   []string `json:"types"`
	Needs   []string `json:"needs"`
	Summary string   `json:"summary"`
	When    string   `json:"when"`
}

// listKernels lists those of some formats, or all.
func listKernels(of ...string) kernelList {
	l := kernelList{Kernels: []kernelEntry{}}
	for _, k := range allKernels() {
		if len(of) > 0 && !slices.Contains(of, k.Name) {
			continue
		}
		for _, x := range k.Kinds() {
			e := kernelEntry{Name: k.Name + "/" + x.Name, Backend: spec.Backend(x.Code), Summary: x.Summary, When: x.When}
			for _, list := range []struct {
				to   *[]string
				from []string
			}{{&e.Sources, x.Sources}, {&e.Tiles, x.Tiles}, {&e.Types, x.Types}, {&e.Needs, x.Needs}} {
				*list.to = append([]string{}, list.from...)
			}
			l.Kernels = append(l.Kernels, e)
		}
	}
	return l
}

func (l kernelList) write(w io.Writer) error {
	var b strings.Builder
	for i, k := range l.Kernels {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s  (%s)\n", k.Name, strings.Join(append([]string{k.Backend}, k.Sources...), ", "))
		for _, line := range []struct{ name, text string }{
			{"computes", k.Summary}, {"fastest", k.When}, {"tiles", strings.Join(k.Tiles, "  ")},
			{"types", strings.Join(k.Types, ", ")}, {"needs", strings.Join(k.Needs, ", ")},
		} {
			if line.text != "" {
				b.WriteString(spec.Wrap("  "+fmt.Sprintf("%-9s", line.name)+" ", line.text, 100))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// kernelFlag is a flag that takes FORMAT, FORMAT/KERNEL or FORMAT/KERNEL/TILE.
type kernelFlag struct{ format, variant *string }

func (f kernelFlag) String() string {
	if *f.variant == "" {
		return ""
	}
	return *f.format + "/" + *f.variant
}

func (f kernelFlag) Type() string { return "FORMAT[/KERNEL[/TILE]]" }

func (f kernelFlag) Set(s string) error {
	s = strings.NewReplacer(" ", "/", "×", "x").Replace(s)
	format, name, named := strings.Cut(s, "/")
	if !slices.Contains(spmm.Formats(), format) {
		return unknownName("format", format, spmm.Formats())
	}
	*f.format, *f.variant = format, ""
	if !named {
		return nil
	}
	if known := kernelNames(format); !slices.Contains(known, name) {
		return unknownName("kernel of "+format, name, known)
	}
	*f.variant = name
	return nil
}

// kernelNames lists what a format's kernels can be asked for by: KERNEL and KERNEL/TILE.
func kernelNames(format string) []string {
	var names []string
	for _, k := range shaders.Formats() {
		for _, v := range k.Variants {
			if k.Name == format && !v.Any {
				names = append(names, v.Kind.Name, v.KernelName())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// addKernel adds --variant, with completion.
func addKernel(c *cobra.Command, format, variant *string) {
	c.Flags().Var(kernelFlag{format, variant}, "variant", "kernel that is to multiply, as spmmrun kernels lists them; it says --format, too")
	var all []string
	for _, f := range spmm.Formats() {
		for _, name := range kernelNames(f) {
			all = append(all, f+"/"+name)
		}
	}
	complete(c, "variant", all)
}
