// Slices as the bytes that comm transfers.

package dist

import (
	"unsafe"

	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/formats"
)

// plain are the elements that ranks exchange.
type plain interface {
	formats.Value | ~int32 | ~int64
}

func sizeOf[T plain]() int {
	var x T
	return int(unsafe.Sizeof(x))
}

// bytesOf returns the memory of s.
func bytesOf[T plain](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*sizeOf[T]())
}

// exchangeSlices is comm's AllToAllV of elements.
func exchangeSlices[T plain](c comm.Comm, send []T, sent []comm.Part, recv []T, received []comm.Part) error {
	return c.AllToAllV(sizeOf[T](), bytesOf(send), sent, bytesOf(recv), received)
}
