// Strips: the rows of a panel by a few, which strips.cu and strips.comp multiply on the float units.

package hrpb

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/hrpb"
	"github.com/spmmrun/spmm/shaders/spec"
)

// cudaStrips are the variants of strips.cu, for each architecture first the one that a matrix is packed for.
var cudaStrips = []*spec.Variant{
	stripsVariant("cuda90_strips_n128_f32", 90, stripsKind, groups{32, 1, 1}),
	stripsVariant("cuda90_strips2_n64_f32", 90, stripsKind, groups{16, 2, 1}),
	stripsVariant("cuda90_strips_n64_f32", 90, stripsKind, groups{16, 1, 1}),
	stripsVariant("cuda90_strips4_n32_f32", 90, stripsKind, groups{8, 4, 1}),
	stripsVariant("cuda90_strips2_n32_f32", 90, stripsKind, groups{8, 2, 1}),
	stripsVariant("cuda90_strips_n32_f32", 90, stripsKind, groups{8, 1, 1}),
	stripsVariant("cuda90_strips_grouped_n128_f32", 90, groupedKind, groups{32, 1, 1}),
	stripsVariant("cuda90_strips_wide_n128_f32", 90, wideKind, groups{16, 1, 2}),
	stripsVariant("cuda90_strips_widest_n512_f32", 90, widestKind, groups{32, 1, 4}),
	stripsVariant("cuda_strips_n128_f32", 80, stripsKind, groups{32, 1, 1}),
	stripsVariant("cuda_strips2_n64_f32", 80, stripsKind, groups{16, 2, 1}),
	stripsVariant("cuda_strips4_n32_f32", 80, stripsKind, groups{8, 4, 1}),
}

// vulkanStrips are the variants of strips.comp, for each element type likewise.
var vulkanStrips = slices.Concat(vulkanStripsOf(dtype.F32), vulkanStripsOf(dtype.F16), vulkanStripsOf(dtype.BF16))

const (
	stripWarps = 4 // of most workgroups

	// How many of these a multiprocessor runs, with four columns a lane and with eight.
	narrowCTAs, wideCTAs = 7, 5
)

// stripsVariant has lane groups of this shape.
func stripsVariant(name string, arch int, kind *spec.Kind, g groups) *spec.Variant {
	cols, warps, together := 4*g.across*g.quads, uint32(stripWarps), 4
	least := map[uint32]int{1: narrowCTAs, 2: wideCTAs, 4: 4}[g.quads]
	if g.quads == 4 {
		together = 2
	}
	if kind == groupedKind {
		warps, least = 2*stripWarps, 3
	}
	defines := map[string]string{"ENTRY": "hrpb", "LEAST": strconv.Itoa(least)}
	if arch == 90 {
		defines["OVERLAP"] = "1"
	}
	s := cudaSizes
	s.height = hrpb.StripRows
	v := s.sized(spec.PTX(name, spec.Variant{
		Local: spec.Line(32 * warps), Entry: "hrpb", Overlaps: arch == 90, Need: spec.Need{Arch: arch},
		Consts: []spec.Const{
			spec.Define("HEIGHT", hrpb.StripRows), spec.Define("COLS", cols), spec.Define("ALONG", g.along),
			spec.Define("QUADS", g.quads), spec.Define("TOGETHER", uint32(together)),
			spec.Define("WARPS", warps), spec.Define("BLOCK", cudaBlock), spec.Define("WORKERS", cudaWorkers),
			spec.Define("ORDER", 1),
		},
		Out:  []dtype.Type{dtype.F16, dtype.BF16},
		Unit: spec.Unit{Source: "strips.cu", Defines: defines},
	}), kind, hrpb.StripRows, cols)
	v.Shape, v.Tile.Splits = g, int(g.along)
	return v
}

// vulkanStripsOf are the variants of strips.comp for an element type: first those in which an item's invocations all
// hold columns, which is less work, then those in which several groups share its vectors, where items are few (see
// suitedOnVulkan).
func vulkanStripsOf(t dtype.Type) []*spec.Variant {
	return []*spec.Variant{
		stripsOnVulkan(t, 32, 1), stripsOnVulkan(t, 8, 1), stripsOnVulkan(t, 2, 1),
		stripsOnVulkan(t, 8, 4), stripsOnVulkan(t, 2, 4),
	}
}

