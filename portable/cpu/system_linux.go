// What Linux tells about the processor, and huge pages.

package cpu

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func preferHugePages(mem []byte) {
	unix.Madvise(mem, unix.MADV_HUGEPAGE) // a wish: a kernel without them gives small pages
}

// names returns the processor's model and vendor, "" if unknown.
func names() (model, vendor string) {
	text, _ := os.ReadFile("/proc/cpuinfo")
	return field(text, "model name"), field(text, "vendor_id")
}

// field returns the value of the first line "name : value".
func field(text []byte, name string) string {
	for line := range strings.Lines(string(text)) {
		if n, value, _ := strings.Cut(line, ":"); strings.TrimSpace(n) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
