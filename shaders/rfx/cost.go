// What predictions need to know of the variants.

package rfx

import (
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Gather is how much longer a variant takes for a byte of B than rows do, and the columns below which it takes as long:
// both measured on an H200, see bench/NOTES.md. panels tells whether it is one for panels.
func Gather(v *spec.Variant) (slower float64, columns int, panels bool) {
	switch {
	case kind(v) == Rows:
		return 1, 1, false
	case v.Code == backend.CodePTX:
		return 1.75, 32, true
	}
	return 3, int(v.Const("COLS")), true
}
