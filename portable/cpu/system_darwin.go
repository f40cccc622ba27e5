// What macOS tells about the processor.

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
