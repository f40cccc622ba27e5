// The sparse matrix on a device. Where one of its arrays, or a few columns of C for it, exceed what the device
// binds, it is cut into row ranges.

package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/plan/model"
	"github.com/spmmrun/spmm/shaders/spec"
)

// resident is a sparse matrix on a device, packed for a variant.
type resident struct {
	dev        *Device
	kern       *spec.Format
	variant    *spec.Variant // that parts are packed for
	exact      bool          // no other multiplies
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
func upload(ctx context.Context, d *Device, e *encoded, parts []*spec.Packed, rowBlock int) (*resident, error) {
	rows, cols := e.matrix.Dims()
	m := &resident{
		dev: d, kern: e.kernel, variant: e.variant, exact: e.exact, rows: rows, cols: cols, operand: e.matrix.Type(), rowBlock: rowBlock,
	}
	for _, enc := range parts {
		pt, err := d.upload(ctx, enc)
		m.parts = append(m.parts, pt)
		if err != nil {
			m.close()
			return nil, err
		}
		m.parts[len(m.parts)-1].enc.Format = forValues(enc.Format, e.adopted && enc == e.enc)
		m.stats = addStats(m.stats, enc.Stats, e.matrix.NNZ())
	}
	m.fetched = fetchedOf(m.stats, e)
	return m, nil
}

func fetchedOf(s formats.Stats, e *encoded) int64 {
	return model.Fetched(s, distinct(e.matrix.Encoded))
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
func (d *Device) upload(ctx context.Context, e *spec.Packed) (part, error) {
	pt := part{enc: &spec.Packed{Rows: e.Rows, Cols: e.Cols, NNZ: e.NNZ, Stats: e.Stats, Items: e.Items, Format: e.Format, Work: e.Work}}
	for _, a := range e.Arrays {
		b, err := d.alloc(int64(len(a.Data)), "array "+a.Name+" of the matrix")
		if err != nil {
			return pt, err
		}
		pt.bufs = append(pt.bufs, b)
		if err := writeChunks(ctx, b, a.Data); err != nil {
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
	return firstOf(errs...)
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
func (m *resident) operands(b, c Shape) (in, out int, written dtype.Type) {
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
	e := m.parts[i].enc
	return m.kern.Launch(runs(m.kern, m.variant, m.exact, e, q), e, q)
}

// check tells whether the kernel can multiply by n columns at once, within the device's limits.
func (m *resident) check(n int, out dtype.Type) error {
	for i, pt := range m.parts {
		l, err := m.launch(i, spec.Problem{
			M: pt.enc.Rows, K: pt.enc.Cols, N: n, LDB: up(n, align), LDC: up(n, align), Out: out, Alpha: 1, Caps: m.dev.Caps(),
		})
		if err != nil {
			return err
		}
		if l.Workspace > m.dev.limit() {
			return fmt.Errorf("the workspace for %d columns takes %d bytes, and a buffer of %v at most %d: %w",
				n, l.Workspace, m.dev.Info(), m.dev.limit(), backend.ErrUnsupported)
		}
	}
	return nil
}

// tight tells whether the kernel takes n columns of B whose rows lie side by side.
func (m *resident) tight(n int) bool {
	for i := range m.parts {
		if !m.runs(i, n).Tight {
			return false
		}
	}
	return len(m.parts) > 0
}

// runs returns the variant that multiplies part i by n columns.
func (m *resident) runs(i, n int) *spec.Variant {
	if i >= len(m.parts) {
		return m.variant
	}
	return runs(m.kern, m.variant, m.exact, m.parts[i].enc, spec.Problem{M: m.rows, K: m.cols, N: n, Caps: m.dev.Caps()})
}

func (m *resident) work(n int, out dtype.Type) (*spec.Variant, model.Work) {
	v := m.runs(0, n)
	return v, model.NewWork(m.rows, m.cols, n, m.operand, m.stats, m.fetched/int64(max(1, v.Together)), out)
}

// cut returns the encoded matrix whole if the device can bind it, and a few columns of C for it, else
// encoded again in as many row ranges as it takes, of rowBlock rows each.
func cut(ctx context.Context, d *Device, e *encoded) (parts []*spec.Packed, rowBlock int, err error) {
	limit := d.limit()
	if parts, rowBlock, err = e.first(ctx); err != nil {
		return nil, 0, err
	}
	for {
		ranges := (max(largest(parts), up64(int64(rowBlock))*align*int64(e.variant.Sums().Size()))-1)/limit + 1
		if ranges == 1 {
			return parts, rowBlock, nil
		}
		block := partRows(ceil(rowBlock, int(min(ranges, 1<<20))), e.enc.Panel)
		if block >= rowBlock {
			return nil, 0, fmt.Errorf("%d rows of the matrix take %d bytes in one array of format %s, and a buffer of %v at most %d: %w",
				rowBlock, largest(parts), e.format, d.Info(), limit, backend.ErrUnsupported)
		}
		rowBlock = block
		if parts, err = e.ranges(ctx, rowBlock); err != nil {
			return nil, 0, err
		}
	}
}

// first returns the matrix as it is packed: whole, or in blocks of rows.
func (e *encoded) first(ctx context.Context) (parts []*spec.Packed, rowBlock int, err error) {
	if e.block > 0 {
		parts, err = e.ranges(ctx, e.block)
		return parts, e.block, err
	}
	rows, _ := e.matrix.Dims()
	return []*spec.Packed{e.enc}, max(1, rows), nil
}

// ranges encodes ranges of the matrix's rows.
func (e *encoded) ranges(ctx context.Context, rowBlock int) ([]*spec.Packed, error) {
	var parts []*spec.Packed
	rows, _ := e.matrix.Dims()
	for lo := 0; lo == 0 || lo < rows; lo += rowBlock {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := e.matrix.part(lo, min(lo+rowBlock, rows), e.kernel, e.variant, e.enc)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// partRows rounds the rows of a part up so that no panel is cut: to a multiple of what the format wants kept
// together, and of rowAlign, or in small parts leastAlign, which is all that others' panels need.
func partRows(rows, panel int) int {
	const rowAlign, leastAlign = 128, 32
	to := leastAlign
	if rows > rowAlign {
		to = rowAlign
	}
	return up(rows, lcm(to, max(1, panel)))
}

func lcm(a, b int) int {
	x, y := a, b
	for y > 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// largest returns the bytes of the largest array.
func largest(parts []*spec.Packed) int64 {
	var n int64
	for _, e := range parts {
		for _, a := range e.Arrays {
			n = max(n, int64(len(a.Data)))
		}
	}
	return n
}
