// What a driver says of a device that cannot be: such a device is listed and not opened.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

import (
	"fmt"
	"math/bits"
	"strings"
	"unicode"
)

// What no device has more of, or less, by far.
const (
	mostMemory      = 1 << 50 // bytes of a heap
	mostShared      = 1 << 24 // bytes of a workgroup's shared memory
	mostInvocations = 1 << 16 // of a workgroup
	mostSubgroup    = 1 << 10 // invocations of a subgroup
	longestTick     = 1e6     // nanoseconds
	leastAllocation = 1 << 24 // bytes of one allocation; the specification requires 1 << 30
)

// doubt keeps the first thing that is wrong with a device.
func (a *adapter) doubt(format string, args ...any) {
	if a.wrong == "" {
		a.wrong = fmt.Sprintf(format, args...)
	}
}

// refuse is the error of opening a device that is not what its driver says.
func (a *adapter) refuse() error {
	if a.wrong == "" {
		return nil
	}
	return unavailable("%s: its driver (%s) says that it %s, which cannot be; update or remove that driver", a.info.Name, a.info.Driver, a.wrong)
}

// checkLimits holds the limits against what the specification requires at least and what any device has at most.
func (a *adapter) checkLimits() {
	l := &a.limits
	switch {
	case a.api>>22 != 1:
		a.doubt("has Vulkan %s", versionString(a.api))
	case l.pushBytes < 128:
		a.doubt("takes %d bytes of push constants", l.pushBytes)
	case l.shared < 16<<10 || l.shared > mostShared:
		a.doubt("has %d bytes of shared memory", l.shared)
	case l.invocations < 128 || l.invocations > mostInvocations:
		a.doubt("has workgroups of %d invocations", l.invocations)
	case min(l.local[0], l.local[1], l.local[2]) == 0:
		a.doubt("has workgroups of %v invocations", l.local)
	case min(l.groups[0], l.groups[1], l.groups[2]) < 65535:
		a.doubt("has grids of %v workgroups", l.groups)
	}
	if !(l.nanosPerTick > 0 && l.nanosPerTick <= longestTick) {
		l.nanosPerTick = 0 // no timestamps
	}
}

// checkProperties does so with what later versions tell.
func (a *adapter) checkProperties(p *properties) {
	if p.maxAllocation < leastAllocation {
		a.doubt("allocates at most %d bytes", p.maxAllocation)
	}
	sizes := []uint32{p.subgroup.subgroupSize}
	if p.size.minSubgroupSize > 0 {
		sizes = append(sizes, p.size.minSubgroupSize, p.size.maxSubgroupSize)
	}
	for i, n := range sizes {
		if n > mostSubgroup || bits.OnesCount32(n) != 1 || i == 2 && n < sizes[1] {
			a.doubt("has subgroups of %d invocations", sizes)
		}
	}
}

// printable returns the text before the first NUL, without what a terminal might obey.
func printable(b []byte) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, cString(b)))
}
