// The variants: cooperative matrices and scalar units on Vulkan, WebGPU, the CPU. Those for CUDA are in cuda.go.

package dense

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// The rows and columns of a workgroup's tile on GPUs, and the invocations of a workgroup without matrix units.
const (
	tile  = 64
	local = 128
)

var types = []dtype.Type{dtype.F16, dtype.BF16, dtype.F32}

// units are the matrix units with variants of coop.comp.
var units = []spec.MatrixUnit{spec.NVIDIA, spec.Turing, spec.AMD32, spec.AMD64, spec.Intel16, spec.Intel8, spec.MesaCPU}

// coops is the variants of coop.comp, two for each unit of a GPU. If there is enough work, the second replaces the
// first: wider. Mesa's driver for CPUs would take minutes to compile it.
var coops = func() (vs []*spec.Variant) {
	for _, u := range units {
		if vs = append(vs, coop(u, false)); u != spec.MesaCPU {
			vs = append(vs, coop(u, true))
		}
	}
	return vs
}()

// wider returns the variant with a larger tile that may replace one of coops, or nil.
func wider(v *spec.Variant) *spec.Variant {
	for i, x := range coops[:len(coops)-1] {
		if x.Name == v.Name && x.Sub == v.Sub && x.Tile.Rows == tile && coops[i+1].Tile.Rows > tile {
			return coops[i+1]
		}
	}
	return nil
}

func variants() []*spec.Variant {
	vs := slices.Clone(cudas)
	vs = append(append(vs, anyTile), vulkans...)
	vs = append(vs, coops...)
	for _, t := range types {
		vs = append(vs, scalarVulkan(t))
	}
	for _, t := range types {
		vs = append(vs, webgpu(t))
	}
	for _, t := range types {
		v := spec.CPU("cpu_"+t.String(), t, host.For(t, group(host.F16), group(host.BF16), group(host.F32)),
			spec.Define("ROWS", host.BlockRows), spec.Define("COLS", host.BlockCols))
		v.AnyOrder, v.Kind, v.Tile = true, cpuKind, spec.Tile{Rows: host.BlockRows, Cols: host.BlockCols}
		vs = append(vs, v)
	}
	for _, kind := range quants {
		for _, t := range []dtype.Type{dtype.F16, dtype.BF16} {
			vs = append(vs, quantise(scalarVulkan(t), kind), quantise(webgpu(t), kind))
		}
	}
	return append(vs, quantisedVariants()...)
}

// square is the tile of the kernels on scalar units.
var square = spec.Tile{Rows: tile, Cols: tile}

// tiles returns the constants of a tile.
func tiles() []spec.Const { return []spec.Const{spec.Define("ROWS", tile), spec.Define("COLS", tile)} }

// coopTile is a tile of coop.comp.
type coopTile struct {
	unit         spec.MatrixUnit
	rows, cols   uint32
	subs, across uint32 // subgroups, and those of them side by side
	step, stages uint32 // of k, and stage buffers
	slices       uint32 // of a step, each for other subgroups
}

// sharedWords is the uvec4 of shared memory: stage buffers, or rows of the subgroups' outputs (coop_tile.glsl).
func (t coopTile) sharedWords(o vulkanOrder) uint32 {
	operand := func(lines uint32, along bool) uint32 {
		if along {
			return lines * (t.step/8 + 1)
		}
		return t.step * (lines/8 + 1)
	}
	return max(t.stages*(operand(t.rows, o.left)+operand(t.cols, o.right)), t.subs*t.unit.M*(t.cols/t.across/4+1))
}

