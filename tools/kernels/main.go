// Command kernels writes docs/kernels.md, the table of all kernels, from the kernels' own tables.
//
//	go run ./tools/kernels
//
// A test fails when the file that is checked in is not what this writes.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/spec"
)

func main() {
	root := flag.String("root", ".", "the tree's `FOLDER`")
	flag.Parse()
	if err := os.WriteFile(filepath.Join(*root, file), []byte(text()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

const file = "docs/kernels.md"

const head = `# Kernels

Generated from the tables in ` + "`shaders/NAME`" + ` by ` + "`go run ./tools/kernels`" + `. Do not edit.

A format has several kernels for each API. The device, the packed matrix and the number of columns decide which of them
multiplies. A report names it, for example ` + "`dense/hopper 128×192`" + `.
` + "`spmmrun --variant FORMAT/KERNEL[/TILE]`" + ` asks for one, and ` + "`spmmrun kernels`" + ` prints this list.

A tile is rows × columns of C; n32 is 32 columns, with as many rows as the launch decides. After it, split2 is split-K
by two CTAs, and cluster2 a cluster of two CTAs that share operands. "As NAME" means the format's kernel of that name
for the same API. FMA is a fused multiply-add. The [glossary](glossary.md) has the other terms.
`

// text is the file.
func text() string {
	const width = 118
	var b strings.Builder
	b.WriteString(head)
	for _, k := range append(shaders.Formats(), shaders.Reproducible) {
		fmt.Fprintf(&b, "\n## %s\n", k.Name)
		for _, x := range k.Kinds() {
			fmt.Fprintf(&b, "\n### %s/%s on %s\n\n", k.Name, x.Name, spec.Backend(x.Code))
			b.WriteString(spec.Wrap("", sentence(x.Summary), width) + "\n")
			for _, line := range []struct {
				name string
				list []string
			}{{"fastest", []string{x.When}}, {"source", links(k.Name, x.Sources)}, {"tiles", x.Tiles}, {"types", x.Types},
				{"needs", x.Needs}} {
				if len(line.list) > 0 {
					b.WriteString(spec.Wrap("- ", line.name+": "+strings.Join(line.list, ", "), width))
				}
			}
		}
	}
	return b.String()
}

// sentence is a summary with a capital and a full stop.
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

// links are the sources of a kernel as links.
func links(format string, sources []string) []string {
	var s []string
	for _, name := range sources {
		s = append(s, fmt.Sprintf("[%s](../shaders/%s/%s)", name, format, name))
	}
	return s
}
