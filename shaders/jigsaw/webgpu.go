// The variants for WebGPU.

package jigsaw

import (
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/jigsaw"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

func webgpuVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		vs = append(vs, packing{block: jigsaw.StripRows}.sized(spec.WGSL("webgpu_"+t.String(), spec.Variant{
			In: t, Need: spec.Need{Shared: scalarShared}, Local: spec.Line(scalarLocal),
			Consts: []spec.Const{
				spec.Define("ROWS", jigsaw.StripRows), spec.Define("STAGE", scalarStage),
				spec.Define("VECTORS", scalarStage*jigsaw.StepCols),
				spec.Define("VALUES", scalarStage*jigsaw.StepCols*jigsaw.StripRows),
				spec.Define("BLOCK", jigsaw.StripRows), spec.Define("COLS", 4*scalarLocal),
			},
			Unit: spec.Unit{Defines: include.WGSL(t)},
		}), scalarKind, 4*scalarLocal))
	}
	return vs
}
