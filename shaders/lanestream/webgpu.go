// The variants for WebGPU, and the one for CUDA in f32. Both work as scalar.comp.

package lanestream

import (
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

func webgpuVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range types {
		vs = append(vs, expanded(0).sized(spec.WGSL("webgpu_"+t.String(), spec.Variant{
			In: t, Tile: columns(rows, 64), Need: spec.Need{Shared: scalarShared}, Local: spec.Line(64 * scalarTeams),
			Consts: append([]spec.Const{
				spec.Define("TEAMS", scalarTeams), spec.Define("TILE", scalarShared/4), spec.Define("ROWS", 16),
				spec.Define("POSITIONS", 16), spec.Define("COLS", 64),
			}, expandedConsts()...),
			Unit: spec.Unit{Source: "scalar.wgsl", Defines: include.WGSL(t, "QUANT", "")},
		}), scalarKind))
	}
	return vs
}

// scalarCUDA returns the variant of scalar.cu.
func scalarCUDA() []*spec.Variant {
	return []*spec.Variant{expanded(0).sized(spec.PTX("cuda_f32", spec.Variant{
		Entry: "lanestream", Tile: columns(rows, 64), Need: spec.Need{Shared: scalarShared},
		Local:  spec.Line(64 * scalarTeams),
		Consts: append([]spec.Const{spec.Define("TEAMS", scalarTeams), spec.Define("COLS", 64)}, expandedConsts()...),
		Unit:   spec.Unit{Source: "scalar.cu", Defines: map[string]string{"ENTRY": "lanestream"}},
		Out:    []dtype.Type{dtype.F16, dtype.BF16},
	}), scalarKind)}
}
