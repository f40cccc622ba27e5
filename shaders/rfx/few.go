// A as digits of every element, dense, for few columns: variants on Vulkan's cooperative matrices, and by packed dot
// products, multiply from it.
// Every digit of A is multiplied by every digit of B, which are more products than by residues, but fewer bytes of A:
// 2, 3, 4 and 6 for an element at p = 15, 23, 31 and 47.

package rfx

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/quantise"
	"github.com/spmmrun/spmm/shaders/spec"
)

// few is a tile of few.comp.
type few struct {
	spec.MatrixUnit
	subs   func(digits uint32) uint32 // subgroups of a workgroup
	across uint32                     // operations side by side
}

var fews = []few{
	{MatrixUnit: spec.NVIDIAInt, subs: func(digits uint32) uint32 { return 4 }, across: 2},
	// As many as two workgroups of 24 KB of shared memory allow, which a multiprocessor has at the same time.
	{MatrixUnit: spec.NVIDIAInt, subs: func(digits uint32) uint32 { return [...]uint32{0, 0, 8, 8, 6, 0, 4}[digits] },
		across: 1},
	{MatrixUnit: spec.MesaCPU, subs: func(uint32) uint32 { return 4 }, across: 1},
}

// cols is the columns of a workgroup.
func (f few) cols() uint32 { return f.across * f.N }

func (f few) variant(p rfx.P) *spec.Variant {
	constant := func(name string, id int, x uint32) spec.Const { return spec.Const{Name: name, ID: id, Value: x} }
	digits, narrow := uint32(p.Bytes()), spec.Flag(f.K == 8)
	subs := f.subs(digits)
	// Of 16 bytes: a slice of each subgroup, or its sums, by sum of places.
	shared := subs * max(digits*(f.M+f.cols())*2, (2*digits-1)*f.M*f.cols()/4)
	v := spec.SPIRV(fmt.Sprintf("vulkan_few_%v_p%d_n%d", f.MatrixUnit, p, f.cols()), spec.Variant{
		Need:  spec.Need{Int8: true, Shared: 16 * shared, Shapes: []backend.MatrixShape{f.Shape(dtype.S8)}},
		Local: spec.Line(f.Sub * subs), Sub: f.Sub, Matrix: true, Shape: f.MatrixUnit,
		Consts: []spec.Const{
			constant("LOCAL", 0, f.Sub*subs), constant("TM", 1, f.M), constant("TN", 2, f.N), constant("TK", 3, f.K),
			constant("SUBS", 4, subs), constant("ACROSS", 5, f.across), constant("SHARED", 6, shared),
			spec.Define("BITS", uint32(p)), spec.Define("NARROW", narrow),
		},
		Unit: spec.Unit{Source: "few.comp", Blob: fmt.Sprintf("few%s_p%d.spv", pick(narrow == 1, "_k8", ""), p)},
	})
	sizes{p: p, residues: true, digits: true, slices: true}.sized(v, digitsKind, f.cols())
	v.Tile.Rows = int(f.M)
	return v
}

// byDigits are the variants, the widest tiles first.
func byDigits() (vs []*spec.Variant) {
	for _, f := range fews {
		for _, p := range rfx.All {
			vs = append(vs, f.variant(p))
		}
	}
	for _, p := range rfx.All {
		vs = append(vs, fewDots(p))
	}
	return vs
}

// fewDots is few_dot.comp, with workgroups of 16 rows and 8 columns.
func fewDots(p rfx.P) *spec.Variant {
	const rows, cols, local = 16, 8, 256
	v := spec.SPIRV(fmt.Sprintf("vulkan_dot_few_p%d_n%d", p, cols), spec.Variant{
		Need: spec.Need{Dot4: true, Shared: 16 * local}, Local: spec.Line(local),
		Consts: []spec.Const{spec.Define("BITS", uint32(p))},
		Unit:   spec.Unit{Source: "few_dot.comp", Blob: fmt.Sprintf("few_dot_p%d.spv", p)},
	})
	sizes{p: p, residues: true, digits: true, slices: true}.sized(v, digitsKind, cols)
	v.Tile.Rows = rows
	return v
}

// launchDigits is launch for these variants.
func launchDigits(v *spec.Variant, e *spec.Packed, p spec.Problem, q quantise.Layout) (spec.Launch, error) {
	tiles := int64(spec.Ceil(p.M, v.Tile.Rows)) * int64(spec.Ceil(q.LD, v.Tile.Cols))
	groups, err := spec.Fold(tiles, 1)
	if err != nil {
		return spec.Launch{}, fmt.Errorf("kernel rfx/%s: %w", v.Name, err)
	}
	m := e.Format.(Split)
	b := block(p, q, m)
	b.items, b.width, b.per, b.longest = uint32(p.M), groups[0], uint32(q.Blocks()), uint32(planesLayout(e.Rows, 0).Rows)
	b.shape = shape{}.packed(0, m.Type)
	return spec.Launch{Workspace: spec.NoWorkspace,
		Passes: []spec.Pass{{Variant: v, Groups: groups, Params: spec.Block(b)}}}, nil
}

// DigitStats tells what packing a matrix of a size as digits makes, or why it cannot be packed.
func DigitStats(rows, cols int, nnz int64, p rfx.P) (formats.Stats, error) {
	if err := FitsStrips(cols); err != nil {
		return formats.Stats{}, err
	}
	return planeStats(rows, cols, nnz, p.Bytes())
}

// Fews returns these variants made over for a subgroup size: see Coops.
func Fews(p rfx.P, sub uint32) (vs []*spec.Variant) {
	for _, f := range fews {
		f.Sub, f.subs = sub, func(uint32) uint32 { return 2 }
		vs = append(vs, f.variant(p))
	}
	return vs
}
