// The ranges of a tensor's columns.

package reproducible

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/shaders/quantise"
)

// ColumnRanges returns the range of each column of a row-major tensor, found on the device.
func ColumnRanges(ctx context.Context, d *device.Device, t *tensor.Tensor) ([]rfx.Range, error) {
	if t == nil || t.Device() != d || t.ColMajor || t.RowBlocks() > 1 || t.ColBlocks() > 1 || t.BlockLayout(0, 0).Loose {
		return nil, fmt.Errorf("ranges of columns: want a row-major tensor in one block on %v: %w", d.Info(),
			backend.ErrUnsupported)
	}
	if err := t.Use(); err != nil {
		return nil, err
	}
	defer t.Release()
	if t.Rows == 0 || t.Cols == 0 {
		return make([]rfx.Range, t.Cols), nil
	}
	v, err := quantise.Variant(d.Caps())
	if err != nil {
		return nil, err
	}
	from := t.BlockLayout(0, 0)
	q := quantise.NewLayout(from.Rows, from.Cols, rfx.P23)
	l, err := quantise.Ranges(v, q, from.Type, from.LD)
	if err != nil {
		return nil, err
	}
	parts, err := d.NewBuffer(int64(4*q.First()), "ranges of columns")
	if err != nil {
		return nil, err
	}
	defer parts.Close()
	launches, err := launch.Passes(d, quantise.Program, []backend.Buffer{t.Block(0, 0), parts}, l.Passes)
	if err != nil {
		return nil, err
	}
	if _, err := d.Run(ctx, launches...); err != nil {
		return nil, err
	}
	words := make([]rfx.Range, q.First())
	if err := parts.Read(ctx, 0, backend.Bytes(words)); err != nil {
		return nil, err
	}
	return joined(q, words), nil
}

// joined returns the ranges of the columns, given the words that quantise.Ranges writes.
func joined(q quantise.Layout, words []rfx.Range) []rfx.Range {
	cols := make([]rfx.Range, q.N)
	for c := 1; c <= q.Chunks; c++ {
		for j := range cols {
			cols[j] = cols[j].Join(words[c*q.LD+j])
		}
	}
	return cols
}
