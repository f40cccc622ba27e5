// Which launches must wait for those before them: one that reads what an earlier one writes must see it, and one that
// writes what an earlier one reads or writes must come after it. Others may run side by side.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

import (
	"slices"

	"github.com/spmmrun/spmm/backend"
)

// dependency is how a launch depends on those before it, as sv_launch's wait says it.
type dependency uint32

const (
	independent dependency = iota
	execution              // they are done: caches stay as they are, which is half a microsecond to one less on an H200
	memory                 // and what they wrote is visible
)

// addresses are those of a buffer: from one on, up to another.
type addresses struct{ from, to uint64 }

// overlap reports whether the buffer shares addresses with one of others.
func (s addresses) overlap(others []addresses) bool {
	for _, t := range others {
		if s.from < t.to && t.from < s.to {
			return true
		}
	}
	return false
}

// hazards records what launches read and write.
type hazards struct {
	reads, writes []addresses // of those since the last dependency
	invisible     []addresses // written since the last memory dependency
	launches      int         // since the last dependency
}

// These bound the launches that run side by side and the invisible buffers, so that looking at all of them stays short.
const mostBeside, mostInvisible = 16, 64

// reset forgets all launches: what they wrote is visible to the next.
func (h *hazards) reset() {
	h.reads, h.writes, h.invisible, h.launches = h.reads[:0], h.writes[:0], h.invisible[:0], 0
}

// add adds a checked launch and returns how it depends on those before it.
func (h *hazards) add(l *backend.Launch) dependency {
	written := ^(l.Kernel.(*kernel).bin.ReadOnly | l.Unwritten)
	d := h.dependency(l, written)
	switch d {
	case memory:
		h.reset()
	case execution:
		h.reads, h.writes, h.launches = h.reads[:0], h.writes[:0], 0
	}
	h.launches++
	for i, a := range l.Args {
		s := a.(*buffer).addresses()
		if l.Unread>>i&1 == 0 {
			h.reads = append(h.reads, s)
		}
		if written>>i&1 != 0 {
			h.writes = append(h.writes, s)
			if !slices.Contains(h.invisible, s) {
				h.invisible = append(h.invisible, s)
			}
		}
	}
	return d
}

// dependency returns how a launch that writes these arguments depends on those that were added.
func (h *hazards) dependency(l *backend.Launch, written uint32) dependency {
	if len(h.invisible) > mostInvisible {
		return memory
	}
	d := independent
	if h.launches == mostBeside {
		d = execution
	}
	for i, a := range l.Args {
		s := a.(*buffer).addresses()
		switch {
		case l.Unread>>i&1 == 0 && s.overlap(h.invisible):
			return memory
		case written>>i&1 != 0 && (s.overlap(h.reads) || s.overlap(h.writes)):
			d = execution
		}
	}
	return d
}

// addresses are those of the device's memory that the buffer has.
func (b *buffer) addresses() addresses { return addresses{b.address(), b.address() + uint64(b.size)} }
