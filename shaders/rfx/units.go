//go:build !js

// Variants and packing for matrix units, which no browser gives access to, and other variants for Vulkan: programs for
// browsers leave them out (units_js.go).

package rfx

import (
	"slices"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

func byMatrixUnits() []*spec.Variant {
	return slices.Concat(byPanels(), byStationary(), byStrips(), byPairs(), byResidues(), bySparseResidues(),
		byCoopResidues(), byVulkanDots(), byDigits())
}

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
