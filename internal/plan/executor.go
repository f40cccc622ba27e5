// The two ways to multiply, behind one interface: fast, and reproducible (reproducible.go).

package plan

import (
	"context"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/shaders/spec"
)

// executor multiplies with a plan's matrix. Its methods are called with the plan locked.
type executor interface {
	// settle makes ready to multiply by b, and returns the matrix on the device that it multiplies with.
	settle(ctx context.Context, l *launcher, b *tensor.Tensor) (*resident, error)
	// recordable tells why a product cannot be recorded before B is known, if it cannot.
	recordable() error
	// takes refuses operands of types, and an epilogue, that cannot be multiplied with.
	takes(q product) error
	// columns adds the launches that compute block j of C's columns.
	columns(w *composer, j int) error
	// operands returns the bytes that an element of B and C takes at most on its way, and the type in which the kernel
	// writes C.
	operands(b, c tensor.Shape) (in, out int, written dtype.Type)
	// check refuses n columns at once, C being written as out, where that exceeds a limit of the device.
	check(n int, out dtype.Type) error
	// work counts what a multiplication by n columns moves and computes, C having elements of type out, and names the
	// variant that does it.
	work(n int, out dtype.Type) (*spec.Variant, model.Work)
	// setTensor and setHost make values, NNZ of them, those of the matrix's entries, in the order of given. After an
	// error some may be the old ones. It does so a number of times.
	setTensor(ctx context.Context, l *launcher, g *given, values *tensor.Tensor, times int) (backend.Timing, error)
	setHost(ctx context.Context, l *launcher, g *given, values Values) error
	// settings returns launches that do what setTensor does. They hold as long as the plan and the tensor are open.
	settings(ctx context.Context, l *launcher, g *given, values *tensor.Tensor) ([]backend.Launch, error)
	// reproduced returns the precision of the last multiplication and whether it was found to lose nothing; 0 and
	// false before the first, and in fast mode.
	reproduced() (bits rfx.P, lossless bool)
	// close frees what the executor holds on the device.
	close() error
}

// newFast multiplies with a matrix on the device in fast mode.
func newFast(m *resident) executor { return fast{m} }

// fast sums in f32, or data of f64 in f64, in the order of the kernel of the matrix's format.
type fast struct{ *resident }

func (f fast) settle(context.Context, *launcher, *tensor.Tensor) (*resident, error) {
	return f.resident, nil
}

func (f fast) recordable() error { return f.onDevice() }

func (f fast) takes(product) error { return nil }

// columns multiplies each part of the matrix by the block of B. Where the kernel cannot write C as it lies, it
// writes alpha·A·B to a staging buffer, and kernel densecopy adds beta·C and applies the epilogue.
func (f fast) columns(w *composer, j int) error {
	b, err := w.stageB(j)
	if err != nil {
		return err
	}
	for i := range f.parts {
		c := w.c.Block(i, j)
		e, err := w.stageBias(i, j)
		if err != nil {
			return err
		}
		to, staged := w.target(i, j)
		if !staged {
			if err := w.multiply(i, j, w.beta, e, c, b); err != nil {
				return err
			}
			continue
		}
		product := w.stagedC(to)
		if err := w.multiply(i, j, 0, plain, product, b); err != nil {
			return err
		}
		if err := w.dense(to, product, w.c.BlockLayout(i, j), c, w.beta, e); err != nil {
			return err
		}
	}
	return nil
}

func (f fast) reproduced() (rfx.P, bool) { return 0, false }

// multiply adds the launches of part i of A times block j of B, which b holds in every form that the kernel takes:
// c = alpha·A·B + beta·c, with an epilogue.
func (w *composer) multiply(i, j int, beta float64, e biased, c backend.Buffer, b ...backend.Buffer) error {
	l, err := w.m.launch(i, w.problem(i, j, beta, e.Epilogue))
	if err != nil {
		return err
	}
	if w.m.stream != nil {
		w.marks = append(w.marks, mark{len(w.launches), i})
	}
	args := slices.Concat(w.m.parts[i].bufs, b, []backend.Buffer{e.or(b[0]), c})
	if l.Workspace > 0 {
		args = append(args, w.l.work.atLeast(l.Workspace))
	}
	first := len(w.launches)
	if err := w.add(w.m.kern.Program, args, l.Passes...); err != nil {
		return err
	}
	unread, unwritten := uint32(0), uint32(0)
	if beta == 0 {
		unread = 1 << w.m.kern.Arg("c")
	}
	if l.Workspace == spec.NoWorkspace {
		unwritten = 1 << (len(args) - 1)
	}
	for i := range w.launches[first:] {
		w.launches[first+i].Unread, w.launches[first+i].Unwritten = unread|unwritten, unwritten
	}
	return nil
}
