// What Linux tells: /proc/meminfo, the process's control groups and its limit of address space.

package memory

import (
	"os"

	"golang.org/x/sys/unix"
)

func available() int64 {
	root := os.DirFS("/")
	have, left := meminfo(root, "MemAvailable"), int64(0)
	for _, g := range groups(root) {
		have = least(have, max(1, g.limit-g.used))
	}
	if limit := addressSpace(); limit > 0 {
		left = max(1, limit-addressed(root))
	}
	return least(have, left)
}

func total() int64 {
	root := os.DirFS("/")
	have := meminfo(root, "MemTotal")
	for _, g := range groups(root) {
		have = least(have, g.limit)
	}
	return least(have, addressSpace())
}

// least returns the lesser of two numbers of bytes; 0 means unknown or unbounded.
func least(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// addressSpace returns the bound that ulimit -v sets, 0 if none.
func addressSpace() int64 {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &r); err != nil || r.Cur >= unbounded {
		return 0
	}
	return int64(r.Cur)
}
