// What the tests reach into.

package cvse

import (
	"github.com/spmmrun/spmm/shaders/panel"
	"github.com/spmmrun/spmm/shaders/spec"
)

// CoopVariants returns the cooperative-matrix variants made over for a subgroup size.
func CoopVariants(sub uint32) []*spec.Variant { return panel.Coops(sub, unaligned) }
