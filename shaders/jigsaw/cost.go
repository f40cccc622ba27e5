// What predictions need to know of the variants.

package jigsaw

import (
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/spec"
)

func cost(v *spec.Variant) spec.Cost {
	switch {
	case v.Code == backend.CodeGo:
		return spec.Cost{Reach: 0.77, Start: 0.8}
	case v.Code == backend.CodePTX: // by rows of a block: more of them share what is fetched
		return map[uint32]spec.Cost{
			16:  {Reach: 0.23, Start: 0.75, Step: 0.021},
			32:  {Reach: 0.57, Start: 1.2, Step: 0.022},
			64:  {Start: 0.65, Step: 0.0117},
			128: {Start: 0.4, Step: 0.0112},
			256: {Reach: 0.48, Start: 0.3, Step: 0.009},
		}[v.Const("BLOCK")]
	case v.Need.Lanes:
		return spec.Cost{Reach: 0.25, Start: 0.9, Step: 0.022}
	case v.Matrix:
		return spec.Cost{Reach: 0.14, Start: 2.3, Step: 0.025}
	}
	return spec.Cost{Reach: 0.18, Start: 7.5, Step: 0.1}
}
