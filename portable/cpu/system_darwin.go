// What macOS tells about the processor and its memory.

package cpu

import (
	"strings"

	"golang.org/x/sys/unix"
)

func preferHugePages([]byte) {}

func names() (model, vendor string) {
	model, _ = unix.Sysctl("machdep.cpu.brand_string")
	vendor, _, _ = strings.Cut(model, " ")
	return model, vendor
}

// available is all memory: macOS compresses and swaps before it refuses.
func available() int64 { return total() }

func total() int64 {
	n, _ := unix.SysctlUint64("hw.memsize")
	return int64(n)
}
