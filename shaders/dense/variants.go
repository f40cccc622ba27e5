// The variants: tensor cores and plain f32 on CUDA, cooperative matrices and scalar units on Vulkan, WebGPU, the CPU.

package dense

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// The tile of a workgroup, in rows and columns, on GPUs; and its invocations where there are no matrix units.
const (
	tile  = 64
	local = 128
)

var types = []dtype.Type{dtype.F16, dtype.BF16, dtype.F32}

// units are those that there is a variant of coop.comp for.
var units = []spec.MatrixUnit{spec.NVIDIA, spec.Turing, spec.AMD32, spec.AMD64, spec.Intel16, spec.Intel8, spec.MesaCPU}

func variants() []*spec.Variant {
	vs := []*spec.Variant{halves(dtype.F16), halves(dtype.BF16), floats(dtype.TF32), floats(dtype.F32)}
	for _, u := range units {
		vs = append(vs, coop(u))
	}
	for _, t := range types {
		vs = append(vs, scalarVulkan(t))
	}
	for _, t := range types {
		vs = append(vs, webgpu(t))
	}
	for _, t := range types {
		vs = append(vs, &spec.Variant{
			Name: "cpu_" + t.String(), In: t, Code: backend.CodeGo, Func: host.For(t, group(host.F16), group(host.BF16), group(host.F32)),
			Local: [3]uint32{1, 1, 1}, Consts: []spec.Const{spec.Define("ROWS", host.BlockRows), spec.Define("COLS", host.BlockCols)},
			Out: []dtype.Type{dtype.F16, dtype.BF16}, AnyOrder: true,
		})
	}
	return append(vs, quantisedVariants()...)
}

// tiles are the constants of a tile.
func tiles() []spec.Const { return []spec.Const{spec.Define("ROWS", tile), spec.Define("COLS", tile)} }

// cuda is what the variants for CUDA have in common.
func cuda(t dtype.Type, source string, shapes ...backend.MatrixShape) *spec.Variant {
	return &spec.Variant{
		Name: "cuda_" + t.String(), In: t, Code: backend.CodePTX, Entry: "dense", Local: [3]uint32{128, 1, 1}, Consts: tiles(),
		Need: spec.Need{Arch: 80, Shapes: shapes}, Out: []dtype.Type{dtype.F16, dtype.BF16}, AnyOrder: true,
		Unit: spec.Unit{
			Source: source, Arch: "compute_80", Blob: "cuda_" + t.String() + ".ptx",
			Defines: map[string]string{"ENTRY": "dense", "ELEM": include.Define(t)},
		},
	}
}

// halves is kernel.cu.
func halves(t dtype.Type) *spec.Variant {
	v := cuda(t, "kernel.cu", spec.Shape(16, 8, 16, t))
	v.Consts = append(v.Consts, spec.Define("STAGES", 3))
	return v
}

// floats is f32.cu.
func floats(t dtype.Type) *spec.Variant {
	if t == dtype.F32 {
		v := cuda(t, "f32.cu")
		v.Consts = append(v.Consts, spec.Define("TF32", 0))
		return v
	}
	v := cuda(t, "f32.cu", spec.Shape(16, 8, 8, t))
	v.Consts = append(v.Consts, spec.Define("TF32", 1))
	return v
}

// coop is coop.comp on a matrix unit, four subgroups of which have a quarter of the tile each.
func coop(u spec.MatrixUnit) *spec.Variant {
	const subs, octets = 4, 4 * tile * (32/8 + 1) // of shared memory: see coop.comp
	return &spec.Variant{
		Name: fmt.Sprintf("vulkan_%v", u), In: dtype.F16, Code: backend.CodeSPIRV, Entry: "main",
		Need:  spec.Need{F16: true, Shared: 16 * octets, Shapes: []backend.MatrixShape{u.Shape(dtype.F16)}},
		Local: [3]uint32{u.Sub * subs, 1, 1}, Sub: u.Sub, Matrix: true,
		Consts: append([]spec.Const{
			{Name: "LOCAL", ID: 0, Value: u.Sub * subs}, {Name: "TM", ID: 1, Value: u.M}, {Name: "TN", ID: 2, Value: u.N},
			{Name: "TK", ID: 3, Value: u.K}, {Name: "SUBS", ID: 4, Value: subs},
		}, tiles()...),
		Unit: spec.Unit{Source: "coop.comp", Blob: "coop.spv"},
		Out:  []dtype.Type{dtype.F16}, AnyOrder: true,
	}
}

func scalarVulkan(t dtype.Type) *spec.Variant {
	return &spec.Variant{
		Name: "vulkan_" + t.String(), In: t, Code: backend.CodeSPIRV, Entry: "main",
		Need: spec.Need{Shared: 2 * 16 * 17 * 16}, Local: [3]uint32{local, 1, 1}, Consts: tiles(), AnyOrder: true,
		Unit: spec.Unit{Source: "kernel.comp", Defines: map[string]string{"ELEM": include.Define(t)}, Blob: "scalar_" + t.String() + ".spv"},
	}
}

func webgpu(t dtype.Type) *spec.Variant {
	return &spec.Variant{
		Name: "webgpu_" + t.String(), In: t, Code: backend.CodeWGSL, Entry: "main",
		Need: spec.Need{Shared: 2 * 16 * 68 * 4}, Local: [3]uint32{local, 1, 1}, Consts: append(tiles(), spec.Define("HIGH", 8)), AnyOrder: true,
		Unit: spec.Unit{Source: "kernel.wgsl", Defines: map[string]string{
			"ELEM": include.Define(t), "HALF": include.HalfWGSL, "NONFINITE": include.NonFiniteWGSL,
		}},
	}
}
