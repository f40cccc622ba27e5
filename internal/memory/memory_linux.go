// What Linux tells: /proc/meminfo and the control group.

package memory

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

func available() int64 {
	have := meminfo("MemAvailable")
	limit, used := cgroup()
	if limit > 0 && (have == 0 || limit-used < have) {
		have = max(1, limit-used)
	}
	return have
}

func total() int64 {
	have := meminfo("MemTotal")
	if limit, _ := cgroup(); limit > 0 && (have == 0 || limit < have) {
		have = limit
	}
	return have
}

func meminfo(name string) int64 {
	text, _ := os.ReadFile("/proc/meminfo")
	kib, _ := strconv.ParseInt(strings.TrimSuffix(field(text, name+":"), " kB"), 10, 64)
	return kib << 10
}

// cgroup returns the bound of the process's control group (version 2, else 1), 0 if none, and the bytes taken
// from it that the kernel cannot take back.
func cgroup() (limit, used int64) {
	const v2, v1 = "/sys/fs/cgroup/memory.", "/sys/fs/cgroup/memory/memory."
	prefix, max, now := v2, "max", "current"
	if _, err := os.Stat(v2 + max); err != nil {
		prefix, max, now = v1, "limit_in_bytes", "usage_in_bytes"
	}
	stat, _ := os.ReadFile(prefix + "stat")
	cached, _ := strconv.ParseInt(field(stat, "inactive_file "), 10, 64)
	return number(prefix + max), number(prefix+now) - cached
}

// number reads a file that holds one number; anything else ("max") is 0.
func number(file string) int64 {
	text, _ := os.ReadFile(file)
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n
}

// field returns the rest of the line that starts with name.
func field(text []byte, name string) string {
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
