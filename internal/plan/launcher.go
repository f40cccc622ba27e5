// Package launch composes the launches of a product, and keeps them.
//
// A Composer decides how B, C and the bias reach the kernel: as they lie, or through staging buffers that kernel densecopy
// fills. A Launcher keeps the launches of the last products, so that the same product again costs microseconds and
// allocates nothing, and the buffers that they share.
package plan

import (
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/resident"
	"github.com/spmmrun/spmm/internal/stream"
	"github.com/spmmrun/spmm/internal/tensor"
)

// launcher composes launches and keeps the last ones, with the buffers that they share.
type launcher struct {
	dev *device.Device
	// Staging of B, C and the bias, the kernel's workspace, and B in fixed point.
	b, c, bias, work, fixed shared

	kept []kept
	next int // which to replace next

	replaced int // how often a shared buffer was: launches composed before may hold one that is closed
}

// kept are the launches of a product.
type kept struct {
	key
	runList
}

// runList is the launches of a product, and where those begin that read a panel which is not on the device.
type runList struct {
	launches []backend.Launch
	marks    []stream.Mark
}

// keptProducts is how many products a plan keeps the launches of.
const keptProducts = 8

// shared is a buffer that several products use, as large as the largest need so far.
type shared struct {
	what string
	buf  backend.Buffer
	size int64
	need int64 // of the launches that are being composed
}

// atLeast returns the buffer, which has that many bytes once all launches are composed.
func (s *shared) atLeast(bytes int64) backend.Buffer {
	s.need = max(s.need, bytes, 4)
	return s.buf
}

// make makes the buffer at least that large now.
func (s *shared) make(d *device.Device, bytes int64) (err error) {
	if s.size >= bytes {
		return nil
	}
	if s.buf != nil {
		s.buf.Close()
		s.buf, s.size = nil, 0
	}
	if s.buf, err = d.NewBuffer(bytes, s.what); err != nil {
		s.buf = nil
		return err
	}
	s.size = bytes
	return nil
}

func newLauncher(d *device.Device) *launcher {
	return &launcher{
		dev: d, b: shared{what: "staging of B"}, c: shared{what: "staging of C"}, bias: shared{what: "staging of the bias"},
		work: shared{what: "workspace of the kernel"}, fixed: shared{what: "B in fixed point"},
	}
}

func (l *launcher) buffers() [5]*shared { return [...]*shared{&l.b, &l.c, &l.bias, &l.work, &l.fixed} }

// find returns the launches of a product if they are kept.
func (l *launcher) find(m *resident.Matrix, q product) (runList, bool) {
	k := q.key(m)
	for i := range l.kept {
		if l.kept[i].key == k {
			return l.kept[i].runList, true
		}
	}
	return runList{}, false
}

// keep remembers the launches of a product in place of those remembered longest.
func (l *launcher) keep(m *resident.Matrix, q product, w runList) {
	k := q.key(m)
	if len(l.kept) < keptProducts {
		l.kept = append(l.kept, kept{k, w})
		return
	}
	l.kept[l.next] = kept{k, w}
	l.next = (l.next + 1) % keptProducts
}

// forget drops the launches with a tensor, which is about to be closed.
func (l *launcher) forget(t *tensor.Tensor) {
	l.kept = slices.DeleteFunc(l.kept, func(k kept) bool { return k.b == t || k.c == t || k.bias == t })
	l.next = 0
}

// fixedPoint returns the buffer that holds B in fixed point; nil if there is none.
func (l *launcher) fixedPoint() backend.Buffer { return l.fixed.buf }

// close drops all launches and frees the buffers.
func (l *launcher) close() {
	l.kept, l.next = nil, 0
	for _, s := range l.buffers() {
		if s.buf != nil {
			s.buf.Close()
		}
		*s = shared{what: s.what}
	}
}

// compose returns the launches that f adds. Where f needs larger shared buffers than there are, these are made, and
// it is called again.
func (l *launcher) compose(m *resident.Matrix, q product, f func(*composer) error) (runList, error) {
	for {
		for _, s := range l.buffers() {
			s.need = 0
		}
		w := &composer{l: l, m: m, product: q}
		if err := f(w); err != nil {
			return runList{}, err
		}
		if grown, err := l.grow(); err != nil || !grown {
			return w.runList, err
		}
	}
}

// grow makes the shared buffers as large as they are needed. Launches composed before may hold a buffer that is
// replaced, so they are dropped.
func (l *launcher) grow() (grown bool, err error) {
	for _, s := range l.buffers() {
		if s.need <= s.size {
			continue
		}
		grown = true
		l.replaced++
		l.kept, l.next = nil, 0
		if err := s.make(l.dev, s.need); err != nil {
			return grown, err
		}
	}
	return grown, nil
}
