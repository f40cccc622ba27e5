package jigsaw

import "github.com/spmmrun/spmm/shaders/spec"

// CoopVariants returns the cooperative-matrix variants made over for a subgroup size, so that a
// driver that computes any tile runs those of all vendors.
func CoopVariants(sub uint32) []*spec.Variant {
	var vs []*spec.Variant
	for _, c := range coops {
		c.Sub = sub
		vs = append(vs, c.variant())
	}
	return vs
}
