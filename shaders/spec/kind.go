// Kinds: what the kernels of a program are, for people and for the choice among them.

package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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

// KindInfo is a line of the table of a program's kernels: what there is of a kind for one kind of code.
type KindInfo struct {
	*Kind
	Format  string       // the program's name
	Code    backend.Code // of the devices that run it
	Sources []string     // files in the program's folder; none for code in Go
	Tiles   []string     // as Tile.String names them
	Types   []string     // of elements; "f16 s8" is f16 with values of A of 8 bits
	Needs   []string     // of a device
}

// Kinds lists the program's kernels in the order of their first variants.
func (k *Program) Kinds() []*KindInfo {
	var rows []*KindInfo
	for _, v := range k.Variants {
		i := slices.IndexFunc(rows, func(r *KindInfo) bool { return r.Kind == v.Kind && r.Code == v.Code })
		if i < 0 {
			i = len(rows)
			rows = append(rows, &KindInfo{Kind: v.Kind, Format: k.Name, Code: v.Code})
		}
		rows[i].add(v)
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
	for _, n := range v.Need.list() {
		r.Needs = with(r.Needs, n)
	}
}

// with appends what is not in a list yet.
func with(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// list names what a device must have.
func (n Need) list() []string {
	var s []string
	if n.Arch > 0 {
		arch := fmt.Sprintf("compute capability %d.%d", n.Arch/10, n.Arch%10)
		if n.Exact {
			arch += " alone"
		}
		s = append(s, arch)
	}
	for _, m := range n.Shapes {
		s = append(s, fmt.Sprintf("MMA %d×%d×%d %v", m.M, m.N, m.K, m.A))
	}
	for _, x := range []struct {
		need bool
		name string
	}{{n.Lanes, "known fragment layout"}, {n.F64, "f64"}, {n.Int8, "8-bit integers"}} {
		if x.need {
			s = append(s, x.name)
		}
	}
	return s
}
