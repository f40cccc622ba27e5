// The variants for Vulkan: cooperative matrices in the shapes that devices list, and scalar units.

package nm

import (
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

// coops are the variants on cooperative matrices: for NVIDIA, AMD in waves of 32 and of 64, Intel, and Mesa's driver
// for CPUs; by falling rows: the most that a matrix's panels allow are the best.
func coops() []coop {
	var cs []coop
	for _, v := range []uint32{64, 32, 16} {
		cs = append(cs,
			coop{v: v, MatrixUnit: spec.NVIDIA, swap: true, subs: 4, cols: 128, stage: 32},
			coop{v: v, MatrixUnit: spec.AMD32, subs: 4, cols: 128, stage: 32},
			coop{v: v, MatrixUnit: spec.AMD64, subs: 4, cols: 128, stage: 32},
			coop{v: v, MatrixUnit: spec.Intel16, subs: 8, cols: 128, stage: 32},
			coop{v: v, MatrixUnit: spec.Intel8, swap: true, subs: 8, cols: 128, stage: 32},
			coop{v: v, MatrixUnit: spec.MesaCPU, swap: true, subs: 4, cols: 64, stage: 16},
		)
	}
	return cs
}

func vulkanVariants() []*spec.Variant {
	vs := []*spec.Variant{lanes(64, 2, 2), lanes(32, 2, 1), gathered()}
	vs = append(vs, coops24...)
	for _, c := range coops() {
		vs = append(vs, c.variant())
	}
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		vs = append(vs, vectorVulkan(t), elementVulkan(t))
	}
	return vs
}

// coop is a variant of coop.comp.
type coop struct {
	v uint32 // rows of a workgroup
	spec.MatrixUnit
	swap  bool   // Cᵀ = Bᵀ·Aᵀ
	subs  uint32 // subgroups of a workgroup
	cols  uint32 // columns of a workgroup
	stage uint32 // condensed columns staged at a time
}

// sharedWords is the uvec4 of shared memory: two stages, or 32 rows of C.
func (c coop) sharedWords() uint32 {
	return max(2*c.stage*(c.cols/8+1+c.v/8+1), min(c.v, 32)*(c.cols/4+1))
}

func (c coop) variant() *spec.Variant {
	return of(c.v, plainPack).sized(c.Variant(fmt.Sprintf("vulkan_v%d_%v", c.v, c.MatrixUnit), c.subs, 16*c.sharedWords(),
		spec.Variant{
			Consts: []spec.Const{
				{Name: "ROWS", ID: 1, Value: c.v}, {Name: "TM", ID: 2, Value: c.M}, {Name: "TN", ID: 3, Value: c.N},
				{Name: "TK", ID: 4, Value: c.K},
				{Name: "SWAP", ID: 5, Value: spec.Flag(c.swap)}, {Name: "COLS", ID: 6, Value: c.cols},
				{Name: "SUBS", ID: 7, Value: c.subs},
				{Name: "STAGE", ID: 8, Value: c.stage}, {Name: "SHARED", ID: 9, Value: c.sharedWords()},
				spec.Define("V", c.v), spec.Define("PACK", plainPack),
			},
			Unit: spec.Unit{Source: "coop.comp", Blob: "coop.spv"},
		}), coopKind, c.v, c.cols)
}

// lanes is lanes.comp for matrix units of `rows` rows: workgroups of down by across subgroups.
func lanes(rows, down, across uint32) *spec.Variant {
	v := lanesVariant(fmt.Sprintf("vulkan_v%d_lanes", rows), "lanes.spv", rows, down, across, []spec.Const{
		spec.Define("V", rows), spec.Define("PACK", lanePack),
	})
	return of(rows, lanePack).sized(v, lanesKind, rows, 64*across)
}

// gathered is gather.comp.
func gathered() *spec.Variant {
	const rows, cols = 16, 64
	return of(rows, lanePack).sized(spec.LanesVariant("vulkan_v16_lanes", 1, 16*rows*(cols/4+1), spec.Variant{
		Consts: []spec.Const{spec.Define("ROWS", rows), spec.Define("COLS", cols), spec.Define("V", rows),
			spec.Define("PACK", lanePack)},
		Unit: spec.Unit{Source: "gather.comp", Blob: "gather.spv"},
	}), gatherKind, rows, cols)
}

// coops24 are the variants of coop24.comp: tiles for NVIDIA, from which suited24 picks one, and one for Mesa.
var coops24 = []*spec.Variant{
	coop24(spec.AMD32, 128, 128, 8, 2, 64, 1), coop24(spec.AMD32, 128, 256, 8, 4, 32, 1),
	coop24(spec.AMD32, 64, 128, 8, 2, 64, 4), coop24(spec.MesaCPU, 32, 64, 8, 2, 32, 2),
}

// rounds24 are the µs that the tiles for NVIDIA take, one on each multiprocessor, for 4096 columns of A on an H200.
var rounds24 = []int{93, 145, 55}

