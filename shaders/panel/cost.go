// What predictions need to know of the variants.

package panel

import (
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Cost is that of kernels of panels of the constant V rows.
func Cost(v *spec.Variant) spec.Cost {
	tall := v.Const("V") > 8
	switch {
	case v.Code == backend.CodeGo:
		return pick(tall, spec.Cost{Reach: 1.1, Start: 0.8}, spec.Cost{Reach: 1.2, Start: 0.4})
	case v.Const("WINDOW") > 0:
		return pick(v.Code == backend.CodePTX, spec.Cost{Start: 2.5, Step: 0.03}, spec.Cost{Start: 3.2, Step: 0.043})
	case v.Code == backend.CodePTX && len(v.Need.Shapes) > 0:
		return pick(tall, spec.Cost{Start: 0.7, Step: 0.034}, spec.Cost{Start: 0.2, Step: pick(v.Need.Shapes[0].K > 8, 0.03, 0.042)})
	case v.Code == backend.CodePTX:
		return pick(tall, spec.Cost{Start: 0.7, Step: 0.32}, spec.Cost{Start: 0.4, Step: 0.205})
	case v.Need.Lanes:
		return pick(tall, spec.Cost{Start: 0.9, Step: 0.03}, spec.Cost{Reach: 0.22, Start: 0.4, Step: 0.03})
	case v.Matrix:
		return pick(tall, spec.Cost{Reach: 0.17, Start: 4, Step: 0.018}, spec.Cost{Reach: 0.05, Start: 1.5, Step: 0.034})
	}
	return pick(tall, spec.Cost{Reach: 0.5, Start: 6, Step: 0.152}, spec.Cost{Reach: 0.75, Start: 3, Step: 0.13})
}

func pick[T any](c bool, a, b T) T {
	if c {
		return a
	}
	return b
}
