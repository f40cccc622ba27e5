// Package resident brings packed matrices onto a device.
//
// Place decides in how many ranges of rows a matrix is uploaded, by the limits of the device, and whether it stays in
// the host's memory, by the budget. A Matrix keeps the buffers, and answers for its kernel: which B and C the kernel
// takes as they lie, how it is launched, what a multiplication moves and computes.
package resident

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/stream"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/work"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Matrix is a sparse matrix on a device, packed for a variant.
type Matrix struct {
	Device     *device.Device
	Kernel     *spec.Format
	Variant    *spec.Variant // that parts are packed for
	Rows, Cols int
	Operand    dtype.Type // of B's elements as the kernel reads them
	Parts      []Part
	RowBlock   int // rows of each part but the last
	Stats      formats.Stats
	Fetched    int64          // rows of B that a multiplication fetches, see work.Distinct
	Stream     *stream.Stream // of panels that stay in the host's memory; nil: all of the matrix is on the device
}

// Part is a range of the matrix's rows, encoded and uploaded.
type Part struct {
	Data    *spec.Packed // without the arrays' data
	Buffers []backend.Buffer
}

// bring makes a matrix of parts of rowBlock rows each. It copies them to the device, unless a stream has them.
func bring(ctx context.Context, d *device.Device, e *work.Packed, parts []*spec.Packed, rowBlock int,
	s *stream.Stream) (*Matrix, error) {
	rows, cols := e.Matrix.Dims()
	m := &Matrix{
		Device: d, Kernel: e.Kernel, Variant: e.Variant, Rows: rows, Cols: cols, Operand: e.Matrix.Type(), RowBlock: rowBlock,
		Stream: s, Parts: make([]Part, len(parts)),
	}
	for i, p := range parts {
		m.Parts[i].Data = described(p)
		m.Stats = AddStats(m.Stats, p.Stats, e.Matrix.NNZ())
		if s != nil {
			m.Parts[i].Buffers = s.Set(i)
			continue
		}
		if err := m.Parts[i].upload(ctx, d, p); err != nil {
			m.Close()
			return nil, err
		}
		m.Parts[i].Data.Format = forValues(p.Format, e.Adopted && p == e.Data)
	}
	m.Fetched = model.Fetched(m.Stats, work.Distinct(e.Matrix.Encoded))
	return m, nil
}

// forValues returns what a plan keeps of a packed matrix in the host's memory, so that new values find their places:
// all but the values. A matrix of the caller's is copied.
func forValues(format any, callers bool) any {
	if f, ok := format.(interface{ WithoutValues() formats.Encoded }); ok {
		format = f.WithoutValues()
	}
	if f, ok := format.(formats.Encoded); ok && callers {
		return formats.Clone(f)
	}
	return format
}

// upload copies the part to the device. After an error too, its buffers must be closed.
func (pt *Part) upload(ctx context.Context, d *device.Device, e *spec.Packed) error {
	for _, a := range e.Arrays {
		b, err := work.Abandon(ctx, func() (backend.Buffer, error) {
			return d.NewBuffer(int64(len(a.Data)), "array "+a.Name+" of the matrix")
		}, func(b backend.Buffer) { b.Close() }) // large memory takes the CPU a second
		if err != nil {
			return err
		}
		pt.Buffers = append(pt.Buffers, b)
		if err := device.WriteChunks(ctx, b, a.Data); err != nil {
			return err
		}
	}
	return nil
}

// described returns what launches need to know of a packed matrix: all but the arrays.
func described(e *spec.Packed) *spec.Packed {
	return &spec.Packed{Rows: e.Rows, Cols: e.Cols, NNZ: e.NNZ, Stats: e.Stats, Items: e.Items, Format: e.Format,
		Work: e.Work}
}

// Rewrite packs a matrix of the same pattern as this one is packed, and replaces the arrays on the device.
func (m *Matrix) Rewrite(ctx context.Context, a formats.Sparse) error {
	parts, err := (&work.Packed{Kernel: m.Kernel, Variant: m.Variant, Matrix: work.NewMatrix(a)}).Ranges(ctx, m.RowBlock)
	if err != nil {
		return err
	}
	if len(parts) != len(m.Parts) {
		return fmt.Errorf("a matrix of %d row ranges in place of %d", len(parts), len(m.Parts))
	}
	for i, e := range parts {
		for j, array := range e.Arrays {
			if err := device.WriteChunks(ctx, m.Parts[i].Buffers[j], array.Data); err != nil {
				return err
			}
		}
	}
	return nil
}

// Repacked returns the same matrix packed anew, in the same ranges of rows. If this one is streamed they share buffers.
func (m *Matrix) Repacked(ctx context.Context, e *work.Packed) (*Matrix, error) {
	parts, err := e.Ranges(ctx, m.RowBlock)
	if err != nil {
		return nil, err
	}
	var s *stream.Stream
	if m.Stream != nil {
		if s, err = stream.New(ctx, m.Device, parts, m.Stream); err != nil {
			return nil, err
		}
	}
	return bring(ctx, m.Device, e, parts, m.RowBlock, s)
}

