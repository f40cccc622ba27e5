// Composing the launches of one product.

package launch

import (
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/resident"
	"github.com/spmmrun/spmm/internal/stream"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/shaders/densecopy"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Composer collects the launches of a product.
type Composer struct {
	l *Launcher
	m *resident.Matrix
	Product
	RunList
}

// Source returns the layout in which the kernel reads block j of B: the block's own, or that of a staging buffer.
func (w *Composer) Source(j int) (l tensor.Layout, staged bool) {
	x := w.layouts(0, j)
	return x.b, x.bStaged
}

// Target returns the layout in which the kernel writes block (i, j) of C: the block's own, or that of a staging buffer.
func (w *Composer) Target(i, j int) (l tensor.Layout, staged bool) {
	x := w.layouts(i, j)
	return x.c, x.cStaged
}

// layouts are those of a block of B and of C as the kernel has them.
type layouts struct {
	b, c             tensor.Layout
	bStaged, cStaged bool
}

// layouts returns the layouts of block j of B and block (i, j) of C: their own where the kernel takes them so.
func (w *Composer) layouts(i, j int) layouts {
	x := layouts{b: w.B.BlockLayout(0, j)}
	if w.C != nil { // else B alone is read
		x.c = w.C.BlockLayout(i, j)
	}
	n := x.b.Cols
	if n == 1 {
		x.vectors(w.m, w.l.dev.Caps().Code)
	}
	x.bStaged = x.b.Loose && !(x.b.Tight && w.m.Tight(n)) || !w.m.Reads(x.b.Type)
	x.cStaged = x.c.Loose && !x.c.Tight || !w.m.Writes(x.c.Type)
	bCol, cCol := w.m.Orders(n, x.b.ColMajor && !x.bStaged, x.c.ColMajor && !x.cStaged)
	if x.bStaged = x.bStaged || bCol != x.b.ColMajor; x.bStaged {
		x.b = tensor.NewLayout(x.b.Rows, n, w.m.Operand, false)
	}
	if x.cStaged = x.cStaged || cCol != x.c.ColMajor; x.cStaged {
		x.c = tensor.NewLayout(x.c.Rows, n, w.m.Variant.Sums(), false)
	}
	return x
}

// vectors describes a B and a C of one column in the order that the kernel takes. Kernels for Vulkan and WebGPU write
// elements of 16 bits in pairs, which rows side by side do not have.
func (x *layouts) vectors(m *resident.Matrix, code backend.Code) {
	cols, _ := m.Orders(1, true, true)
	x.b = x.b.InOrder(cols, m.Tight(1))
	x.c = x.c.InOrder(cols, x.c.Type.Size() >= 4 || code == backend.CodePTX || code == backend.CodeGo)
}

// StageB returns the buffer in which the kernel finds block j of B. Where that is not the tensor's own, it adds the
// launch that fills it.
func (w *Composer) StageB(j int) (backend.Buffer, error) {
	from, buf := w.B.BlockLayout(0, j), w.B.Block(0, j)
	to, staged := w.Source(j)
	if !staged {
		return buf, nil
	}
	tmp := w.l.b.atLeast(to.Size())
	return tmp, w.Dense(from, buf, to, tmp, 0, Plain)
}

// StagedC returns the buffer for a block of C in a layout that is not the tensor's.
func (w *Composer) StagedC(l tensor.Layout) backend.Buffer { return w.l.c.atLeast(l.Size()) }

// Fixed returns the buffer for B in fixed point.
func (w *Composer) Fixed(bytes int64) backend.Buffer { return w.l.fixed.atLeast(bytes) }

// problem describes part i of A times block j of B to the kernel.
func (w *Composer) problem(i, j int, beta float64, e spec.Epilogue) spec.Problem {
	from, _ := w.Source(j)
	to, _ := w.Target(i, j)
	return spec.Problem{
		M: to.Rows, K: from.Rows, N: to.Cols, LDB: from.LD, LDC: to.LD, BCol: from.ColMajor, CCol: to.ColMajor,
		Out: to.Type, Alpha: w.Alpha, Beta: beta, Epilogue: e, Caps: w.l.dev.Caps(),
	}
}

// Dense adds the launch that brings src into dst's order and type: dst = src + beta·dst, with an epilogue.
func (w *Composer) Dense(src tensor.Layout, sbuf backend.Buffer, dst tensor.Layout, dbuf backend.Buffer, beta float64,
	e biased) error {
	if src.Rows == 0 || src.Cols == 0 {
		return nil
	}
	return w.copy(sbuf, dbuf, e, densecopy.Op{
		Rows: src.Rows, Cols: src.Cols, Alpha: 1, Beta: beta, Epilogue: e.Epilogue,
		Src: densecopy.Layout{Type: src.Type, LD: src.LD, First: src.First, ColMajor: src.ColMajor,
			Aligned: !src.Loose && src.First == 0},
		Dst: densecopy.Layout{Type: dst.Type, LD: dst.LD, ColMajor: dst.ColMajor, Aligned: !dst.Loose},
	})
}

// copyVector adds the launch that copies n elements of a vector in src from its element first on, which lie some
// elements apart, to dst, side by side as elements of type to.
func (w *Composer) copyVector(src backend.Buffer, t dtype.Type, first, apart, n int, dst backend.Buffer,
	to dtype.Type) error {
	return w.copy(src, dst, Plain, densecopy.Op{
		Rows: n, Cols: 1, Alpha: 1,
		Src: densecopy.Layout{Type: t, First: first, LD: apart},
		Dst: densecopy.Layout{Type: to, LD: 1},
	})
}

// copy adds the launch of kernel densecopy.
func (w *Composer) copy(src, dst backend.Buffer, e biased, op densecopy.Op) error {
	v, err := densecopy.Suited(w.l.dev.Caps(), op)
	if err != nil {
		return err
	}
	l, err := densecopy.Launch(v, op)
	if err != nil {
		return err
	}
	return w.Add(densecopy.Program, []backend.Buffer{src, e.or(src), dst}, l.Passes...)
}

// Add appends passes of a kernel.
func (w *Composer) Add(kern *spec.Program, args []backend.Buffer, passes ...spec.Pass) (err error) {
	w.Launches, err = appendPasses(w.Launches, w.l.dev, kern, args, passes)
	return err
}

// Passes returns the launches of a kernel's passes. A grid that the device cannot hold is backend.ErrUnsupported.
func Passes(d *device.Device, kern *spec.Program, args []backend.Buffer, passes []spec.Pass) ([]backend.Launch, error) {
	return appendPasses(nil, d, kern, args, passes)
}

func appendPasses(to []backend.Launch, d *device.Device, kern *spec.Program, args []backend.Buffer,
	passes []spec.Pass) ([]backend.Launch, error) {
	most := d.Caps().MaxGroups
	for _, p := range passes {
		for i, g := range p.Groups {
			if most[i] > 0 && g > most[i] {
				return to, fmt.Errorf("kernel %s needs a grid of %v workgroups, %v allows %v: %w", kern.Name, p.Groups, d.Info(),
					most, backend.ErrUnsupported)
			}
		}
		loaded, err := d.Kernel(kern, p.Variant)
		if err != nil {
			return to, err
		}
		to = append(to, backend.Launch{Kernel: loaded, Groups: p.Groups, Args: args, Params: p.Params, Maps: p.Maps})
	}
	return to, nil
}

// Multiply adds the launches of part i of A times block j of B, which b holds in every form that the kernel takes:
// c = alpha·A·B + beta·c, with an epilogue.
func (w *Composer) Multiply(i, j int, beta float64, e biased, c backend.Buffer, b ...backend.Buffer) error {
	l, err := w.m.Launch(i, w.problem(i, j, beta, e.Epilogue))
	if err != nil {
		return err
	}
	if w.m.Stream != nil {
		w.Marks = append(w.Marks, stream.Mark{At: len(w.Launches), Part: i})
	}
	args := slices.Concat(w.m.Parts[i].Buffers, b, []backend.Buffer{e.or(b[0]), c})
	if l.Workspace > 0 {
		args = append(args, w.l.work.atLeast(l.Workspace))
	}
	first := len(w.Launches)
	if err := w.Add(w.m.Kernel.Program, args, l.Passes...); err != nil {
		return err
	}
	unread, unwritten := uint32(0), uint32(0)
	if beta == 0 {
		unread = 1 << w.m.Kernel.Arg("c")
	}
	if l.Workspace == spec.NoWorkspace {
		unwritten = 1 << (len(args) - 1)
	}
	for i := range w.Launches[first:] {
		w.Launches[first+i].Unread, w.Launches[first+i].Unwritten = unread|unwritten, unwritten
	}
	return nil
}
