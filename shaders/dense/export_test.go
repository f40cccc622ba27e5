// What the tests reach into.

package dense

import "github.com/spmmrun/spmm/shaders/spec"

// CoopVariants returns the cooperative-matrix variants made over for a subgroup size, so that a driver that computes
// any operation runs those of all vendors; of the larger tiles, and of those for A in blocks, one.
func CoopVariants(sub uint32) []*spec.Variant {
	var vs []*spec.Variant
	for i, u := range units {
		u.Sub = sub
		if vs = append(vs, coop(u, false)); i == 0 {
			vs = append(vs, coop(u, true))
		}
	}
	packed := coopOf(spec.AMD32, true)
	packed.unit.Sub, packed.packed = sub, true
	return append(vs, packed.variant("vulkan_packed", vulkanOrders[0]))
}
