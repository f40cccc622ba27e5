// Matrix operations: the shapes that vendors' drivers list, for which kernels have variants.

package spec

import (
	"cmp"
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
)

// Shape is the operation D = A·B + C of M×K by K×N operands of type t, with sums in f32, in s32 for integers, in f64
// for f64.
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

// Variant completes a variant on the unit, with operands of f16: workgroups of a number of subgroups, with a number of
// bytes of shared memory. Its first constant is LOCAL, with ID 0. It is of f16 unless it says otherwise.
func (u MatrixUnit) Variant(name string, subs, shared uint32, v Variant) *Variant {
	v.In = cmp.Or(v.In, dtype.F16)
	v.Need = Need{F16: true, Lanes: v.Need.Lanes, Shared: shared, Shapes: []backend.MatrixShape{u.Shape(dtype.F16)}}
	v.Local, v.Sub, v.Matrix = Line(u.Sub*subs), u.Sub, true
	v.Consts = append([]Const{{Name: "LOCAL", ID: 0, Value: v.Local[0]}}, v.Consts...)
	v.Out = []dtype.Type{dtype.F16}
	return SPIRV(name, v)
}

// LanesVariant is Variant on NVIDIA's unit for devices whose matrix elements lie in lanes as Need.Lanes says.
func LanesVariant(name string, subs, shared uint32, v Variant) *Variant {
	v.Need.Lanes = true
	return NVIDIA.Variant(name, subs, shared, v)
}
