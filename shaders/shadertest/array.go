// Numbers as arguments of kernels hold them.

package shadertest

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// Array is elements of a type: F16, BF16, F32 or F64, or one that is stored as these.
type Array struct {
	dtype.Type
	Data []byte
}

// NewArray returns numbers as a type's elements: rounded to nearest, ties to even.
func NewArray[S formats.Value](t dtype.Type, numbers []S) Array {
	a := Array{t.Storage(), nil}
	switch a.Type {
	case dtype.F16:
		a.Data = rounded[half.F16](numbers)
	case dtype.BF16:
		a.Data = rounded[half.BF16](numbers)
	case dtype.F32:
		a.Data = rounded[float32](numbers)
	case dtype.F64:
		a.Data = rounded[float64](numbers)
	default:
		panic(fmt.Sprintf("shadertest: no array has elements of type %v", t))
	}
	return a
}

func rounded[T, S formats.Value](numbers []S) []byte {
	x := make([]T, len(numbers))
	formats.ConvertSlice(x, numbers)
	return backend.Bytes(x)
}

// Len is the number of elements.
func (a Array) Len() int { return len(a.Data) / a.Size() }

// At returns element i.
func (a Array) At(i int) float64 {
	switch a.Type {
	case dtype.F16:
		return float64(backend.View[half.F16](a.Data)[i].Float32())
	case dtype.BF16:
		return float64(backend.View[half.BF16](a.Data)[i].Float32())
	case dtype.F64:
		return backend.View[float64](a.Data)[i]
	}
	return float64(backend.View[float32](a.Data)[i])
}

// Bits returns the bits of element i.
func (a Array) Bits(i int) uint64 {
	switch a.Size() {
	case 8:
		return backend.View[uint64](a.Data)[i]
	case 4:
		return uint64(backend.View[uint32](a.Data)[i])
	}
	return uint64(backend.View[uint16](a.Data)[i])
}

// SetBits sets the bits of element i.
func (a Array) SetBits(i int, x uint64) {
	switch a.Size() {
	case 8:
		backend.View[uint64](a.Data)[i] = x
	case 4:
		backend.View[uint32](a.Data)[i] = uint32(x)
	default:
		backend.View[uint16](a.Data)[i] = uint16(x)
	}
}

// Set rounds a number to element i.
func (a Array) Set(i int, x float64) {
	switch one := []float64{x}; a.Type {
	case dtype.F16:
		formats.ConvertSlice(backend.View[half.F16](a.Data)[i:], one)
	case dtype.BF16:
		formats.ConvertSlice(backend.View[half.BF16](a.Data)[i:], one)
	case dtype.F64:
		backend.View[float64](a.Data)[i] = x
	default:
		backend.View[float32](a.Data)[i] = float32(x)
	}
}

// Converted returns the bits of a number of one type as another type has it: NaN stays NaN.
func Converted(bits uint64, from, to dtype.Type) uint64 {
	if from == to {
		return bits
	}
	x, y := Array{from, make([]byte, 8)}, Array{to, make([]byte, 8)}
	x.SetBits(0, bits)
	y.Set(0, x.At(0))
	return y.Bits(0)
}

// round returns the number of a type nearest to that of f32 nearest to x, of F64 x: what a sum of x is stored as.
func round(t dtype.Type, x float64) float64 {
	if t == dtype.F64 {
		return x
	}
	y := Array{t, make([]byte, 8)}
	y.Set(0, float64(float32(x)))
	return y.At(0)
}
