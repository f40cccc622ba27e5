// Views of slices as bytes and back, for uploading arrays and for kernels on the CPU.

package backend

import "unsafe"

// Plain are the element types whose memory may be seen as bytes.
type Plain interface {
	~uint8 | ~int8 | ~uint16 | ~int16 | ~uint32 | ~int32 | ~uint64 | ~int64 | ~float32 | ~float64
}

// Bytes returns the elements of s as bytes, in the same memory.
func Bytes[T Plain](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// View returns b as a slice of whole elements, in the same memory. The start of b must be aligned for T; a partial
// element at its end is left out.
func View[T Plain](b []byte) []T {
	var t T
	if n := len(b) / int(unsafe.Sizeof(t)); n > 0 {
		return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
	}
	return nil
}
