// The variants for WebGPU.

package nm

import (
	_ "embed"
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// WGSL is nm.wgsl, which other packages' templates include too.
//
//go:embed nm.wgsl
var WGSL string

func webgpuVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		vs = append(vs,
			of(anyTall, plainPack).sized(webgpuVariant("vector", anyTall, t, vectorLocal, vectorShared, []spec.Const{
				spec.Define("STAGE", vectorStage), spec.Define("ROWS", anyTall), spec.Define("COLS", 4*vectorLocal),
			}), scalarKind, anyTall, 4*vectorLocal),
			of(1, plainPack).sized(webgpuVariant("element", 1, t, elementLocal, elementShared, []spec.Const{
				spec.Define("QUADS", elementQuads), spec.Define("DEPTH", elementDepth), spec.Define("PITCH", elementDepth+1),
				spec.Define("CELLS", elementQuads*(elementDepth+1)),
				spec.Define("ROWS", elementLocal), spec.Define("COLS", 4*elementQuads),
			}), elementKind, elementLocal, 4*elementQuads))
	}
	return vs
}

func webgpuVariant(source string, v uint32, t dtype.Type, local, shared uint32, consts []spec.Const) *spec.Variant {
	return spec.WGSL(fmt.Sprintf("webgpu_v%d_%v", v, t), spec.Variant{
		In: t, Need: spec.Need{Shared: shared}, Local: spec.Line(local),
		Consts: append([]spec.Const{spec.Define("V", v), spec.Define("PACK", plainPack)}, consts...),
		Unit:   spec.Unit{Source: source + ".wgsl", Defines: include.WGSL(t, "NM", WGSL)},
	})
}
