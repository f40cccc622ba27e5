// What predictions need to know of the variants.

package nm

import (
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/spec"
)

func cost(v *spec.Variant) spec.Cost {
	tall, tensor := v.Const("V"), len(v.Need.Shapes) > 0
	switch {
	case v.Code == backend.CodeGo && tall == 1:
		return spec.Cost{Reach: 0.27, Start: 0.04 * cpuRows}
	case v.Code == backend.CodeGo:
		return spec.Cost{Start: 0.04 * cpuTallRows}
	case v.Const("PACK") == groupPack:
		return spec.Cost{Start: 2, Step: 0.002}
	case v.Code == backend.CodePTX && v.Const("PACK") != plainPack:
		return spec.Cost{Start: 0.4, Step: 0.009}
	case v.Code == backend.CodePTX && tall == 1:
		return pickCost(tensor, spec.Cost{Start: 0.3, Step: 0.026}, spec.Cost{Reach: 0.15, Start: 5.3, Step: 0.019})
	case v.Code == backend.CodePTX && tensor:
		return spec.Cost{Start: 0.3, Step: 0.007}
	case v.Code == backend.CodePTX:
		return spec.Cost{Start: 0.4, Step: 0.11}
	case v.Need.Lanes && v.Const("PACK") == warpPack:
		return spec.Cost{Start: 0.8, Step: 0.035}
	case v.Need.Lanes:
		return spec.Cost{Start: 0.4, Step: 0.013}
	case tensor:
		return spec.Cost{Start: 0.5, Step: 0.07}
	case tall == 1:
		return spec.Cost{Reach: 0.03, Start: 0.35, Step: 0.019}
	}
	return spec.Cost{Reach: 0.1, Start: 0.5, Step: 0.021}
}

func pickCost(c bool, a, b spec.Cost) spec.Cost {
	if c {
		return a
	}
	return b
}