// coop24 is coop24.comp: tiles of rows by cols, of subs subgroups, `across` of them side by side, in steps of `step`,
// which the subgroups share out in slices.
func coop24(u spec.MatrixUnit, rows, cols, subs, across, step, slices uint32) *spec.Variant {
	words := max(rows*(step/8+1)+step*(cols/8+1), subs*u.M*(cols/across/4+1)) // coop_tile.glsl
	v := u.Variant(fmt.Sprintf("vulkan_24_%dx%d_%v", rows, cols, u), subs, 16*words, spec.Variant{
		Consts: []spec.Const{
			{Name: "TM", ID: 1, Value: u.M}, {Name: "TN", ID: 2, Value: u.N}, {Name: "TK", ID: 3, Value: u.K},
			{Name: "SUBS", ID: 4, Value: subs}, {Name: "SUBS_ACROSS", ID: 5, Value: across},
			{Name: "ROWS", ID: 6, Value: rows}, {Name: "COLS", ID: 7, Value: cols}, {Name: "STEP", ID: 8, Value: step},
			{Name: "SHARED", ID: 9, Value: words}, {Name: "SLICES", ID: 10, Value: slices},
			spec.Define("STAGE", step), spec.Define("V", 1), spec.Define("PACK", warpPack),
		},
		Unit: spec.Unit{Source: "coop24.comp", Blob: "coop24.spv"},
	})
	v.Need.Lanes = u != spec.MesaCPU // measured on such devices alone
	return of(1, warpPack).sized(v, coop24Kind, rows, cols)
}

// suited24 returns the tile of coop24.comp that takes a problem the least time.
func suited24(v *spec.Variant, p spec.Problem) *spec.Variant {
	if v != coops24[0] {
		return v
	}
	least := 0
	for i, us := range rounds24 {
		x := coops24[i]
		tiles := spec.Ceil(p.M, x.Tile.Rows) * spec.Ceil(p.N, x.Tile.Cols)
		if us *= spec.Ceil(tiles, max(1, p.Caps.Units)); i == 0 || us < least {
			v, least = x, us
		}
	}
	return v
}

func lanesVariant(name, blob string, rows, down, across uint32, consts []spec.Const) *spec.Variant {
	// uvec4 of shared memory: two stages, or 16 rows of C for each subgroup.
	shared := max(2*laneStage*(8*across+2), down*across*16*17)
	return spec.LanesVariant(name, down*across, 16*shared, spec.Variant{
		Consts: append([]spec.Const{
			{Name: "ROWS", ID: 1, Value: rows}, {Name: "DOWN", ID: 2, Value: down},
			{Name: "ACROSS", ID: 3, Value: across},
			{Name: "SHARED", ID: 4, Value: shared}, spec.Define("COLS", 64*across),
		}, consts...),
		Unit: spec.Unit{Source: "lanes.comp", Blob: blob},
	})
}

// The scalar kernels' sizes: enough invocations for 256 columns, or rows.
const (
	vectorLocal  = 64
	vectorStage  = 64
	elementLocal = 64
	elementQuads = 8
	elementDepth = 64
)

// vectorShared and elementShared are the scalar kernels' shared memory: a stage's values and columns, and sums; a
// stage's rows of B.
const (
	vectorShared  = 4*vectorStage*(anyTall+1) + 16*vectorLocal
	elementShared = 16 * elementQuads * (elementDepth + 1)
)

func vectorVulkan(t dtype.Type) *spec.Variant {
	v := scalarVulkan("vector", anyTall, t, vectorLocal, vectorShared, []spec.Const{
		{Name: "STAGE", ID: 1, Value: vectorStage}, spec.Define("ROWS", anyTall), spec.Define("COLS", 4*vectorLocal),
	})
	return of(anyTall, plainPack).sized(v, scalarKind, anyTall, 4*vectorLocal)
}

func elementVulkan(t dtype.Type) *spec.Variant {
	v := scalarVulkan("element", 1, t, elementLocal, elementShared, []spec.Const{
		{Name: "QUADS", ID: 1, Value: elementQuads}, {Name: "DEPTH", ID: 2, Value: elementDepth},
		spec.Define("ROWS", elementLocal), spec.Define("COLS", 4*elementQuads),
	})
	return of(1, plainPack).sized(v, elementKind, elementLocal, 4*elementQuads)
}

func scalarVulkan(source string, v uint32, t dtype.Type, local, shared uint32, consts []spec.Const) *spec.Variant {
	return spec.SPIRV(fmt.Sprintf("vulkan_v%d_%v", v, t), spec.Variant{
		In: t, Need: spec.Need{Shared: shared}, Local: spec.Line(local), Unit: spec.GLSL(source+".comp", source, t),
		Consts: append([]spec.Const{{Name: "LOCAL", ID: 0, Value: local}, spec.Define("V", v),
			spec.Define("PACK", plainPack)}, consts...),
	})
}
