// The two ways to multiply, behind one interface: fast, and reproducible (reproducible.go).

package plan

import (
	"cmp"
	"context"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/resident"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/values"
	"github.com/spmmrun/spmm/shaders/spec"
)

// executor multiplies with a plan's matrix. Its methods are called with the plan locked.
type executor interface {
	// Prepare readies the executor for b and returns the resident matrix.
	Prepare(ctx context.Context, l *launch.Launcher, b *tensor.Tensor) (*resident.Matrix, error)
	// Recordable returns why a product cannot be recorded before B is known, nil if it can.
	Recordable() error
	// Takes refuses types of operands, or an epilogue, that the executor cannot multiply with.
	Takes(q launch.Product) error
	// Columns adds the launches that compute block j of C's columns.
	Columns(w *launch.Composer, j int) error
	// Operands returns the most bytes that an element of B and of C takes on its way, and the type in which the kernel
	// writes C.
	Operands(b, c tensor.Shape) (in, out int, written dtype.Type)
	// Check refuses n columns at once, C being written as out, where that exceeds a limit of the device.
	Check(n int, out dtype.Type) error
	// Work returns what a multiplication by n columns moves and computes, C having elements of type out, and the
	// variant that does it.
	Work(n int, out dtype.Type) (*spec.Variant, model.Work)
	// SetTensor makes the elements of v, NNZ of them in the order of given, those of the matrix's entries. It repeats
	// this times times, for benchmarks. After an error some values may be the old ones.
	SetTensor(ctx context.Context, g *values.Given, v *tensor.Tensor, times int) (backend.Timing, error)
	// SetHost is SetTensor for values in the host's memory, once.
	SetHost(ctx context.Context, g *values.Given, v values.Host) error
	// SetLaunches returns the launches of SetTensor. They hold as long as the plan and the tensor are open.
	SetLaunches(ctx context.Context, g *values.Given, v *tensor.Tensor) ([]backend.Launch, error)
	// Reproduced returns the precision of the last multiplication and whether it was found to lose nothing; 0 and
	// false before the first, and in fast mode.
	Reproduced() (bits rfx.P, lossless bool)
	// Close frees what the executor holds on the device.
	Close() error
}

// newFast multiplies with a matrix on the device in fast mode.
func newFast(m *resident.Matrix) executor { return &fast{Matrix: m, setter: values.NewSetter(m)} }

// fast sums in f32, or data of f64 in f64, in the order of the kernel of the matrix's format.
type fast struct {
	*resident.Matrix
	setter values.Setter
}

func (f *fast) SetTensor(ctx context.Context, g *values.Given, v *tensor.Tensor, times int) (backend.Timing, error) {
	return f.setter.SetTensor(ctx, g, v, times)
}

func (f *fast) SetHost(ctx context.Context, g *values.Given, v values.Host) error {
	return f.setter.SetHost(ctx, g, v)
}

func (f *fast) SetLaunches(ctx context.Context, g *values.Given, v *tensor.Tensor) ([]backend.Launch, error) {
	return f.setter.SetLaunches(ctx, g, v)
}

func (f *fast) Close() error { return cmp.Or(f.setter.Close(), f.Matrix.Close()) }

func (f *fast) Prepare(context.Context, *launch.Launcher, *tensor.Tensor) (*resident.Matrix, error) {
	return f.Matrix, nil
}

func (f *fast) Recordable() error { return f.OnDevice() }

func (f *fast) Takes(launch.Product) error { return nil }

// Columns multiplies each part of the matrix by the block of B. Where the kernel cannot write C as it lies, it
// writes alpha·A·B to a staging buffer, and kernel densecopy adds beta·C and applies the epilogue.
func (f *fast) Columns(w *launch.Composer, j int) error {
	b, err := w.StageB(j)
	if err != nil {
		return err
	}
	for i := range f.Parts {
		c := w.C.Block(i, j)
		e, err := w.StageBias(i, j)
		if err != nil {
			return err
		}
		to, staged := w.Target(i, j)
		if !staged {
			if err := w.Multiply(i, j, w.Beta, e, c, b); err != nil {
				return err
			}
			continue
		}
		product := w.StagedC(to)
		if err := w.Multiply(i, j, 0, launch.Plain, product, b); err != nil {
			return err
		}
		if err := w.Dense(to, product, w.C.BlockLayout(i, j), c, w.Beta, e); err != nil {
			return err
		}
	}
	return nil
}

func (f *fast) Reproduced() (rfx.P, bool) { return 0, false }