// stripsOnVulkan has `across` invocations side by side, with four columns each, and `along` groups of them.
func stripsOnVulkan(t dtype.Type, across, along uint32) *spec.Variant {
	name, shared := fmt.Sprintf("vulkan_strips_n%d_%v", 4*across, t), uint32(1) // vec4
	if along > 1 {
		name, shared = fmt.Sprintf("vulkan_strips%d_n%d_%v", along, 4*across, t), 2*stripLocal
	}
	s := sizes{block: coopBlock, workers: gpuWorkers, ordered: true, height: hrpb.StripRows}
	v := s.sized(spec.SPIRV(name, spec.Variant{
		In: t, Need: spec.Need{F16: true, Shared: 16 * shared}, Local: spec.Line(stripLocal),
		Consts: []spec.Const{
			{Name: "LOCAL", ID: 0, Value: stripLocal}, {Name: "ACROSS", ID: 1, Value: across},
			{Name: "ALONG", ID: 2, Value: along},
			{Name: "SHARED", ID: 3, Value: shared}, spec.Define("HEIGHT", hrpb.StripRows), spec.Define("COLS", 4*across),
			spec.Define("BLOCK", coopBlock), spec.Define("WORKERS", gpuWorkers), spec.Define("ORDER", 1),
		},
		Unit: spec.GLSL("strips.comp", "strips", t),
		Out:  []dtype.Type{dtype.F16},
	}), stripsKind, hrpb.StripRows, 4*across)
	v.Shape, v.Tile.Splits = groups{across, along, 1}, int(along)
	return v
}

// stripLocal is the invocations of a workgroup of strips.comp.
const stripLocal = 128

// arrangeStrips makes the arrays that strips.cu and strips.comp read.
func arrangeStrips[T formats.Value](m *hrpb.Matrix[T], v *spec.Variant) (*spec.Packed, error) {
	s, err := m.Strips()
	if err != nil {
		return nil, fmt.Errorf("kernel hrpb/%s: %w: %w", v.Name, err, backend.ErrUnsupported)
	}
	e := &spec.Packed{
		Rows: m.Rows, Cols: m.Cols, NNZ: m.NNZ(),
		Arrays: []spec.Array{
			spec.NewArray("work", append(workList(s.Parts, s.Splits), m.RowIdx...)),
			spec.NewArray("columns", s.Columns),
			spec.NewArray("sizes", []uint32(nil)),
			spec.NewArray("packed", s.Values),
		},
		Items:  int64(len(s.Parts)),
		Format: m.WithStrips(s),
	}
	vectors := int64(len(s.Columns))
	e.Stats = formats.Stats{
		Slots: vectors * hrpb.StripRows, MACs: vectors * hrpb.StripRows, Gathers: vectors,
		Sums: int64(s.Slots) * hrpb.StripRows,
	}
	e.Stats.StoredBytes = e.Bytes()
	if vectors > 0 {
		e.Stats.Fill = float64(e.NNZ) / float64(e.Stats.Slots)
	}
	for _, p := range s.Parts {
		e.Stats.Longest = max(e.Stats.Longest, int64(p.Last-p.First))
	}
	return e, nil
}

// stripParts and stripSums are the grids of the phases: invocations for each part; on CUDA a warp for each row of a cut
// strip, on Vulkan a workgroup for each cut strip.
func stripParts(v *spec.Variant, w hrpb.Work) grid {
	s := v.Shape.(groups)
	return grid{spec.Ceil(int64(w.Parts), int64(v.Local[0]/(s.across*s.along))), v.Tile.Cols}
}

func stripSums(v *spec.Variant, w hrpb.Work) grid {
	if v.Code == backend.CodeSPIRV {
		return grid{int64(w.Splits), v.Tile.Cols}
	}
	return grid{spec.Ceil(int64(w.Splits)*hrpb.StripRows, int64(v.Local[0]/32)), 128}
}

// suitedStrips returns, for the variant that matrices are packed for, the one for as many columns as there are, and as
// many strips.
func suitedStrips(v *spec.Variant, e *spec.Packed, p spec.Problem) *spec.Variant {
	if v.Code == backend.CodeSPIRV {
		return suitedOnVulkan(v, e, p)
	}
	for _, x := range cudaStrips {
		if x.Need.Arch != v.Need.Arch {
			continue
		}
		if x != v {
			return v // it is asked for
		}
		break
	}
	kind, shape := stripsKind, narrowStrips(v, e, p)
	if v.Need.Arch == 90 && shape.across == 32 {
		kind, shape = wideStrips(e, p)
	}
	for _, x := range cudaStrips {
		if x.Need.Arch == v.Need.Arch && x.Kind == kind && x.Shape == shape {
			return x
		}
	}
	return v
}

