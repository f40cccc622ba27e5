// The variants for WebGPU.

package panel

import (
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// WebGPU returns the variants for WebGPU, with constants of the kernel's own. Its source is kernel.wgsl.
func WebGPU(own ...spec.Const) []*spec.Variant {
	var vs []*spec.Variant
	for _, v := range []uint32{8, 16} {
		for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
			vs = append(vs, spec.WGSL(fmt.Sprintf("webgpu_v%d_%v", v, t), spec.Variant{
				In: t, Need: spec.Need{Shared: scalarShared(v)}, Local: spec.Line(scalarLocal),
				Consts: append([]spec.Const{
					spec.Define("V", v), spec.Define("STAGE", scalarStage), spec.Define("QUADS", v/4),
					spec.Define("VALUES", scalarStage*v/4), spec.Define("COLS", 4*scalarLocal),
				}, own...),
				Unit: spec.Unit{Defines: include.WGSL(t, "PANEL", include.PanelWGSL)},
			}))
		}
	}
	return vs
}
