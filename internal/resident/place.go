// Bringing a packed matrix onto the device: whole, cut into ranges of rows that the device binds, or, where it does
// not fit next to B and C, in panels that stay in the host's memory.

package resident

import (
	"context"
	"fmt"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/stream"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/work"
	"github.com/spmmrun/spmm/shaders/quantise"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Took is how long it took to bring a matrix onto the device, besides packing it first.
type Took struct {
	Packing time.Duration // packing it again in ranges of rows
	Upload  time.Duration
}

// Place brings a packed matrix onto the device. Where it does not fit within the work's budget it is streamed, in
// panels as large as there is room for.
func Place(ctx context.Context, d *device.Device, w *work.Work, e *work.Packed) (*Matrix, Took, error) {
	var t Took
	var parts []*spec.Packed
	var rowBlock int
	var err error
	start, fits := time.Now(), true
	if w.Budget != nil {
		parts, rowBlock, fits, err = panels(ctx, d, w, e)
	}
	if err == nil && fits {
		parts, rowBlock, err = cut(ctx, d, e)
	}
	if err != nil {
		return nil, t, err
	}
	t.Packing = time.Since(start)
	start = time.Now()
	var s *stream.Stream
	if !fits {
		if s, err = stream.New(ctx, d, parts, nil); err != nil {
			return nil, t, err
		}
	}
	m, err := bring(ctx, d, e, parts, rowBlock, s)
	t.Upload = time.Since(start)
	return m, t, err
}

// cut returns the encoded matrix whole if the device can bind it, and a few columns of C for it, else
// encoded again in as many row ranges as it takes, of rowBlock rows each.
func cut(ctx context.Context, d *device.Device, e *work.Packed) (parts []*spec.Packed, rowBlock int, err error) {
	limit := d.Limit()
	if parts, rowBlock, err = e.First(ctx); err != nil {
		return nil, 0, err
	}
	for {
		ranges := (max(largest(parts), tensor.Up(int64(rowBlock),
			tensor.Align)*tensor.Align*int64(e.Variant.Sums().Size()))-1)/limit + 1
		if ranges == 1 {
			return parts, rowBlock, nil
		}
		block := work.PartRows(spec.Ceil(rowBlock, int(min(ranges, 1<<20))), e.Data.Panel)
		if block >= rowBlock {
			return nil, 0, fmt.Errorf("%d rows of the matrix take %d bytes in one array of format %s, and a buffer of %v at most %d: %w",
				rowBlock, largest(parts), e.Format, d.Info(), limit, backend.ErrUnsupported)
		}
		rowBlock = block
		if parts, err = e.Ranges(ctx, rowBlock); err != nil {
			return nil, 0, err
		}
	}
}

// panels cuts the matrix into the largest panels that fit twice next to B and C, or finds that all of it fits.
func panels(ctx context.Context, d *device.Device, w *work.Work, e *work.Packed) (parts []*spec.Packed, rowBlock int,
	fits bool, err error) {
	if parts, rowBlock, err = e.First(ctx); err != nil {
		return nil, 0, false, err
	}
	size := func() (panel, all, rest int64, err error) {
		if rest, err = others(d, w, e, parts, rowBlock); err != nil {
			return 0, 0, 0, err
		}
		for _, p := range parts {
			n := panelBytes(p)
			panel, all = max(panel, n), all+n
		}
		return panel, all, rest, nil
	}
	panel, all, rest, err := size()
	if err != nil {
		return nil, 0, false, err
	}
	copies := int64(1)
	if w.P == work.AutoP {
		copies = 3 // at other precisions, which are made when they are needed
	}
	if copies*all+rest <= w.Budget.Bytes {
		return parts, rowBlock, true, nil
	}
	step := work.LCM(32, max(1, e.Data.Panel))
	for {
		room := (w.Budget.Bytes - rest) / 2
		if room <= 0 && rowBlock <= step {
			return nil, 0, false, fmt.Errorf("B, C and what multiplying %d columns takes are %d bytes, of %d that may be used of %v: fewer columns (Options.Cols) or more memory: %w",
				w.Budget.Cols, rest, w.Budget.Bytes, d.Info(), backend.ErrOutOfMemory)
		}
		if rowBlock <= step {
			return nil, 0, false, fmt.Errorf("a panel of %d rows takes %d bytes, of %d that may be used of %v next to %d for B and C: fewer columns (Options.Cols) or more memory: %w",
				rowBlock, panel, room, d.Info(), rest, backend.ErrOutOfMemory)
		}
		share := 0.5
		if room > 0 {
			share = min(0.95, 0.98*float64(min(room, d.Limit()))/float64(panel))
		}
		rowBlock = max(step, int(float64(rowBlock)*share)/step*step)
		if parts, err = e.Ranges(ctx, rowBlock); err != nil {
			return nil, 0, false, err
		}
		if panel, _, rest, err = size(); err != nil {
			return nil, 0, false, err
		}
		if 2*panel+rest <= w.Budget.Bytes && largest(parts) <= d.Limit() {
			return parts, rowBlock, false, nil
		}
	}
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

// panelBytes returns the bytes that a panel takes on the device.
func panelBytes(p *spec.Packed) (n int64) {
	const each = 256 // an allocation is rounded up to
	for _, a := range p.Arrays {
		n += (int64(len(a.Data)) + each - 1) / each * each
	}
	return n
}

// others returns the most bytes that a multiplication takes on the device, A not counted: B and C of any type and
// order, and where they are staged, B in fixed point, and the kernel's workspace.
func others(d *device.Device, w *work.Work, e *work.Packed, parts []*spec.Packed, rowBlock int) (int64, error) {
	const slack = 4 << 10
	n := int64(w.Budget.Cols)
	rows, cols := e.Matrix.Dims()
	total := int64(slack)
	for _, s := range []tensor.Shape{ // B and C of 4 bytes, and both as the kernel takes them
		{Rows: cols, Cols: int(n), Type: dtype.F32, ColMajor: w.Right},
		{Rows: rows, Cols: int(n), Type: dtype.F32, ColMajor: w.Right, RowBlock: rowBlock},
		{Rows: cols, Cols: int(n), Type: e.Matrix.Type()},
		{Rows: min(rowBlock, rows), Cols: int(n), Type: dtype.F32},
	} {
		x, err := s.Size()
		if err != nil {
			return 0, err
		}
		total += x + slack
	}
	if w.P != 0 {
		fixed := kernel.Layout(e.Variant, cols, int(n)).Bytes()
		if w.P == work.AutoP {
			fixed = max(fixed, quantise.NewLayout(cols, int(n), rfx.P47).Bytes())
		}
		total += fixed + slack
	}
	most := int64(0)
	for _, p := range parts {
		q := spec.Problem{
			M: p.Rows, K: p.Cols, N: int(n), LDB: tensor.Up(int(n), tensor.Align), LDC: tensor.Up(int(n), tensor.Align),
			Out: dtype.F32, Alpha: 1, Caps: d.Caps(),
		}
		l, err := e.Kernel.Launch(e.Kernel.Runs(e.Variant, p, q), p, q)
		if err != nil {
			return 0, err
		}
		most = max(most, l.Workspace)
	}
	return total + most + slack, nil
}
