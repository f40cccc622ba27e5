// Package requantise brings a prepared A's new values to RFX-p's fixed point on a device: what package rfx (of kernels)
// packs on the host, but for the values themselves, which are in place already.
//
// Two phases, each a launch: 0 finds the ranges of the rows, some lanes to each; 1 writes the integers, four entries to
// an invocation, all of the same words. There a row is found by bisection of the rows' first entries. There are no
// atomics. For matrices in planes of bytes planes.cu (CUDA) or planes.comp (Vulkan) takes the place of phase 1.
package requantise

import (
	"embed"
	"fmt"
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed kernel.wgsl
var files embed.FS

// Program is the table of the kernel. It has no Encode; see Launch. slots has the entry of each digit of panels, plus
// 1, 0 where there is none; for strips and pairs where each entry's digits begin; for planes of two of every four
// columns rfx.Sparse24's places; it is not read for rows. rows has first entry and range of each row, then the number
// of entries.
var Program = &spec.Program{
	Name: "requantise", Args: spec.Args("values u32", "slots u32", "rows u32 written", "ints u32 written"),
	Params: spec.Params[params](), Files: files,
	Variants: []*spec.Variant{
		spec.PTX("cuda", spec.Variant{Entry: "requantise", Local: spec.Line(local)}), planes,
		spec.SPIRV("vulkan", spec.Variant{Local: spec.Line(local), Need: spec.Need{Shared: 4 * local}}), vulkanPlanes,
		spec.WGSL("webgpu", spec.Variant{
			Local: spec.Line(local), Need: spec.Need{Shared: 4 * local},
			Unit: spec.Unit{Defines: map[string]string{"HALF": include.HalfWGSL, "FIXED": include.FixedWGSL}},
		}),
		spec.Go("cpu", dtype.F32, group),
	},
}

// planes is planes.cu, which runs in place of phase 1.
var planes = spec.PTX("cuda_planes", spec.Variant{Entry: "requantise", Local: spec.Line(local),
	Unit: spec.Unit{Source: "planes.cu"}})

// vulkanPlanes is planes.comp, likewise.
var vulkanPlanes = spec.SPIRV("vulkan_planes", spec.Variant{Local: spec.Line(local), Need: spec.Need{Int8: true},
	Unit: spec.Unit{Source: "planes.comp"}})

// planesOf returns what runs for code in place of phase 1, nil if there is nothing.
func planesOf(code backend.Code) *spec.Variant {
	return map[backend.Code]*spec.Variant{planes.Code: planes, vulkanPlanes.Code: vulkanPlanes}[code]
}

// params is the parameter block.
type params struct {
	phase uint32
	count uint32 // rows
	n     uint32 // entries
	elem  uint32 // type of values: 0 f32, 1 f16, 2 bf16
	bits  uint32 // p
	// Fours of a digit of a tile of panels; 0: integers in the order of the entries; strips: of strips; pairs: of
	// pairs. In planes.cu the
	// word of rows at which a remainder's entries begin, 0 where every element has its place.
	tile  uint32
	fours uint32 // of entries or slots
	lanes uint32 // of a row in phase 0, a power of two; not on the CPU
	per   uint32 // of a workgroup: rows in phase 0, fours in phase 1
	width uint32 // of the grid in x
	// Of planes.cu and planes.comp: the words of rows at which the entries' columns and rfx.Residues.DigitWeights begin,
	// the bytes of an element, and the blocks of 128 columns. weights is 0 for digits.
	columns, weights, planes, blocks uint32
}

const local = 128

// strips and pairs are the parameter tile for these. Only CUDA and the CPU have them.
const (
	strips = math.MaxUint32
	pairs  = strips - 1
)

// Op is a matrix whose values are new.
type Op struct {
	Rows, NNZ int64
	Type      dtype.Type // of the values: F16, BF16 or F32
	P         rfx.P
	V         int   // rows of a panel; 0: integers in the order of the entries
	Slots     int64 // of panels, in all
	Strips    bool  // slots has the byte of each entry's first digit: see rfx.Strips.Places
	Pairs     bool  // likewise: see rfx.PairPlaces
	Planes    Planes
}

// Planes says how a matrix lies in bytes: see rfx.Planes. The zero value is that of other matrices.
type Planes struct {
	Count            int    // bytes of an element
	Cols             int    // of the matrix
	Columns, Weights uint32 // words of rows: see params
	Remainder        uint32 // the word of rows at which a remainder's entries begin; slots has the entries' places then
}

// Variant returns the variant that a device runs.
func Variant(caps backend.Caps) (*spec.Variant, error) { return Program.First(caps, dtype.F32) }

// Launch says how a variant runs op.
func Launch(v *spec.Variant, op Op) (spec.Launch, error) {
	switch {
	case op.P.Check() != nil || op.V > 0 && op.P == rfx.P47 || op.Rows < 0 || op.NNZ < 0 || op.V < 0 || op.V > 0 &&
		op.Slots%int64(rfx.Tile*op.V) != 0:
		return spec.Launch{}, fmt.Errorf("kernel requantise: not possible: %+v", op)
	case (op.Strips || op.Pairs) && v.Code != backend.CodePTX && v.Code != backend.CodeGo:
		return spec.Launch{}, fmt.Errorf("kernel requantise: strips or pairs on a device that runs %v: %w", v.Code,
			backend.ErrUnsupported)
	case op.Planes.Count > 0 && planesOf(v.Code) == nil:
		return spec.Launch{}, fmt.Errorf("kernel requantise: bytes in planes on a device that runs %v: %w", v.Code,
			backend.ErrUnsupported)
	case op.Rows > math.MaxInt32 || op.NNZ >= math.MaxUint32 || op.Slots >= math.MaxUint32:
		return spec.Launch{}, fmt.Errorf("kernel requantise: %d rows, %d entries, %d slots do not fit 32 bits: %w", op.Rows, op.NNZ, op.Slots, backend.ErrUnsupported)
	}
	p := params{count: uint32(op.Rows), n: uint32(op.NNZ), elem: include.Number(op.Type), bits: uint32(op.P),
		tile: uint32(op.V * rfx.Tile / 4), lanes: 4}
	p.fours = uint32(spec.Ceil(op.NNZ, 4))
	switch {
	case op.V > 0:
		p.fours = uint32(op.Slots / 4)
	case op.Strips:
		p.tile = strips
	case op.Pairs:
		p.tile = pairs
	case op.Planes.Count > 0:
		p.fours = uint32(op.NNZ) // an entry to an invocation
		p.tile = op.Planes.Remainder
		p.planes, p.columns, p.weights = uint32(op.Planes.Count), op.Planes.Columns, op.Planes.Weights
		p.blocks = uint32(spec.Ceil(op.Planes.Cols, 128))
	}
	for p.lanes < local && int64(p.lanes)*op.Rows < op.NNZ {
		p.lanes *= 2
	}
	var l spec.Launch
	for phase, x := range []struct{ items, per int64 }{{op.Rows, int64(local / p.lanes)}, {int64(p.fours), local}} {
		if v.Code == backend.CodeGo {
			x.per = []int64{64, 1024}[phase]
		}
		groups, err := spec.Fold(spec.Ceil(x.items, x.per), 1)
		if err != nil {
			return spec.Launch{}, fmt.Errorf("kernel requantise: %w", err)
		}
		p.phase, p.per, p.width = uint32(phase), uint32(x.per), groups[0]
		v := v
		if phase == 1 && op.Planes.Count > 0 {
			v = planesOf(v.Code)
		}
		l.Passes = append(l.Passes, spec.Pass{Variant: v, Groups: groups, Params: spec.Block(p)})
	}
	return l, nil
}
