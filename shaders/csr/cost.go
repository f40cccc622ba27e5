// What predictions need to know of the variants.

package csr

import (
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/spec"
)

func cost(v *spec.Variant) spec.Cost {
	switch v.Code {
	case backend.CodeGo:
		return spec.Cost{Reach: 0.55, Start: 0.02}
	case backend.CodePTX:
		return spec.Cost{Reach: 0.4, Start: 0.04, Step: 0.002}
	}
	return spec.Cost{Reach: 0.16, Start: 0.1, Step: 0.003}
}
