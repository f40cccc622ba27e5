// Matrix operations: the shapes that vendors' drivers list, for which kernels have variants.

package spec

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
)

// Shape is the operation D = A·B + C of M×K by K×N operands of type t, with sums in f32, in s32 for integers, in f64 for f64.
func Shape(m, n, k uint32, t dtype.Type) backend.MatrixShape {
	sum := dtype.F32
	switch t {
	case dtype.S8:
		sum = dtype.S32
	case dtype.F64:
		sum = t
	}
	return backend.MatrixShape{M: m, N: n, K: k, A: t, B: t, C: sum, D: sum}
}

// MatrixUnit is an operation on Vulkan's cooperative matrices, and the subgroup size that it is used with.
type MatrixUnit struct{ M, N, K, Sub uint32 }

// The units of the vendors' GPUs, for 16-bit floating-point numbers.
var (
	NVIDIA  = MatrixUnit{16, 8, 16, 32}
	Turing  = MatrixUnit{16, 8, 8, 32}   // NVIDIA's GPUs of 2018
	AMD32   = MatrixUnit{16, 16, 16, 32} // in waves of 32
	AMD64   = MatrixUnit{16, 16, 16, 64} // in waves of 64
	Intel16 = MatrixUnit{8, 16, 16, 16}  // in subgroups of 16
	Intel8  = MatrixUnit{8, 8, 16, 8}    // in subgroups of 8
	MesaCPU = MatrixUnit{8, 8, 8, 8}     // Mesa's driver for CPUs

	// For 8-bit integers; AMD's and Mesa's are those above.
	NVIDIAInt     = MatrixUnit{16, 8, 32, 32}
	NVIDIAIntWide = MatrixUnit{16, 16, 32, 32}
	IntelInt16    = MatrixUnit{8, 16, 32, 16}
	IntelInt8     = MatrixUnit{8, 16, 32, 8}
)

// Shape is the unit's operation on operands of type t.
func (u MatrixUnit) Shape(t dtype.Type) backend.MatrixShape { return Shape(u.M, u.N, u.K, t) }

// String is how variants are called after a unit: "16x8x16_sub32".
func (u MatrixUnit) String() string { return fmt.Sprintf("%dx%dx%d_sub%d", u.M, u.N, u.K, u.Sub) }
