// Package launch composes the launches of a product, and keeps them.
//
// A Composer decides how B, C and the bias reach the kernel: as they lie, or through staging buffers that kernel
// densecopy fills. A Launcher keeps the launches of the last products, so that the same product again costs
// microseconds and allocates nothing, and the buffers that they share.
package launch

import (
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/resident"
	"github.com/spmmrun/spmm/internal/stream"
	"github.com/spmmrun/spmm/internal/tensor"
)

// Launcher composes launches and keeps the last ones, with the buffers that they share.
type Launcher struct {
	dev *device.Device
	// Staging of B, C and the bias, the kernel's workspace, and B in fixed point.
	b, c, bias, work, fixed Shared

	kept []kept
	next int // which to replace next

	keeps bool             // buffers that are replaced are kept, for launches that may still run or be captured
	old   []backend.Buffer // which were replaced

	Replaced int // how often a shared buffer was: launches composed before may hold one that is closed
}

// kept are the launches of a product.
type kept struct {
	key
	RunList
}

// RunList is the launches of a product, and where those begin that read a panel which is not on the device.
type RunList struct {
	Launches []backend.Launch
	Marks    []stream.Mark
}

// keptProducts is how many products a plan keeps the launches of.
const keptProducts = 8

// Shared is a buffer that several products use, as large as the largest need so far.
type Shared struct {
	What   string
	Buffer backend.Buffer
	size   int64
	need   int64 // of the launches that are being composed
}

// atLeast returns the buffer, which has that many bytes once all launches are composed.
func (s *Shared) atLeast(bytes int64) backend.Buffer {
	s.need = max(s.need, bytes, 4)
	return s.Buffer
}

// Make makes the buffer at least that large now.
func (s *Shared) Make(d *device.Device, bytes int64) (err error) {
	if s.size >= bytes {
		return nil
	}
	s.close()
	if s.Buffer, err = d.NewBuffer(bytes, s.What); err != nil {
		s.Buffer = nil
		return err
	}
	s.size = bytes
	return nil
}

// Replace makes a larger buffer if it is needed, and returns the one before, which launches may still use.
func (s *Shared) Replace(d *device.Device, bytes int64) (old backend.Buffer, err error) {
	if s.Buffer == nil || s.size >= bytes {
		return nil, s.Make(d, bytes)
	}
	old, s.Buffer, s.size = s.Buffer, nil, 0
	return old, s.Make(d, bytes)
}

func (s *Shared) close() {
	if s.Buffer != nil {
		s.Buffer.Close()
		s.Buffer, s.size = nil, 0
	}
}

// NewKept makes a launcher whose launches may be in a stream, or in a graph, at any time: buffers stay until Close.
// Each buffer is at least twice as large as the one that it replaces.
func NewKept(d *device.Device) *Launcher {
	l := New(d)
	l.keeps = true
	return l
}

func New(d *device.Device) *Launcher {
	return &Launcher{
		dev: d, b: Shared{What: "staging of B"}, c: Shared{What: "staging of C"}, bias: Shared{What: "staging of the bias"},
		work: Shared{What: "workspace of the kernel"}, fixed: Shared{What: "B in fixed point"},
	}
}

func (l *Launcher) buffers() [5]*Shared { return [...]*Shared{&l.b, &l.c, &l.bias, &l.work, &l.fixed} }

// Find returns the launches of a product if they are kept.
func (l *Launcher) Find(m *resident.Matrix, q Product) (RunList, bool) {
	k := q.key(m)
	for i := range l.kept {
		if l.kept[i].key == k {
			return l.kept[i].RunList, true
		}
	}
	return RunList{}, false
}

// Keep remembers the launches of a product in place of those remembered longest.
func (l *Launcher) Keep(m *resident.Matrix, q Product, w RunList) {
	k := q.key(m)
	if len(l.kept) < keptProducts {
		l.kept = append(l.kept, kept{k, w})
		return
	}
	l.kept[l.next] = kept{k, w}
	l.next = (l.next + 1) % keptProducts
}

// Forget drops the launches with a tensor, which is about to be closed.
func (l *Launcher) Forget(t *tensor.Tensor) {
	l.kept = slices.DeleteFunc(l.kept, func(k kept) bool { return k.b == t || k.c == t || k.bias == t })
	l.next = 0
}

// FixedPoint returns the buffer that holds B in fixed point; nil if there is none.
func (l *Launcher) FixedPoint() backend.Buffer { return l.fixed.Buffer }

// Close drops all launches and frees the buffers.
func (l *Launcher) Close() {
	l.kept, l.next = nil, 0
	for _, s := range l.buffers() {
		s.close()
		*s = Shared{What: s.What}
	}
	for _, b := range l.old {
		b.Close()
	}
	l.old = nil
}

// Compose returns the launches that f adds. Where f needs larger shared buffers than there are, these are made, and
// it is called again.
func (l *Launcher) Compose(m *resident.Matrix, q Product, f func(*Composer) error) (RunList, error) {
	for {
		for _, s := range l.buffers() {
			s.need = 0
		}
		w := &Composer{l: l, m: m, Product: q}
		if err := f(w); err != nil {
			return RunList{}, err
		}
		if grown, err := l.grow(); err != nil || !grown {
			return w.RunList, err
		}
	}
}

// grow makes the shared buffers as large as they are needed. Launches composed before may hold a buffer that is
// replaced, so they are dropped.
func (l *Launcher) grow() (grown bool, err error) {
	for _, s := range l.buffers() {
		if s.need <= s.size {
			continue
		}
		grown = true
		l.Replaced++
		l.kept, l.next = nil, 0
		if l.keeps && s.Buffer != nil {
			l.old = append(l.old, s.Buffer)
			s.need = min(max(s.need, 2*s.size), l.dev.Limit())
			s.Buffer, s.size = nil, 0
		}
		if err := s.Make(l.dev, s.need); err != nil {
			return grown, err
		}
	}
	return grown, nil
}
