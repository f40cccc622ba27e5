package nm

import "github.com/spmmrun/spmm/shaders/spec"

// CoopVariants returns the cooperative-matrix variants made over for a subgroup size, so that a driver that computes
// any tile runs those of all vendors.
func CoopVariants(sub uint32) []*spec.Variant {
	var vs []*spec.Variant
	for _, c := range coops() {
		c.Sub = sub
		x := c.variant()
		if lanes := x.Local[0]; c.stage*c.cols/8 >= lanes {
			vs = append(vs, x)
		}
	}
	return vs
}

// Is24 tells whether a variant takes 2:4 alone.
func Is24(v *spec.Variant) bool { return packs24(sizesOf(v).order) }

// Clusters tells whether a variant's workgroups work in clusters, whose grid cannot be bent.
func Clusters(v *spec.Variant) bool { return sizesOf(v).order == groupPack }
