//go:build js || (cgo && amd64 && (linux || (windows && webgpu)))

// Slots of the ring of parameters, on devices of other alignments than the tests have.

package webgpu

import (
	"testing"

	"github.com/spmmrun/spmm/backend"
)

func TestSlotSize(t *testing.T) {
	for _, align := range []int{0, 4, 16, 32, 64, 128, 256} {
		n := slotSize(align)
		if n < backend.MaxParams || align > 0 && n%align != 0 || n >= backend.MaxParams+max(align, 4) {
			t.Errorf("slots of %d bytes where offsets are multiples of %d", n, align)
		}
	}
}
