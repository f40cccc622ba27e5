// The variants for residues on Vulkan's cooperative matrices, in the shapes of 8-bit integers that devices list.

package rfx

import (
	"fmt"
	"math"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/quantise"
	"github.com/spmmrun/spmm/shaders/spec"
)

// coopResidues is a tile of residues.comp.
type coopResidues struct {
	spec.MatrixUnit
	rows, cols   uint32
	subs, across uint32 // subgroups of a workgroup, and along a row of its tile
	step, stages uint32 // of k, and stage buffers
}

// coopsOfResidues are the tiles, for each unit the widest first.
var coopsOfResidues = []coopResidues{
	{MatrixUnit: spec.NVIDIAInt, rows: 128, cols: 256, subs: 8, across: 4, step: 32, stages: 2},
	{MatrixUnit: spec.NVIDIAInt, rows: 128, cols: 128, subs: 8, across: 2, step: 64, stages: 2},
	{MatrixUnit: spec.NVIDIAInt, rows: 128, cols: 64, subs: 8, across: 2, step: 64, stages: 2},
	{MatrixUnit: spec.NVIDIAIntWide, rows: 128, cols: 128, subs: 4, across: 2, step: 32, stages: 2},
	{MatrixUnit: spec.AMD32, rows: 128, cols: 128, subs: 4, across: 2, step: 32, stages: 2},
	{MatrixUnit: spec.AMD64, rows: 128, cols: 128, subs: 4, across: 2, step: 32, stages: 2},
	{MatrixUnit: spec.IntelInt16, rows: 64, cols: 128, subs: 8, across: 2, step: 32, stages: 2},
	{MatrixUnit: spec.IntelInt8, rows: 64, cols: 64, subs: 8, across: 2, step: 32, stages: 2},
	{MatrixUnit: spec.MesaCPU, rows: 16, cols: 16, subs: 4, across: 2, step: 32, stages: 2},
}

// sharedOctets is the shared memory of the stage buffers, or of a row of operations of each subgroup's sums, in units
// of 16 bytes: see coop_tile.glsl.
func (c coopResidues) sharedOctets() uint32 {
	return max(c.stages*(c.rows+c.cols)*(c.step/16+1), c.subs*c.M*(c.cols/c.across/4+1))
}

// sums is residues.comp.
func (c coopResidues) sums(digits uint32) *spec.Variant {
	constant := func(name string, id int, x uint32) spec.Const { return spec.Const{Name: name, ID: id, Value: x} }
	narrow := spec.Flag(c.K == 8)
	return spec.SPIRV(fmt.Sprintf("vulkan_%s_%v_n%d", pick(digits == 1, "digits", "residues"), c.MatrixUnit, c.cols),
		spec.Variant{
			Need:  spec.Need{Int8: true, Shared: 16 * c.sharedOctets(), Shapes: []backend.MatrixShape{c.Shape(dtype.S8)}},
			Local: spec.Line(c.Sub * c.subs), Sub: c.Sub, Matrix: true,
			Consts: []spec.Const{
				constant("LOCAL", 0, c.Sub*c.subs), constant("TM", 1, c.M), constant("TN", 2, c.N), constant("TK", 3, c.K),
				constant("SUBS", 4, c.subs), constant("SUBS_ACROSS", 5, c.across), constant("ROWS", 6, c.rows),
				constant("COLS", 7, c.cols), constant("STEP", 8, c.step), constant("SHARED", 9, c.sharedOctets()),
				constant("DIGITS", 10, digits), constant("STAGES", 11, c.stages), spec.Define("NARROW", narrow),
			},
			Unit: spec.Unit{Source: "residues.comp", Blob: fmt.Sprintf("coop_residues%s.spv", pick(narrow == 1, "_k8", ""))},
		})
}

