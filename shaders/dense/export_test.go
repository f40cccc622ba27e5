// What the tests reach into.

package dense

import "github.com/spmmrun/spmm/shaders/spec"

// CoopVariants returns the cooperative-matrix variants made over for a subgroup size, so that a driver that computes any
// tile runs those of all vendors.
func CoopVariants(sub uint32) []*spec.Variant {
	var vs []*spec.Variant
	for _, u := range units {
		u.Sub = sub
		vs = append(vs, coop(u))
	}
	return vs
}
