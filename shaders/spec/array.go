// Arrays as they are copied to a device.

package spec

import "github.com/spmmrun/spmm/backend"

// NewArray returns data as an array padded with zeros to a multiple of 16 bytes, and at least 16 bytes long, so that
// 16-byte loads do not go past its end. It copies data only if they must be padded.
func NewArray[T backend.Plain](name string, data []T) Array {
	b := backend.Bytes(data)
	if n := max(16, (len(b)+15)&^15); n != len(b) {
		b = append(make([]byte, 0, n), b...)[:n]
	}
	return Array{Name: name, Data: b}
}
