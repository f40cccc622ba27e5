// Cases through two devices: each plan and product of package spmm is one of both, which share it.

package conformance

import (
	"hash/fnv"
	"io"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
)

// grouping is another device that takes part in every product, and which way it is split.
type grouping struct {
	other backend.Device
	split spmm.Split
	every uint32 // one case of this number runs; 0: all
}

// forGroup returns the cases that two devices run: those that go to a kernel's table go through package spmm, too.
func (g *grouping) forGroup(tests []test) []test {
	var out []test
	seen := map[string]bool{}
	for _, t := range tests {
		if t.path == direct && t.class == Reproducible || t.layout.sampled != "" {
			continue // kernel rfx is run by itself, and one device samples
		}
		if t.path == direct {
			t.path = host
		}
		h := fnv.New32a()
		io.WriteString(h, t.id())
		if id := t.id(); !seen[id] && (g.every == 0 || h.Sum32()%g.every == 0) {
			seen[id] = true
			out = append(out, t)
		}
	}
	return out
}
