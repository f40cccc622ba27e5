// Control groups of both versions, nested, and mounted in parts as containers have them.

package memory

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestGroups(t *testing.T) {
	const v2, v1 = "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw,nsdelegate\n", "32 31 0:35 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	for name, tt := range map[string]struct {
		files map[string]string
		want  []group
	}{
		"none": {nil, nil},
		"version 2, nested": {map[string]string{
			"proc/self/cgroup":                          "0::/a.slice/b.scope\n",
			"proc/self/mountinfo":                       "22 1 8:1 / / rw - ext4 /dev/sda rw\n" + v2,
			"sys/fs/cgroup/a.slice/memory.max":          "1000\n",
			"sys/fs/cgroup/a.slice/memory.current":      "900\n",
			"sys/fs/cgroup/a.slice/memory.stat":         "anon 7\ninactive_file 300\n",
			"sys/fs/cgroup/a.slice/b.scope/memory.max":  "max\n",
			"sys/fs/cgroup/a.slice/other.scope/mem.max": "10\n",
		}, []group{{1000, 600}}},
		"version 2, both bounded": {map[string]string{
			"proc/self/cgroup":                   "0::/a/b\n",
			"proc/self/mountinfo":                v2,
			"sys/fs/cgroup/a/memory.max":         "1000\n",
			"sys/fs/cgroup/a/memory.current":     "900\n",
			"sys/fs/cgroup/a/b/memory.max":       "500\n",
			"sys/fs/cgroup/a/b/memory.current":   "20\n",
			"sys/fs/cgroup/a/b/memory.stat":      "inactive_file 5\n",
			"sys/fs/cgroup/a/b/c/memory.max":     "1\n",
			"sys/fs/cgroup/a/b/c/memory.current": "1\n",
		}, []group{{500, 15}, {1000, 900}}},
		"version 2, a namespace's top": {map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/memory.max": "70\n", "sys/fs/cgroup/memory.current": "1\n",
		}, []group{{70, 1}}},
		"version 1": {map[string]string{
			"proc/self/cgroup":                               "9:cpu:/\n4:hugetlb,memory:/x/y\n0::/\n",
			"proc/self/mountinfo":                            "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" + v1,
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     "9223372036854771712\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes":   "800\n",
			"sys/fs/cgroup/memory/x/memory.usage_in_bytes":   "300\n",
			"sys/fs/cgroup/memory/x/memory.stat":             "inactive_file 1\ntotal_inactive_file 100\n",
			"sys/fs/cgroup/memory/x/y/memory.limit_in_bytes": "9223372036854771712\n",
		}, []group{{800, 200}}},
		"version 1, a container's part": {map[string]string{
			"proc/self/cgroup":                           "4:memory:/docker/abc/z\n",
			"proc/self/mountinfo":                        "32 31 0:35 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "90\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "9\n",
			"sys/fs/cgroup/memory/z/memory.limit_in_bytes": "50\n", "sys/fs/cgroup/memory/z/memory.usage_in_bytes": "5\n",
		}, []group{{50, 5}, {90, 9}}},
		"beside what is mounted": {map[string]string{
			"proc/self/cgroup":         "0::/mine2/x\n",
			"proc/self/mountinfo":      "30 20 0:26 /mine /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
			"sys/fs/cgroup/memory.max": "70\n", "sys/fs/cgroup/memory.current": "1\n",
		}, []group{{70, 1}}},
		"outside of what is mounted": {map[string]string{
			"proc/self/cgroup":         "0::/../other\n",
			"proc/self/mountinfo":      "30 20 0:26 /mine /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
			"sys/fs/cgroup/memory.max": "70\n", "sys/fs/cgroup/memory.current": "1\n",
		}, []group{{70, 1}}},
	} {
		root := fstest.MapFS{}
		for file, text := range tt.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := groups(root); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	root := fstest.MapFS{
		"proc/meminfo":    {Data: []byte("MemTotal:       16 kB\nMemAvailable:  3 kB\n")},
		"proc/self/statm": {Data: []byte("2 1 1 0 0 0 0\n")},
	}
	if got := meminfo(root, "MemAvailable"); got != 3072 {
		t.Errorf("%d bytes available", got)
	}
	if got := addressed(root); got < 2*4096 {
		t.Errorf("%d bytes of address space", got)
	}
}
