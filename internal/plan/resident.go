// The sparse matrix on a device. Where one of its arrays, or a few columns of C for it, exceed what the device
// binds, it is cut into row ranges.

package plan

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
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/work"
	"github.com/spmmrun/spmm/shaders/spec"
)

// resident is a sparse matrix on a device, packed for a variant.
type resident struct {
	dev        *device.Device
	kern       *spec.Format
	variant    *spec.Variant
	rows, cols int
	operand    dtype.Type // of B's elements as the kernel reads them
	parts      []part
	rowBlock   int // rows of each part but the last
	stats      formats.Stats
	fetched    int64 // rows of B that a multiplication fetches, see distinct
	setter     *setter
	stream     *stream // of panels that are not on the device; nil: all of it is
}

// part is a range of the matrix's rows, encoded and uploaded.
type part struct {
	enc  *spec.Packed // without the arrays' data
	bufs []backend.Buffer

	slots backend.Buffer // reproducible mode: see kernel requantise; nil until needed
}

// upload copies an encoded matrix to the device, each of parts being rowBlock rows of it.
func upload(ctx context.Context, d *device.Device, e *work.Packed, parts []*spec.Packed, rowBlock int) (*resident, error) {
	rows, cols := e.Matrix.Dims()
	m := &resident{
		dev: d, kern: e.Kernel, variant: e.Variant, rows: rows, cols: cols, operand: e.Matrix.Type(), rowBlock: rowBlock,
	}
	for _, enc := range parts {
		pt, err := uploadPart(ctx, d, enc)
		m.parts = append(m.parts, pt)
		if err != nil {
			m.close()
			return nil, err
		}
		m.parts[len(m.parts)-1].enc.Format = forValues(enc.Format, e.Adopted && enc == e.Data)
		m.stats = addStats(m.stats, enc.Stats, e.Matrix.NNZ())
	}
	m.fetched = fetchedOf(m.stats, e)
	return m, nil
}

func fetchedOf(s formats.Stats, e *work.Packed) int64 {
	return model.Fetched(s, work.Distinct(e.Matrix.Encoded))
}

// forValues returns what a plan keeps of a packed matrix in the host's memory, so that new values find their places: all but
// the values. A matrix of the caller's is copied.
func forValues(format any, callers bool) any {
	if f, ok := format.(interface{ WithoutValues() formats.Encoded }); ok {
		format = f.WithoutValues()
	}
	if f, ok := format.(formats.Encoded); ok && callers {
		return formats.Clone(f)
	}
	return format
}

// upload copies one part to the device. After an error too, what it returns must be closed.
func uploadPart(ctx context.Context, d *device.Device, e *spec.Packed) (part, error) {
	pt := part{enc: &spec.Packed{Rows: e.Rows, Cols: e.Cols, NNZ: e.NNZ, Stats: e.Stats, Items: e.Items, Format: e.Format, Work: e.Work}}
	for _, a := range e.Arrays {
		b, err := d.NewBuffer(int64(len(a.Data)), "array "+a.Name+" of the matrix")
		if err != nil {
			return pt, err
		}
		pt.bufs = append(pt.bufs, b)
		if err := device.WriteChunks(ctx, b, a.Data); err != nil {
			return pt, err
		}
	}
	return pt, nil
}