// variant is combine.comp after these sums.
func (c coopResidues) variant(p rfx.P) *spec.Variant {
	sums := c.sums(spec.Flag(p == digitsAt))
	v := combined(fmt.Sprintf("vulkan_residues_%v_p%d_n%d", c.MatrixUnit, p, c.cols), p, sums, c.rows, c.cols)
	v.Sub, v.Shape = c.Sub, c.MatrixUnit
	return v
}

// combined is combine.comp after sums in tiles of rows×cols.
func combined(name string, p rfx.P, sums *spec.Variant, rows, cols uint32) *spec.Variant {
	constant := func(name string, id int, x uint32) spec.Const { return spec.Const{Name: name, ID: id, Value: x} }
	v := spec.SPIRV(name, spec.Variant{
		Local: spec.Line(local), Need: sums.Need, Before: sums,
		Consts: []spec.Const{
			constant("BITS", 0, uint32(p)), constant("LIMBS", 1, uint32(p.Limbs())),
			constant("DIGITS", 2, spec.Flag(p == digitsAt)),
		},
		Unit: spec.Unit{Source: "combine.comp", Blob: "vulkan_combine.spv"},
	})
	sizes{p: p, residues: true, slices: true}.sized(v, residuesKind, cols)
	v.Tile.Rows = int(rows)
	return v
}

// byCoopResidues are the variants for residues on Vulkan.
func byCoopResidues() (vs []*spec.Variant) {
	for _, c := range coopsOfResidues {
		for _, p := range rfx.All {
			vs = append(vs, c.variant(p))
		}
	}
	return vs
}

// launchCoopResidues is launch for these variants, and for those by dot products.
func launchCoopResidues(v *spec.Variant, e *spec.Packed, p spec.Problem, q quantise.Layout) (spec.Launch, error) {
	m := e.Format.(Split)
	products, bytes := m.Planes, int64(1) // of a residue of a sum
	if inDigits(v) {
		products, bytes = digitSums, 4
	}
	outputs := int64(p.M) * int64(q.LD)
	if lines := int64(products) * int64(p.M); lines > math.MaxUint32 || outputs > math.MaxUint32-local {
		return spec.Launch{}, fmt.Errorf("kernel rfx/%s: C of %d×%d does not fit 32-bit offsets: %w", v.Name, p.M, p.N,
			backend.ErrUnsupported)
	}
	l := spec.Launch{Workspace: max(spec.NoWorkspace, outputs*bytes*int64(products))}
	tiles := int64(spec.Ceil(p.M, v.Tile.Rows)) * int64(spec.Ceil(q.LD, v.Tile.Cols))
	for _, x := range []struct {
		variant *spec.Variant
		groups  int64
	}{{v.Before, tiles * int64(products)}, {v, spec.Ceil(outputs, local*pick[int64](v.Code == backend.CodeWGSL, 1, 4))}} {
		groups, err := spec.Fold(x.groups, 1)
		if err != nil {
			return spec.Launch{}, fmt.Errorf("kernel rfx/%s: %w", v.Name, err)
		}
		b := block(p, q, m)
		b.heavy, b.segments, b.items, b.width = m.Table, uint32(products), uint32(p.M), groups[0]
		b.per, b.longest = uint32(q.Blocks()), uint32(spec.Ceil(e.Rows, tileRows)*tileRows)
		b.shape = shape{}.packed(0, m.Type)
		l.Passes = append(l.Passes, spec.Pass{Variant: x.variant, Groups: groups, Params: spec.Block(b)})
	}
	return l, nil
}

// CoopResidues returns these variants made over for a subgroup size, with an operation a subgroup: see Coops.
func CoopResidues(p rfx.P, sub uint32) []*spec.Variant {
	var vs []*spec.Variant
	for _, c := range coopsOfResidues {
		c.Sub, c.subs, c.across, c.step, c.stages, c.rows, c.cols = sub, 4, 2, 32, 2, 2*c.M, 2*c.N
		vs = append(vs, c.variant(p))
	}
	return slices.CompactFunc(vs, func(x, y *spec.Variant) bool { return x.Name == y.Name })
}
