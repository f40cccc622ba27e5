// The variants for Vulkan and WebGPU.

package sparse24r

import (
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/nm"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	plainLocal = 64
	plainLanes = 16 // invocations of a row, each of four columns
)

func plainVariants(code backend.Code, prefix string, unit func(dtype.Type) spec.Unit) []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		vs = append(vs, nm.Plain(&spec.Variant{
			Name: prefix + "_" + t.String(), In: t, Code: code, Entry: "main", Local: [3]uint32{plainLocal, 1, 1},
			Consts: []spec.Const{
				{Name: "LOCAL", ID: 0, Value: plainLocal}, {Name: "LANES", ID: 1, Value: plainLanes},
				spec.Define("PACK", nm.PlainPack),
				spec.Define("ROWS", plainLocal/plainLanes), spec.Define("COLS", 4*plainLanes),
			},
			Unit: unit(t),
		}, plainKind, plainLocal/plainLanes, 4*plainLanes))
	}
	return vs
}

func vulkanVariants() []*spec.Variant {
	return plainVariants(backend.CodeSPIRV, "vulkan", func(t dtype.Type) spec.Unit {
		return spec.Unit{Source: "plain.comp", Defines: map[string]string{"ELEM": include.Define(t)},
			Blob: "plain_" + t.String() + ".spv"}
	})
}

func webgpuVariants() []*spec.Variant {
	return plainVariants(backend.CodeWGSL, "webgpu", func(t dtype.Type) spec.Unit {
		return spec.Unit{Source: "plain.wgsl", Defines: include.WGSL(t, "NM", nm.WGSL)}
	})
}
