//go:build !js

// Packing for matrix units, which no browser gives access to: programs for browsers leave it out (units_js.go).

package rfx

import (
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

func packForMatrixUnits[T formats.Value](a *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) {
	switch kind(v) {
	case InStrips:
		return packStrips(a, v)
	case InPairs:
		return packPairs(a, v)
	case SparseResidues:
		return packSparseResidues(a, v)
	}
	return packPanels(a, v, 0)
}
