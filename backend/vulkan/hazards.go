// Which launches must wait for those before them: one that reads what an earlier one writes must see it, and one that writes what
// an earlier one reads or writes must come after it. Others may run side by side.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

import (
	"slices"

	"github.com/spmmrun/spmm/backend"
)

// wait is what comes between a launch and those before it, as sv_launch says it.
type wait uint32

const (
	beside wait = iota // nothing
	after              // they are done: caches stay as they are, which is half a microsecond to one less on an H200
	seeing             // and what they wrote is seen
)

// stretch is the addresses of a buffer: from one on, up to another.
type stretch struct{ from, to uint64 }

// in tells whether the buffer shares addresses with one of others.
func (s stretch) in(others []stretch) bool {
	for _, t := range others {
		if s.from < t.to && t.from < s.to {
			return true
		}
	}
	return false
}

// hazards is what launches read and write.
type hazards struct {
	reads, writes []stretch // of those since the last wait
	unseen        []stretch // written since the last wait that makes writes seen
	launches      int       // since the last wait
}

// At most so many launches run side by side, and so many buffers are unseen, so that looking at all of them stays short.
const mostBeside, mostUnseen = 16, 64

// reset forgets all launches: the next sees what they wrote.
func (h *hazards) reset() {
	h.reads, h.writes, h.unseen, h.launches = h.reads[:0], h.writes[:0], h.unseen[:0], 0
}

// add adds a checked launch and tells what must come before it.
func (h *hazards) add(l *backend.Launch) (before wait) {
	readOnly := l.Kernel.(*kernel).bin.ReadOnly
	written := ^(readOnly | l.Unwritten)
	if h.launches == mostBeside {
		before = after
	}
	for i, a := range l.Args {
		s := a.(*buffer).stretch()
		switch {
		case l.Unread>>i&1 == 0 && s.in(h.unseen):
			before = seeing
		case written>>i&1 != 0 && (s.in(h.reads) || s.in(h.writes)):
			before = max(before, after)
		}
	}
	switch {
	case before == seeing || len(h.unseen) > mostUnseen:
		before = seeing
		h.reset()
	case before == after:
		h.reads, h.writes, h.launches = h.reads[:0], h.writes[:0], 0
	}
	h.launches++
	for i, a := range l.Args {
		s := a.(*buffer).stretch()
		if l.Unread>>i&1 == 0 {
			h.reads = append(h.reads, s)
		}
		if written>>i&1 != 0 {
			h.writes = append(h.writes, s)
			if !slices.Contains(h.unseen, s) {
				h.unseen = append(h.unseen, s)
			}
		}
	}
	return before
}

// stretch is what of the device's memory the buffer has.
func (b *buffer) stretch() stretch { return stretch{b.address(), b.address() + uint64(b.size)} }
