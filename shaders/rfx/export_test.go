package rfx

import (
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// MaxLongest is the most entries that a row may have and not be done in segments.
const MaxLongest = 1 << 15

// MostStripColumns is the most columns of A in strips.
const MostStripColumns = mostStrip

// PackWith is Encode with the rows, or panels, in segments of longest entries, or vectors; strips have none.
func PackWith[T formats.Value](a *formats.CSR[T], v *spec.Variant, longest int) (*spec.Packed, error) {
	switch kind(v) {
	case Rows, Direct:
		return pack(a, v, longest), nil
	case InStrips:
		return packStrips(a, v)
	case InPairs:
		return packPairs(a, v)
	case Residues, Digits:
		return packResidues(a, v)
	case SparseResidues:
		return packSparseResidues(a, v)
	}
	return packPanels(a, v, min(longest, mostVectors))
}
