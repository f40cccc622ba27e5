// Kinds: what the kernels of a program are, for people and for the choice among them.

package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
)

// Kind is one kernel of a program: a design, compiled for several element types and tiles.
type Kind struct {
	Name    string // unique among a program's kernels for one API, such as "hopper"
	Summary string // what it computes, and how operands reach the arithmetic units
	When    string // where it is the fastest
}

// Tile is the part of C that a workgroup, or a cluster of CTAs, computes at a time.
type Tile struct {
	Rows, Cols int // 0: the launch decides
	Splits     int // split-K: workgroups that share the sum of a tile; 0 or 1: one
	Cluster    int // CTAs of a cluster that share operands by multicast; 0 or 1: none
	Panel      int // rows of A that are packed together; 0: the packing has no panels
}

// String names the tile, such as "128×192", "64×32/split2" or "n32" where the launch decides how many rows; "" if it
// decides all.
func (t Tile) String() string {
	var s string
	switch {
	case t.Rows > 0 && t.Cols > 0:
		s = fmt.Sprintf("%d×%d", t.Rows, t.Cols)
	case t.Cols > 0:
		s = fmt.Sprintf("n%d", t.Cols)
	}
	if t.Splits > 1 {
		s += fmt.Sprintf("/split%d", t.Splits)
	}
	if t.Cluster > 1 {
		s += fmt.Sprintf("/cluster%d", t.Cluster)
	}
	return s
}

// Kernel names what a variant runs, for people: "hopper 128×192".
func (v *Variant) Kernel() string {
	if v.Kind == nil {
		return v.Name
	}
	return strings.TrimSpace(v.Kind.Name + " " + v.Tile.String())
}

// KernelName is Kernel as a name to ask for it by: "hopper/128x192".
func (v *Variant) KernelName() string {
	if v.Kind == nil {
		return v.Name
	}
	return strings.NewReplacer(" ", "/", "×", "x").Replace(v.Kernel())
}

// KindInfo is a line of the table of a program's kernels: what there is of a kind for one kind of code.
type KindInfo struct {
	*Kind
	Format  string       // the program's name
	Code    backend.Code // of the devices that run it
	Sources []string     // files in the program's folder; none for code in Go
	Tiles   []string     // as Tile.String names them
	Types   []string     // of elements; "f16 s8" is f16 with values of A of 8 bits
	Needs   []string     // of a device

	variants []*Variant
}

// Kinds lists the program's kernels in the order of their first variants.
func (k *Program) Kinds() []*KindInfo {
	var rows []*KindInfo
	for _, v := range k.Variants {
		if v.Any {
			continue
		}
		i := slices.IndexFunc(rows, func(r *KindInfo) bool { return r.Kind == v.Kind && r.Code == v.Code })
		if i < 0 {
			i = len(rows)
			rows = append(rows, &KindInfo{Kind: v.Kind, Format: k.Name, Code: v.Code})
		}
		rows[i].add(v)
	}
	for _, r := range rows {
		r.Needs = needs(r.variants)
	}
	slices.SortStableFunc(rows, func(x, y *KindInfo) int { return cmp.Compare(codeOrder(x.Code), codeOrder(y.Code)) })
	return rows
}

// codeOrder sorts CUDA first and the CPU last.
func codeOrder(c backend.Code) int {
	return slices.Index([]backend.Code{backend.CodePTX, backend.CodeSPIRV, backend.CodeWGSL, backend.CodeGo}, c)
}

// add adds what a variant says.
func (r *KindInfo) add(v *Variant) {
	r.variants = append(r.variants, v)
	if v.Unit.Source != "" {
		r.Sources = with(r.Sources, v.Unit.Source)
	}
	if t := v.Tile.String(); t != "" {
		r.Tiles = with(r.Tiles, t)
	}
	t := v.In.String()
	if v.Quant != dtype.Invalid {
		t += " " + v.Quant.String()
	}
	r.Types = with(r.Types, t)
}

// with appends what is not in a list yet.
func with(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// needs names what a device must have to run any of some variants.
func needs(vs []*Variant) []string {
	all := vs[0].Need
	var shapes []string
	bytes, dots := true, false // each by MMA or dot products
	for _, v := range vs {
		n := v.Need
		all.Arch, all.Exact = min(all.Arch, n.Arch), all.Exact && n.Exact
		all.Lanes, all.F64 = all.Lanes && n.Lanes, all.F64 && n.F64
		all.Dot4 = all.Dot4 && n.Dot4
		bytes, dots = bytes && (len(n.Shapes) > 0 || n.Dot4), dots || n.Dot4
		for _, m := range n.Shapes {
			shapes = with(shapes, fmt.Sprintf("%d×%d×%d %v", m.M, m.N, m.K, m.A))
		}
	}
	var s []string
	if all.Arch > 0 {
		s = append(s, fmt.Sprintf("compute capability %d.%d", all.Arch/10, all.Arch%10)+pick(all.Exact, " alone",
			" or higher"))
	}
	if bytes && len(shapes) > 0 {
		s = append(s, "MMA "+strings.Join(shapes, " or ")+pick(dots, " or packed dot products", ""))
	}
	if all.Lanes {
		s = append(s, "fragments laid out as PTX's mma")
	}
	if all.F64 {
		s = append(s, "f64")
	}
	if all.Dot4 {
		s = append(s, "packed dot products")
	}
	return s
}

// Backend names the API whose devices run a kind of code.
func Backend(c backend.Code) string {
	return map[backend.Code]string{
		backend.CodePTX: "cuda", backend.CodeSPIRV: "vulkan", backend.CodeWGSL: "webgpu", backend.CodeGo: "cpu",
	}[c]
}

// Wrap returns text behind a prefix, in lines of at most width columns; those after the first begin with as many
// spaces.
func Wrap(prefix, text string, width int) string {
	var b strings.Builder
	line := prefix
	indent := strings.Repeat(" ", utf8.RuneCountInString(prefix))
	for i, word := range strings.Fields(text) {
		if i > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent
		} else if i > 0 {
			line += " "
		}
		line += word
	}
	return b.String() + strings.TrimRight(line, " ") + "\n"
}