func addStats(a, b formats.Stats, nnz int64) formats.Stats {
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

// keep is upload for panels that stay in the host's memory. They may go to the buffers of another matrix.
func keep(ctx context.Context, d *device.Device, e *work.Packed, parts []*spec.Packed, rowBlock int, with *stream) (*resident, error) {
	rows, cols := e.Matrix.Dims()
	m := &resident{
		dev: d, kern: e.Kernel, variant: e.Variant, rows: rows, cols: cols, operand: e.Matrix.Type(), rowBlock: rowBlock,
	}
	var err error
	if m.stream, err = newStream(ctx, d, parts, with); err != nil {
		return nil, err
	}
	for i, p := range parts {
		m.parts = append(m.parts, part{enc: &spec.Packed{Rows: p.Rows, Cols: p.Cols, NNZ: p.NNZ, Stats: p.Stats, Items: p.Items, Format: p.Format, Work: p.Work}, bufs: m.stream.sets[i&1]})
		m.stats = addStats(m.stats, p.Stats, e.Matrix.NNZ())
	}
	m.fetched = fetchedOf(m.stats, e)
	return m, nil
}

// onDevice refuses a matrix that is not on the device.
func (m *resident) onDevice() error {
	if m.stream != nil {
		return fmt.Errorf("a matrix that stays in the host's memory, as GroupOptions.Memory requires: %w", backend.ErrUnsupported)
	}
	return nil
}

// close frees the matrix on the device.
func (m *resident) close() error {
	var errs []error
	if m.stream != nil {
		errs = append(errs, m.stream.close())
	}
	for _, pt := range m.parts {
		if m.stream == nil {
			for _, b := range pt.bufs {
				errs = append(errs, b.Close())
			}
		}
		if pt.slots != nil {
			errs = append(errs, pt.slots.Close())
		}
	}
	m.parts = nil
	if m.setter != nil {
		errs = append(errs, m.setter.close())
		m.setter = nil
	}
	return cmp.Or(errs...)
}

// staged tells whether a B of this type and order goes through kernel densecopy, direct whether C is what the kernel
// can write.
func (m *resident) staged(t dtype.Type, colMajor bool) bool {
	return t != m.operand || colMajor && !m.variant.AnyOrder
}

func (m *resident) direct(t dtype.Type, colMajor bool) bool {
	return (t == m.variant.Sums() || slices.Contains(m.variant.Out, t)) && (!colMajor || m.variant.AnyOrder)
}

// operands: what is staged takes the larger of two element sizes.
func (m *resident) operands(b, c tensor.Shape) (in, out int, written dtype.Type) {
	in, out, written = b.Type.Size(), c.Type.Size(), c.Type
	if m.staged(b.Type, b.ColMajor) {
		in = max(in, m.operand.Size())
	}
	if !m.direct(c.Type, c.ColMajor) {
		sums := m.variant.Sums()
		out, written = max(out, sums.Size()), sums
	}
	return in, out, written
}

// launch asks the kernel how part i runs on a problem.
func (m *resident) launch(i int, q spec.Problem) (spec.Launch, error) {
	return m.kern.Launch(m.variant, m.parts[i].enc, q)
}

// check tells whether the kernel can multiply by n columns at once, within the device's limits.
func (m *resident) check(n int, out dtype.Type) error {
	for i, pt := range m.parts {
		l, err := m.launch(i, spec.Problem{
			M: pt.enc.Rows, K: pt.enc.Cols, N: n, LDB: tensor.Up(n, tensor.Align), LDC: tensor.Up(n, tensor.Align), Out: out, Alpha: 1, Caps: m.dev.Caps(),
		})
		if err != nil {
			return err
		}
		if l.Workspace > m.dev.Limit() {
			return fmt.Errorf("the workspace for %d columns takes %d bytes, and a buffer of %v at most %d: %w",
				n, l.Workspace, m.dev.Info(), m.dev.Limit(), backend.ErrUnsupported)
		}
	}
	return nil
}

// tight tells whether the kernel takes n columns of B whose rows lie side by side.
func (m *resident) tight(n int) bool {
	for i := range m.parts {
		if !m.kern.Runs(m.variant, m.parts[i].enc, spec.Problem{M: m.rows, K: m.cols, N: n, Caps: m.dev.Caps()}).Tight {
			return false
		}
	}
	return len(m.parts) > 0
}

func (m *resident) work(n int, out dtype.Type) (*spec.Variant, model.Work) {
	v := m.variant
	if len(m.parts) > 0 {
		v = m.kern.Runs(v, m.parts[0].enc, spec.Problem{M: m.rows, K: m.cols, N: n, Caps: m.dev.Caps()})
	}
	return v, model.NewWork(m.rows, m.cols, n, m.operand, m.stats, m.fetched/int64(max(1, v.Together)), out)
}
