// Versions: of the driver, of CUDA, of PTX.

package cuda

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
)

// oldest is the oldest driver that can be used, in CUDA's numbering: it has the functions needed.
const oldest = 12000

// versionString writes 12040 as "12.4".
func versionString(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

var ptxLine = regexp.MustCompile(`(?m)^\s*\.version\s+(\d+\.\d+)`)

// ptxVersion returns the PTX ISA version that a PTX text declares.
func ptxVersion(code []byte) string {
	if m := ptxLine.FindSubmatch(code); m != nil {
		return string(m[1])
	}
	return "?"
}

// cudaOfPTX returns the first CUDA version whose drivers take a PTX ISA version. Since CUDA 11 the
// ISA's major version is four less and the minor one the same, but for 8.6, of CUDA 12.7.
func cudaOfPTX(ptx string) string {
	var major, minor int
	if _, err := fmt.Sscanf(ptx, "%d.%d", &major, &minor); err != nil {
		return "?"
	}
	if major == 8 && minor >= 6 {
		minor++
	}
	return strconv.Itoa(major+4) + "." + strconv.Itoa(minor)
}

var moduleVersion = regexp.MustCompile(`NVRM version:.*?\s(\d{3,}\.\d+(?:\.\d+)?)\s`)

// kernelDriver returns the version of NVIDIA's kernel module, "" if the system does not tell.
func kernelDriver() string {
	text, err := os.ReadFile("/proc/driver/nvidia/version")
	if err != nil {
		return ""
	}
	return parseModuleVersion(text)
}

func parseModuleVersion(text []byte) string {
	if m := moduleVersion.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}
