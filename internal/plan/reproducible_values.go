// New values in reproducible mode. Rows' ranges and the entries' integers follow from the values, so that the matrix is
// encoded again, on the host; nothing is chosen or allocated on the device again.

package plan

import (
	"context"
	"fmt"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
)

// setTensor reads the values back first.
func (r *reproducible) setTensor(ctx context.Context, l *launcher, g *given, values *Tensor, times int) (backend.Timing, error) {
	start := time.Now()
	for range times {
		v, err := values.host(ctx)
		if err == nil {
			err = r.setHost(ctx, l, g, v)
		}
		if err != nil {
			return backend.Timing{}, err
		}
	}
	return backend.Timing{Host: time.Since(start)}, nil
}

// setHost encodes the matrix again and writes its arrays where the old ones are. With a precision that is found for each
// multiplication it notes the values, and that is done before the next one.
func (r *reproducible) setHost(ctx context.Context, _ *launcher, g *given, v Values) error {
	m := g.sparse(r.operand, v)
	if r.auto == nil {
		return r.rewrite(ctx, m)
	}
	r.auto.matrix, r.auto.rows = m, ranges(m)
	for bits := range r.auto.at {
		r.auto.stale[bits] = true
	}
	return nil
}

// rewrite packs a matrix of the same pattern as this one is packed, and replaces its arrays on the device.
func (m *resident) rewrite(ctx context.Context, a formats.Sparse) error {
	parts, err := (&encoded{kernel: m.kern, variant: m.variant, matrix: newSource(a)}).ranges(ctx, m.rowBlock)
	if err != nil {
		return err
	}
	if len(parts) != len(m.parts) {
		return fmt.Errorf("a matrix of %d row ranges in place of %d", len(parts), len(m.parts))
	}
	for i, e := range parts {
		for j, array := range e.Arrays {
			if err := writeChunks(ctx, m.parts[i].bufs[j], array.Data); err != nil {
				return err
			}
		}
	}
	return nil
}
