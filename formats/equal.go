// Equality of values by their bits: -0 differs from 0, and a NaN equals itself.

package formats

import (
	"slices"
	"unsafe"
)

// Equal reports whether a and b have the same size, the same pattern and the same bits of values.
func (a *CSR[T]) Equal(b *CSR[T]) bool {
	return a.Rows == b.Rows && a.Cols == b.Cols && slices.Equal(a.RowPtr, b.RowPtr) &&
		slices.Equal(a.ColIdx, b.ColIdx) && sameBits(a.Val, b.Val)
}

func sameBits[T Value](a, b []T) bool { return string(memory(a)) == string(memory(b)) }

func memory[T Value](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}
