// The matrix operations of each architecture.

package cuda

import (
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
)

// mma lists the dense mma.sync shapes of PTX and the compute capability (times ten) each needs. The
// API has no query for them; the table follows the PTX ISA's section on mma.
var mma = []struct {
	arch    int
	m, n, k uint32
	ab, cd  dtype.Type
}{
	{75, 16, 8, 8, dtype.F16, dtype.F32},
	{75, 16, 8, 8, dtype.F16, dtype.F16},
	{80, 16, 8, 16, dtype.F16, dtype.F32},
	{80, 16, 8, 16, dtype.F16, dtype.F16},
	{80, 16, 8, 8, dtype.BF16, dtype.F32},
	{80, 16, 8, 16, dtype.BF16, dtype.F32},
	{80, 16, 8, 4, dtype.TF32, dtype.F32},
	{80, 16, 8, 8, dtype.TF32, dtype.F32},
	{80, 8, 8, 4, dtype.F64, dtype.F64},
	{90, 16, 8, 4, dtype.F64, dtype.F64},
	{90, 16, 8, 8, dtype.F64, dtype.F64},
	{90, 16, 8, 16, dtype.F64, dtype.F64},
	{80, 16, 8, 16, dtype.S8, dtype.S32},
	{80, 16, 8, 32, dtype.S8, dtype.S32},
	{80, 16, 8, 16, dtype.U8, dtype.S32},
	{80, 16, 8, 32, dtype.U8, dtype.S32},
}

// shapes returns the matrix operations of a compute capability times ten.
func shapes(arch int) []backend.MatrixShape {
	var list []backend.MatrixShape
	for _, s := range mma {
		if s.arch <= arch {
			list = append(list, backend.MatrixShape{M: s.m, N: s.n, K: s.k, A: s.ab, B: s.ab, C: s.cd, D: s.cd})
		}
	}
	return list
}
