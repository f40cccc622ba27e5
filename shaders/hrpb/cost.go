// What predictions need to know of the variants.

package hrpb

import (
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

func cost(v *spec.Variant) spec.Cost {
	switch {
	case v.Code == backend.CodeGo:
		return spec.Cost{Reach: 0.33, Start: 0.3}
	case v.Code == backend.CodePTX && v.In == dtype.TF32:
		return spec.Cost{Reach: 0.65, Start: 0.3, Step: 0.009}
	case v.Code == backend.CodePTX:
		return spec.Cost{Start: 2.5, Step: 0.006}
	case v.Need.Lanes:
		return spec.Cost{Reach: 0.1, Start: 1.5, Step: 0.06}
	case v.Matrix:
		return spec.Cost{Reach: 0.04, Start: 2.3, Step: 0.18}
	}
	return spec.Cost{Reach: 0.19, Start: 2.9, Step: 0.35}
}
