// The variants for CUDA: those of package nm for 2:4, with the remainder.

package sparse24r

import (
	"slices"
	"strings"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/nm"
	"github.com/spmmrun/spmm/shaders/spec"
)

// gatherBytes is REMAINDER_BYTES of remainder.cuh.
const gatherBytes = 4096

func cudaVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16} {
		for _, v := range nm.Variants24(t) {
			v.Name = strings.Replace(v.Name, "_24", "", 1)
			v.Unit.Blob = v.Name + ".ptx"
			nm.Resized(v)
			v.Kind = sparse24Kind
			if nm.Order(v) == nm.GroupPack {
				v.Kind = group24Kind
			}
			v.Consts = slices.DeleteFunc(v.Consts, func(c spec.Const) bool { return c.Name == "V" }) // of nm's patterns
			v.Entry = "sparse24r"
			v.Unit.Defines["ENTRY"] = v.Entry
			if nm.Order(v) == nm.GroupPack { // next to the stages; the others gather where stages were
				v.ColumnsOfC = true
				v.Shared += 8 * gatherBytes
				v.Need.Shared = v.Shared
			}
			vs = append(vs, v)
		}
	}
	return vs
}
