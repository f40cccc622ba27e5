// What the tests reach into.

package dense

import "github.com/spmmrun/spmm/shaders/spec"

// CoopVariants returns the cooperative-matrix variants made over for a subgroup size, so that a driver that computes
// any operation runs those of all vendors; of those with two stages one, with a smaller tile, as such a driver takes
// minutes to compile the others.
func CoopVariants(sub uint32) []*spec.Variant {
	var vs []*spec.Variant
	for _, u := range units {
		u.Sub = sub
		vs = append(vs, coop(u, false))
	}
	t := coopOf(spec.NVIDIA, true)
	t.unit.Sub, t.rows, t.cols = sub, tile, tile
	return append(vs, t.variant("vulkan_wide", vulkanOrders[0]))
}
