// The variants for WebGPU.

package panel

import (
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// WebGPU returns the variants for WebGPU, as Vulkan does. Its source is kernel.wgsl.
func WebGPU(align uint32) []*spec.Variant {
	var vs []*spec.Variant
	for _, v := range []uint32{8, 16} {
		for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
			vs = append(vs, Shape{Packing: Packing{V: int(v),
				Align: int(align)}}.sized(spec.WGSL(fmt.Sprintf("webgpu_v%d_%v", v, t), spec.Variant{
				In: t, Need: spec.Need{Shared: scalarShared(v)}, Local: spec.Line(scalarLocal),
				Consts: append([]spec.Const{
					spec.Define("V", v), spec.Define("STAGE", scalarStage), spec.Define("QUADS", v/4),
					spec.Define("VALUES", scalarStage*v/4), spec.Define("COLS", 4*scalarLocal),
				}, aligned(align)...),
				Unit: spec.Unit{Defines: include.WGSL(t, "PANEL", include.PanelWGSL)},
			}), scalarKind, 4*scalarLocal))
		}
	}
	return vs
}
