// What Linux tells about the processor and its memory.

package cpu

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func preferHugePages(mem []byte) {
	unix.Madvise(mem, unix.MADV_HUGEPAGE) // a wish: a kernel without them gives small pages
}

// names returns the processor's model and vendor, "" if unknown.
func names() (model, vendor string) {
	text, _ := os.ReadFile("/proc/cpuinfo")
	info := fields(text, ":")
	return info["model name"], info["vendor_id"]
}

// available returns the bytes this process may still take without pushing others out: what the kernel calls
// available, and less if its control group is bounded. 0: unknown.
func available() int64 {
	have := meminfo("MemAvailable")
	limit, used := cgroup()
	if limit > 0 && (have == 0 || limit-used < have) {
		have = max(1, limit-used)
	}
	return have
}

// total returns the bytes of memory this process can ever have.
func total() int64 {
	have := meminfo("MemTotal")
	if limit, _ := cgroup(); limit > 0 && (have == 0 || limit < have) {
		have = limit
	}
	return have
}

func meminfo(name string) int64 {
	text, _ := os.ReadFile("/proc/meminfo")
	kib, _ := strconv.ParseInt(strings.TrimSuffix(fields(text, ":")[name], " kB"), 10, 64)
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
	cached, _ := strconv.ParseInt(fields(stat, " ")["inactive_file"], 10, 64)
	return number(prefix + max), number(prefix+now) - cached
}

// number reads a file that holds one number; anything else ("max") is 0.
func number(file string) int64 {
	text, _ := os.ReadFile(file)
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n
}

// fields reads lines of a name and a value; of equal names the first counts.
func fields(text []byte, sep string) map[string]string {
	m := map[string]string{}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		name, value, ok := strings.Cut(s.Text(), sep)
		name = strings.TrimSpace(name)
		if _, seen := m[name]; ok && !seen {
			m[name] = strings.TrimSpace(value)
		}
	}
	return m
}
