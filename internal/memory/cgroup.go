// Linux's files on memory: of the machine, of the process, and of its control groups.

package memory

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// unbounded is more than any memory: control groups of version 1 have a number near 2⁶³ where there is no bound.
const unbounded = 1 << 60

// group is a control group with a bound.
type group struct {
	limit int64
	used  int64 // less what the kernel can take back: files that it keeps
}

// groups returns the bounds of the control group that the process is in and of all that hold it, in either version.
func groups(root fs.FS) []group {
	var gs []group
	self, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(self)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		switch {
		case len(f) < 3:
		case f[0] == "0" && f[1] == "":
			gs = append(gs, walk(root, "cgroup2", "", f[2], [3]string{"memory.max", "memory.current", "inactive_file"})...)
		case slices.Contains(strings.Split(f[1], ","), "memory"):
			gs = append(gs, walk(root, "cgroup", "memory", f[2], [3]string{"memory.limit_in_bytes", "memory.usage_in_bytes",
				"total_inactive_file"})...)
		}
	}
	return gs
}

// walk reads the groups from the one at name up to the top of the mounted hierarchy, in files of these names.
func walk(root fs.FS, kind, controller, name string, files [3]string) []group {
	top, below := hierarchy(root, kind, controller)
	if top == "" {
		return nil
	}
	inside, ok := strings.CutPrefix(path.Clean(name), strings.TrimSuffix(below, "/"))
	// the mount shows another part of the hierarchy: only its top can be seen
	if !ok || inside != "" && inside[0] != '/' {
		inside = "/"
	}
	var gs []group
	for dir := path.Join("/", inside); ; dir = path.Dir(dir) {
		at := strings.TrimPrefix(path.Join(top, dir), "/")
		if limit := number(root, path.Join(at, files[0])); limit > 0 && limit < unbounded {
			stat, _ := fs.ReadFile(root, path.Join(at, "memory.stat"))
			cached, _ := strconv.ParseInt(field(stat, files[2]+" "), 10, 64)
			gs = append(gs, group{limit, number(root, path.Join(at, files[1])) - cached})
		}
		if dir == "/" {
			return gs
		}
	}
}

// hierarchy returns where the hierarchy of a kind of file system, and if not "" with a controller, is mounted, and
// which of its groups is there.
func hierarchy(root fs.FS, kind, controller string) (mount, below string) {
	mounts, _ := fs.ReadFile(root, "proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(strings.TrimSpace(line), " - ")
		f, g := strings.Fields(before), strings.Fields(after) // …, …, …, root, mount point, …  -  type, source, options
		if len(f) < 5 || len(g) < 3 || g[0] != kind || controller != "" && !slices.Contains(strings.Split(g[2], ","),
			controller) {
			continue
		}
		return f[4], f[3]
	}
	return "", ""
}

// meminfo returns a number of /proc/meminfo in bytes.
func meminfo(root fs.FS, name string) int64 {
	text, _ := fs.ReadFile(root, "proc/meminfo")
	kib, _ := strconv.ParseInt(strings.TrimSuffix(field(text, name+":"), " kB"), 10, 64)
	return kib << 10
}

// addressed returns the bytes of address space that the process has.
func addressed(root fs.FS) int64 {
	text, _ := fs.ReadFile(root, "proc/self/statm")
	pages, _, _ := strings.Cut(string(text), " ")
	n, _ := strconv.ParseInt(pages, 10, 64)
	return n * int64(os.Getpagesize())
}

// number reads a file that holds one number; anything else ("max") is 0.
func number(root fs.FS, file string) int64 {
	text, _ := fs.ReadFile(root, file)
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n
}

// field returns the text after name, of the line that starts with it.
func field(text []byte, name string) string {
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