// variant returns the variant of coop.comp for operands in an order.
func (t coopTile) variant(name string, o vulkanOrder) *spec.Variant {
	words := t.sharedWords(o)
	return t.unit.Variant(name+o.name, t.subs, 16*words, spec.Variant{
		Consts: []spec.Const{
			{Name: "TM", ID: 1, Value: t.unit.M}, {Name: "TN", ID: 2, Value: t.unit.N}, {Name: "TK", ID: 3, Value: t.unit.K},
			{Name: "SUBS", ID: 4, Value: t.subs}, {Name: "SUBS_ACROSS", ID: 5, Value: t.across},
			{Name: "ROWS", ID: 6, Value: t.rows}, {Name: "COLS", ID: 7, Value: t.cols},
			{Name: "STEP", ID: 8, Value: t.step}, {Name: "STAGES", ID: 9, Value: t.stages},
			{Name: "LEFT_ALONG", ID: 10, Value: spec.Flag(o.left)}, {Name: "RIGHT_ALONG", ID: 11, Value: spec.Flag(o.right)},
			{Name: "SHARED", ID: 12, Value: words}, {Name: "ADDS", ID: 13, Value: 0},
			{Name: "SLICES", ID: 14, Value: t.slices},
		},
		Unit: spec.Unit{Source: "coop.comp", Blob: "coop.spv"}, Shape: t,
		AnyOrder: true, Kind: coopKind, Tile: spec.Tile{Rows: int(t.rows), Cols: int(t.cols)},
	})
}

// coopOf returns the tile for a matrix unit, or the larger one.
func coopOf(u spec.MatrixUnit, wide bool) coopTile {
	t := coopTile{unit: u, rows: tile, cols: tile, subs: 4, across: 2, step: 32, stages: 1, slices: 1}
	switch {
	case wide:
		t.rows, t.cols, t.subs, t.across, t.step, t.stages = 2*tile, 2*tile, 8, 4, 16, 2
	case u == spec.MesaCPU: // with more subgroups it compiles less code
		t.subs, t.slices = 16, 2
	}
	return t
}

func coop(u spec.MatrixUnit, wide bool) *spec.Variant {
	name := fmt.Sprintf("vulkan_%v", u)
	if wide {
		name = fmt.Sprintf("vulkan_wide_%v", u)
	}
	return coopOf(u, wide).variant(name, vulkanOrders[0])
}

// ordered returns the form of a variant for a problem's order: each order has a form of coop.comp.
func ordered(v *spec.Variant, x params) *spec.Variant {
	if t, ok := v.Shape.(coopTile); ok {
		t.unit.Sub = v.Sub // a variant may be made over for other subgroups
		return t.variant(v.Name, orderOf(x))
	}
	return v
}

func scalarVulkan(t dtype.Type) *spec.Variant {
	return spec.SPIRV("vulkan_"+t.String(), spec.Variant{
		In: t, Need: spec.Need{Shared: 2 * 16 * 17 * 16}, Local: spec.Line(local), Consts: tiles(), AnyOrder: true,
		Unit: spec.GLSL("kernel.comp", "scalar", t), Kind: scalarKind, Tile: square,
	})
}

// quants are the kinds of quantised values.
var quants = []dtype.Type{dtype.S8, dtype.E4M3}

// quantise changes a variant of the scalar kernels to one for quantised values.
func quantise(v *spec.Variant, kind dtype.Type) *spec.Variant {
	v.Name = fmt.Sprintf("%s_%v_%v", strings.TrimSuffix(v.Name, "_"+v.In.String()), kind, v.In)
	v.Quant, v.AnyOrder = kind, false
	v.Unit.Defines["QUANT"] = include.Quant(kind)
	if v.Code == backend.CodeWGSL {
		v.Unit.Defines["QUANTISED"] = include.QuantisedWGSL
	} else {
		v.Unit.Blob = fmt.Sprintf("scalar_%v_%v.spv", kind, v.In)
	}
	return v
}

func webgpu(t dtype.Type) *spec.Variant {
	return spec.WGSL("webgpu_"+t.String(), spec.Variant{
		In: t, Need: spec.Need{Shared: 2 * 16 * 68 * 4}, Local: spec.Line(local), AnyOrder: true,
		Consts: append(tiles(), spec.Define("HIGH", 8)), Unit: spec.Unit{Defines: include.WGSL(t, "QUANT", "")},
		Kind: scalarKind, Tile: square,
	})
}