// AddStats returns the stats of two ranges of rows of a matrix with nnz entries together.
func AddStats(a, b formats.Stats, nnz int64) formats.Stats {
	a.StoredBytes += b.StoredBytes
	a.Slots += b.Slots
	a.MACs += b.MACs
	a.Gathers += b.Gathers
	a.Staged = b.Staged
	a.Longest, a.Cut = max(a.Longest, b.Longest), max(a.Cut, b.Cut)
	if a.Slots > 0 {
		a.Fill = float64(nnz) / float64(a.Slots)
	}
	return a
}

// OnDevice refuses a matrix that is not on the device.
func (m *Matrix) OnDevice() error {
	if m.Stream != nil {
		return fmt.Errorf("a matrix that stays in the host's memory, as GroupOptions.Memory requires: %w",
			backend.ErrUnsupported)
	}
	return nil
}

// Close frees the matrix on the device.
func (m *Matrix) Close() error {
	var errs []error
	if m.Stream != nil {
		errs = append(errs, m.Stream.Close())
	}
	for _, pt := range m.Parts {
		if m.Stream == nil {
			for _, b := range pt.Buffers {
				errs = append(errs, b.Close())
			}
		}
	}
	m.Parts = nil
	return cmp.Or(errs...)
}

// Reads tells whether kernels take a B of elements of this type, Writes whether they write a C of them.
func (m *Matrix) Reads(t dtype.Type) bool { return t == m.Operand }
func (m *Matrix) Writes(t dtype.Type) bool {
	return t == m.Variant.Sums() || slices.Contains(m.Variant.Out, t)
}

// Orders returns in which orders the kernels that multiply by n columns get a B and a C of these orders: row-major
// where they do not take them.
func (m *Matrix) Orders(n int, bCol, cCol bool) (b, c bool) {
	return spec.Orders(func(b, c bool) bool { return m.takes(n, b, c) }, bCol, cCol)
}

// takes tells whether the kernels that multiply by n columns take a B and a C of these orders.
func (m *Matrix) takes(n int, bCol, cCol bool) bool {
	for i := range m.Parts {
		if !m.runs(i, n, bCol, cCol).TakesOrders(n, bCol, cCol) {
			return false
		}
	}
	return len(m.Parts) > 0 || m.Variant.TakesOrders(n, bCol, cCol)
}

// Operands: what is staged takes the larger of two element sizes.
func (m *Matrix) Operands(b, c tensor.Shape) (in, out int, written dtype.Type) {
	in, out, written = b.Type.Size(), c.Type.Size(), c.Type
	bCol, cCol := m.Orders(b.Cols, b.ColMajor, c.ColMajor)
	if !m.Reads(b.Type) || bCol != b.ColMajor {
		in = max(in, m.Operand.Size())
	}
	if !m.Writes(c.Type) || cCol != c.ColMajor {
		sums := m.Variant.Sums()
		out, written = max(out, sums.Size()), sums
	}
	return in, out, written
}

// Launch asks the kernel how part i runs on a problem.
func (m *Matrix) Launch(i int, q spec.Problem) (spec.Launch, error) {
	data := m.Parts[i].Data
	return m.Kernel.Launch(m.Kernel.Runs(m.Variant, data, q), data, q)
}

// Check tells whether the kernel can multiply by n columns at once, within the device's limits.
func (m *Matrix) Check(n int, out dtype.Type) error {
	for i, pt := range m.Parts {
		l, err := m.Launch(i, spec.Problem{
			M: pt.Data.Rows, K: pt.Data.Cols, N: n, LDB: tensor.Up(n, tensor.Align), LDC: tensor.Up(n,
				tensor.Align), Out: out, Alpha: 1, Caps: m.Device.Caps(),
		})
		if err != nil {
			return err
		}
		if l.Workspace > m.Device.Limit() {
			return fmt.Errorf("the workspace for %d columns takes %d bytes, and a buffer of %v at most %d: %w",
				n, l.Workspace, m.Device.Info(), m.Device.Limit(), backend.ErrUnsupported)
		}
	}
	return nil
}

// Tight tells whether the kernel takes n columns of B whose rows lie side by side.
func (m *Matrix) Tight(n int) bool {
	for i := range m.Parts {
		if !m.Runs(i, n).Tight {
			return false
		}
	}
	return len(m.Parts) > 0
}

// Runs returns the variant that multiplies part i by n columns.
func (m *Matrix) Runs(i, n int) *spec.Variant { return m.runs(i, n, false, false) }

// runs is Runs for a B and a C of these orders.
func (m *Matrix) runs(i, n int, bCol, cCol bool) *spec.Variant {
	if i >= len(m.Parts) {
		return m.Variant
	}
	q := spec.Problem{M: m.Rows, K: m.Cols, N: n, BCol: bCol, CCol: cCol, Caps: m.Device.Caps()}
	return m.Kernel.Runs(m.Variant, m.Parts[i].Data, q)
}

// Work returns what a multiplication by n columns moves and computes, C having elements of type out, and the variant
// that does it.
func (m *Matrix) Work(n int, out dtype.Type) (*spec.Variant, model.Work) {
	v := m.Runs(0, n)
	return v, model.NewWork(m.Rows, m.Cols, n, m.Operand, v.Reads(m.Stats), m.Fetched/int64(max(1, v.Together)), out)
}
