// What the tests reach into.

package dense

import "github.com/spmmrun/spmm/shaders/spec"

// CoopVariants returns the cooperative-matrix variants made over for a subgroup size, so that a driver that computes
// any operation runs those of all vendors; of those with two stages, and of those for A in blocks, one, with smaller
// tiles, as such a driver takes minutes to compile the others.
func CoopVariants(sub uint32) []*spec.Variant {
	var vs []*spec.Variant
	for _, u := range units {
		u.Sub = sub
		vs = append(vs, coop(u, false))
	}
	staged, packed := coopOf(spec.NVIDIA, true), coopOf(spec.AMD32, true)
	for _, t := range []*coopTile{&staged, &packed} {
		t.unit.Sub, t.rows, t.cols = sub, tile, tile
	}
	packed.packed = true
	return append(vs, staged.variant("vulkan_wide", vulkanOrders[0]), packed.variant("vulkan_packed", vulkanOrders[0]))
}
