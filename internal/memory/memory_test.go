// What the system tells is plausible.

package memory_test

import (
	"runtime"
	"testing"

	"github.com/spmmrun/spmm/internal/memory"
)

func TestMemory(t *testing.T) {
	all, free := memory.Total(), memory.Available()
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		if all != 0 || free != 0 {
			t.Errorf("%d of %d bytes on a system whose memory is not known", free, all)
		}
		return
	}
	if all < 64<<20 || free <= 0 || free > all {
		t.Errorf("%d of %d bytes", free, all)
	}
}
