// The launches of a multiplication: composed once, then kept.

package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/shaders/densecopy"
	"github.com/spmmrun/spmm/shaders/spec"
)

// product is C = alpha·A·B + beta·C with an epilogue for tensors, some times in a row.
type product struct {
	b, c        *tensor.Tensor
	bias        *tensor.Tensor // nil if the epilogue has none
	alpha, beta float64        // numbers of float32, unless sums are of f64
	epilogue    spec.Epilogue
	times       int
}

// key is all that the launches of a product depend on. Numbers are compared by their bits: −0 is not 0, and NaN
// is NaN.
type key struct {
	m           *resident
	b, c, bias  *tensor.Tensor
	alpha, beta uint64
	epilogue    spec.Epilogue
	times       int
}

func (q product) key(m *resident) key {
	return key{m, q.b, q.c, q.bias, math.Float64bits(q.alpha), math.Float64bits(q.beta), q.epilogue, q.times}
}

// launcher composes launches and keeps the last ones, with the buffers that they share.
type launcher struct {
	dev *device.Device
	// Staging of B, C and the bias, the kernel's workspace, and B in fixed point.
	b, c, bias, work, fixed shared

	kept []kept
	next int // which to replace next

	marks []mark // of the launches composed last

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
	marks    []mark
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

func newLauncher(d *device.Device) *launcher {
	return &launcher{
		dev: d, b: shared{what: "staging of B"}, c: shared{what: "staging of C"}, bias: shared{what: "staging of the bias"},
		work: shared{what: "workspace of the kernel"}, fixed: shared{what: "B in fixed point"},
	}
}

func (l *launcher) buffers() [5]*shared { return [...]*shared{&l.b, &l.c, &l.bias, &l.work, &l.fixed} }

// find returns the launches of a product if they are kept.
func (l *launcher) find(k key) (runList, bool) {
	for i := range l.kept {
		if l.kept[i].key == k {
			return l.kept[i].runList, true
		}
	}
	return runList{}, false
}

// keep remembers launches in place of those remembered longest.
func (l *launcher) keep(k key, w runList) {
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
func (l *launcher) compose(m *resident, q product, f func(*composer) error) ([]backend.Launch, error) {
	for {
		for _, s := range l.buffers() {
			s.need = 0
		}
		w := &composer{l: l, m: m, product: q}
		if err := f(w); err != nil {
			return nil, err
		}
		l.marks = w.marks
		if grown, err := l.grow(); err != nil || !grown {
			return w.launches, err
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
		if s.buf != nil {
			s.buf.Close()
			s.buf, s.size = nil, 0
		}
		if s.buf, err = l.dev.NewBuffer(s.need, s.what); err != nil {
			s.buf = nil
			return grown, err
		}
		s.size = s.need
	}
	return grown, nil
}

// composer collects the launches of a product.
type composer struct {
	l *launcher
	m *resident
	product
	runList
}

// source is the layout that the kernel reads block j of B in, target the one it writes block (i, j) of C in; each
// is the block's own, or that of a staging buffer.
func (w *composer) source(j int) (l tensor.Layout, staged bool) {
	l = w.b.BlockLayout(0, j)
	if l.Loose && !(l.Tight && w.m.tight(l.Cols)) || w.m.staged(l.Type, l.ColMajor) {
		return tensor.NewLayout(l.Rows, l.Cols, w.m.operand, false), true
	}
	return l, false
}

func (w *composer) target(i, j int) (l tensor.Layout, staged bool) {
	l = w.c.BlockLayout(i, j)
	if l.Loose && !l.Tight || !w.m.direct(l.Type, l.ColMajor) {
		return tensor.NewLayout(l.Rows, l.Cols, w.m.variant.Sums(), false), true
	}
	return l, false
}

// stageB returns the buffer in which the kernel finds block j of B, and adds the launch that brings it there where
// that is not the tensor's own.
func (w *composer) stageB(j int) (backend.Buffer, error) {
	from, buf := w.b.BlockLayout(0, j), w.b.Block(0, j)
	to, staged := w.source(j)
	if !staged {
		return buf, nil
	}
	tmp := w.l.b.atLeast(to.Size())
	return tmp, w.dense(from, buf, to, tmp, 0, plain)
}

// stagedC returns the buffer for a block of C in a layout that is not the tensor's.
func (w *composer) stagedC(l tensor.Layout) backend.Buffer { return w.l.c.atLeast(l.Size()) }

// problem describes part i of A times block j of B to the kernel.
func (w *composer) problem(i, j int, beta float64, e spec.Epilogue) spec.Problem {
	from, _ := w.source(j)
	to, _ := w.target(i, j)
	return spec.Problem{
		M: to.Rows, K: from.Rows, N: to.Cols, LDB: from.LD, LDC: to.LD, BCol: from.ColMajor, CCol: to.ColMajor,
		Out: to.Type, Alpha: w.alpha, Beta: beta, Epilogue: e, Caps: w.l.dev.Caps(),
	}
}

// dense adds the launch that brings src into dst's order and type: dst = src + beta·dst, with an epilogue.
func (w *composer) dense(src tensor.Layout, sbuf backend.Buffer, dst tensor.Layout, dbuf backend.Buffer, beta float64, e biased) error {
	if src.Rows == 0 || src.Cols == 0 {
		return nil
	}
	return w.copy(sbuf, dbuf, e, densecopy.Op{
		Rows: src.Rows, Cols: src.Cols, Alpha: 1, Beta: beta, Epilogue: e.Epilogue,
		Src: densecopy.Layout{Type: src.Type, LD: src.LD, ColMajor: src.ColMajor},
		Dst: densecopy.Layout{Type: dst.Type, LD: dst.LD, ColMajor: dst.ColMajor},
	})
}

// copyVector adds the launch that copies n elements of a vector in src from number first on, which lie some elements
// apart, to dst, side by side as elements of type to.
func (w *composer) copyVector(src backend.Buffer, t dtype.Type, first, apart, n int, dst backend.Buffer, to dtype.Type) error {
	return w.copy(src, dst, plain, densecopy.Op{
		Rows: n, Cols: 1, Alpha: 1,
		Src: densecopy.Layout{Type: t, First: first * apart, LD: apart},
		Dst: densecopy.Layout{Type: to, LD: 1},
	})
}

// copy adds the launch of kernel densecopy.
func (w *composer) copy(src, dst backend.Buffer, e biased, op densecopy.Op) error {
	v, err := densecopy.Variant(w.l.dev.Caps(), op.Src.Type, op.Dst.Type)
	if err != nil {
		return err
	}
	l, err := densecopy.Launch(v, op)
	if err != nil {
		return err
	}
	return w.add(densecopy.Program, []backend.Buffer{src, e.or(src), dst}, l.Passes...)
}

// add appends passes of a kernel whose grids the device can hold.
func (w *composer) add(kern *spec.Program, args []backend.Buffer, passes ...spec.Pass) error {
	most := w.l.dev.Caps().MaxGroups
	for _, p := range passes {
		for i, g := range p.Groups {
			if most[i] > 0 && g > most[i] {
				return fmt.Errorf("kernel %s needs a grid of %v workgroups, %v allows %v: %w", kern.Name, p.Groups, w.l.dev.Info(), most, backend.ErrUnsupported)
			}
		}
		loaded, err := w.l.dev.Kernel(kern, p.Variant)
		if err != nil {
			return err
		}
		w.launches = append(w.launches, backend.Launch{Kernel: loaded, Groups: p.Groups, Args: args, Params: p.Params, Maps: p.Maps})
	}
	return nil
}
