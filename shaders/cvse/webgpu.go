// The variants for WebGPU.

package cvse

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

func webgpuVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, v := range []uint32{8, 16} {
		for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
			vs = append(vs, &spec.Variant{
				Name: fmt.Sprintf("webgpu_v%d_%v", v, t), In: t, Code: backend.CodeWGSL, Entry: "main",
				Need: spec.Need{Shared: scalarShared(v)}, Local: [3]uint32{scalarLocal, 1, 1},
				Consts: []spec.Const{
					{Name: "V", ID: -1, Value: v}, {Name: "STAGE", ID: -1, Value: scalarStage},
					{Name: "QUADS", ID: -1, Value: v / 4}, {Name: "VALUES", ID: -1, Value: scalarStage * v / 4},
					{Name: "ALIGN", ID: -1, Value: 1}, {Name: "COLS", ID: -1, Value: 4 * scalarLocal},
				},
				Unit: spec.Unit{Source: "kernel.wgsl", Defines: map[string]string{"ELEM": elem(t), "HALF": include.HalfWGSL}},
			})
		}
	}
	return vs
}
