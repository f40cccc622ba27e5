// What predictions need to know of the variants.

package rfx

import (
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Gather is how much longer a variant takes for a byte of B than rows do, the columns below which it takes as long, and
// the bytes of an element below which it does: rows take as long for integers of 16 bits as for those of 32. All were
// measured on an H200, see bench/NOTES.md.
func Gather(v *spec.Variant) (slower float64, columns int, bytes int64) {
	switch {
	case kind(v) == Rows:
		return 1, 1, 4
	case v.Code == backend.CodePTX:
		return 1.75, 32, 0
	}
	return 3, int(v.Const("COLS")), 0
}
