package hrpb

import (
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Ordered returns a variant that packs rows in another order.
func Ordered(v *spec.Variant) *spec.Variant {
	w := *v
	w.Name += "_ordered"
	s := sizesOf(v)
	s.ordered = true
	w.Packing = s
	return &w
}

// CoopVariants returns the cooperative-matrix variants made over for a subgroup size, so that a
// driver that computes any tile runs those of all vendors.
func CoopVariants(sub uint32) []*spec.Variant {
	var vs []*spec.Variant
	for _, c := range coops {
		c.Sub = sub
		vs = append(vs, c.variant(dtype.TF32), c.variant(dtype.F16))
	}
	return vs
}