// narrowStrips returns the lanes that have up to 128 columns, four each. There are 64 columns also where few strips,
// which a device has room for all at once, wait for one much longer than most: it takes twice as many vectors at once.
func narrowStrips(v *spec.Variant, e *spec.Packed, p spec.Problem) groups {
	n, units := p.N, int64(p.Caps.Units)
	if average := e.Stats.Gathers / max(1, e.Items); n > 64 && n <= 128 && e.Items <= residentStrips*units &&
		2*e.Stats.Longest > 5*average {
		n = 64
	}
	across, along := uint32(32), uint32(1)
	for across > 8 && n <= 2*int(across) {
		across /= 2
	}
	switch {
	case v.Need.Arch < 90:
		along = 32 / across
	case !manyStrips(e, int64(across), units):
		along = min(2, 32/across)
		if across == 8 && 2*e.Items <= residentStrips*units {
			along = 4
		}
	}
	return groups{across, along, 1}
}

// wideStrips returns the kind of a product by more than 64 columns. Strips that nearly all run at the same time share
// rows of B within CTAs of eight warps. More of them keep the data pipe of L1 busy, if they are long and find most rows
// of B in L1, as those do whose slots are half full; so do many at 512 columns. A second wave of few strips takes as long
// as a whole one.
func wideStrips(e *spec.Packed, p spec.Problem) (*spec.Kind, groups) {
	const long = 32 // vectors
	resident, tiles := residentStrips*int64(p.Caps.Units), int64(spec.Ceil(p.N, 128))
	wave := residentWide * int64(p.Caps.Units)
	busy := e.Items > resident && (e.Items <= wave || e.Items >= 2*wave) && e.Stats.Gathers >= long*e.Items &&
		e.Stats.Fill >= 0.5
	switch {
	case p.N <= 128 && busy:
		return wideKind, groups{16, 1, 2}
	case 10*e.Items*tiles <= 13*resident:
		return groupedKind, groups{32, 1, 1}
	case p.N > 256 && e.Items > 3*resident:
		return widestKind, groups{32, 1, 4}
	}
	return stripsKind, groups{32, 1, 1}
}

// residentStrips and residentWide are how many strips, of 32 and of 16 lanes each, a multiprocessor runs at the same
// time.
const (
	residentStrips = narrowCTAs * stripWarps
	residentWide   = wideCTAs * stripWarps * 2
)

// manyStrips reports whether items keep `units` multiprocessors busy by one lane group each, of `across` lanes. Several
// groups would share an item's vectors, four each at a time, which leaves most idle where items are short. Long items,
// which one group takes long for, must not be much longer than all that a lane group computes.
func manyStrips(e *spec.Packed, across, units int64) bool {
	const together = 4 * 4 // vectors of four groups
	groups := max(1, 32*residentStrips*units/across)
	balanced := e.Stats.Longest*groups <= 2*e.Stats.Gathers
	return 2*e.Items >= groups && (balanced || e.Stats.Gathers <= (together+1)*e.Items)
}

// suitedOnVulkan returns, for the variant that matrices are packed for, the narrowest that has all columns, with
// several groups for an item where one would leave multiprocessors without work.
func suitedOnVulkan(v *spec.Variant, e *spec.Packed, p spec.Problem) *spec.Variant {
	if v.Shape.(groups).along > 1 || v.Tile.Cols != widestStrips {
		return v
	}
	const enough = 416 // invocations of a multiprocessor
	few := e.Items*int64(max(2, spec.Ceil(p.N, 4))) < enough*int64(p.Caps.Units)
	cols, along := widestStrips, uint32(1)
	switch {
	case p.N <= 8:
		cols = 8
	case p.N <= 32 || p.N <= 64 && few:
		cols = 32
	}
	if cols < widestStrips && few {
		along = 4
	}
	for _, x := range vulkanStrips {
		if x.In == v.In && x.Tile.Cols == cols && x.Shape.(groups).along == along {
			return x
		}
	}
	return v
}

// widestStrips is the most columns of a variant of strips.comp.
const widestStrips = 128
