// New values in reproducible mode: rows' ranges and the entries' integers follow from them. Where the precision is given,
// the device finds these, by kernel requantise; where it is found for each multiplication, the matrix is encoded again on
// the host. Nothing is chosen again.

package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/work"
	"github.com/spmmrun/spmm/shaders/requantise"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
)

// setTensor brings the values to their places and the integers after them.
func (r *reproducible) setTensor(ctx context.Context, l *launcher, g *given, values *tensor.Tensor, times int) (backend.Timing, error) {
	if r.auto == nil {
		ready, err := r.settleRequantise(ctx, l, g)
		if err != nil {
			return backend.Timing{}, err
		}
		if ready {
			return r.requantiseAfter(ctx, times, func() (backend.Timing, error) { return fast{r.resident}.setTensor(ctx, l, g, values, 1) })
		}
	}
	start := time.Now()
	for range times {
		v, err := hostValues(ctx, values)
		if err == nil {
			err = r.encodeWith(ctx, g, v)
		}
		if err != nil {
			return backend.Timing{}, err
		}
	}
	return backend.Timing{Host: time.Since(start)}, nil
}

// settings needs a device that can bring values to fixed point.
func (r *reproducible) settings(ctx context.Context, l *launcher, g *given, values *tensor.Tensor) ([]backend.Launch, error) {
	ready := false
	var err error
	if r.auto == nil {
		ready, err = r.settleRequantise(ctx, l, g)
	}
	if err != nil {
		return nil, err
	}
	if !ready {
		return nil, fmt.Errorf("new values are brought to fixed point on the host, not in a sequence: %w", backend.ErrUnsupported)
	}
	launches, err := fast{r.resident}.settings(ctx, l, g, values)
	return slices.Concat(launches, r.requantise), err
}

func (r *reproducible) setHost(ctx context.Context, l *launcher, g *given, v Values) error {
	if r.auto == nil {
		ready, err := r.settleRequantise(ctx, l, g)
		if err != nil {
			return err
		}
		if ready {
			_, err := r.requantiseAfter(ctx, 1, func() (backend.Timing, error) { return backend.Timing{}, fast{r.resident}.setHost(ctx, l, g, v) })
			return err
		}
	}
	return r.encodeWith(ctx, g, v)
}

// requantiseAfter sets values and brings them to fixed point, some times.
func (r *reproducible) requantiseAfter(ctx context.Context, times int, set func() (backend.Timing, error)) (sum backend.Timing, err error) {
	for range times {
		t, err := set()
		if err != nil {
			return sum, err
		}
		u, err := r.dev.Run(ctx, r.requantise...)
		if err != nil {
			return sum, err
		}
		sum.Device += t.Device + u.Device
		sum.Host += t.Host + u.Host
	}
	return sum, nil
}

// settleRequantise makes the launches of kernel requantise, unless there are some. It reports whether the device can run
// them: the table of a part's slots may exceed what it binds.
func (r *reproducible) settleRequantise(ctx context.Context, l *launcher, g *given) (bool, error) {
	if r.requantise != nil || r.refused {
		return !r.refused, nil
	}
	w, row, whole := &composer{l: l, m: r.resident}, 0, g.sparse(r.operand, Values{r.operand, make([]byte, int64(r.operand.Size())*int64(len(g.idx)))})
	for i := range r.parts {
		pt := &r.parts[i]
		err := w.requantise(ctx, pt, whole.RowRange(row, row+pt.enc.Rows))
		if work.Refusal(err) {
			r.refused = true
			return false, nil
		}
		if err != nil {
			return false, err
		}
		row += pt.enc.Rows
	}
	r.requantise = w.launches
	return true, nil
}

// requantise adds the launches for a part, which holds the rows of a.
func (w *composer) requantise(ctx context.Context, pt *part, a formats.Sparse) error {
	v, err := requantise.Variant(w.l.dev.Caps())
	if err != nil {
		return err
	}
	slots, err := kernel.Slots(a, w.m.variant)
	if err != nil {
		return err
	}
	s := pt.enc.Format.(kernel.Split)
	launch, err := requantise.Launch(v, requantise.Op{Rows: int64(pt.enc.Rows), NNZ: pt.enc.NNZ, Type: s.Type, P: s.P, V: s.V, Slots: int64(len(slots))})
	if err != nil {
		return err
	}
	arg := func(name string) backend.Buffer { return pt.bufs[w.m.kern.Arg(name)] }
	values := arg("values")
	table := values // not read for rows
	if len(slots) > 0 {
		if pt.slots == nil {
			if pt.slots, err = w.l.dev.NewWords(ctx, slots, "slots of the entries"); err != nil {
				return err
			}
		}
		table = pt.slots
	}
	return w.add(requantise.Program, []backend.Buffer{values, table, arg("rows"), arg("ints")}, launch.Passes...)
}

// encodeWith encodes the matrix with other values and writes its arrays where the old ones are. With a precision that is
// found for each multiplication it notes the values, and that is done before the next one.
func (r *reproducible) encodeWith(ctx context.Context, g *given, v Values) error {
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
	parts, err := (&work.Packed{Kernel: m.kern, Variant: m.variant, Matrix: work.NewMatrix(a)}).Ranges(ctx, m.rowBlock)
	if err != nil {
		return err
	}
	if len(parts) != len(m.parts) {
		return fmt.Errorf("a matrix of %d row ranges in place of %d", len(parts), len(m.parts))
	}
	for i, e := range parts {
		for j, array := range e.Arrays {
			if err := device.WriteChunks(ctx, m.parts[i].bufs[j], array.Data); err != nil {
				return err
			}
		}
	}
	return nil
}
