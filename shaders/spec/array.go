// Making a format's arrays ready for a device.

package spec

import "github.com/spmmrun/spmm/backend"

// NewArray returns data as an array of a multiple of 16 bytes, zeros behind, and of at least 16: so
// there is something to upload, and 16-byte loads end inside it. It copies only where it must.
func NewArray[T backend.Plain](name string, data []T) Array {
	b := backend.Bytes(data)
	if n := max(16, (len(b)+15)&^15); n != len(b) {
		b = append(make([]byte, 0, n), b...)[:n]
	}
	return Array{Name: name, Data: b}
}
