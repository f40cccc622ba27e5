// New values in reproducible mode: rows' ranges and the entries' integers follow from them. Where the precision is
// given, the device finds these, by kernel requantise; where it is found for each multiplication, the matrix is
// encoded again on the host. Nothing is chosen again.

package reproducible

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/values"
	"github.com/spmmrun/spmm/internal/work"
	"github.com/spmmrun/spmm/shaders/requantise"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
)

// SetTensor brings the values to their places and the integers after them.
func (r *Executor) SetTensor(ctx context.Context, g *values.Given, v *tensor.Tensor, times int) (backend.Timing,
	error) {
	if r.auto == nil {
		ready, err := r.prepareRequantise(ctx, g)
		if err != nil {
			return backend.Timing{}, err
		}
		if ready {
			return r.requantiseAfter(ctx, times, func() (backend.Timing, error) { return r.setter.SetTensor(ctx, g, v, 1) })
		}
	}
	start := time.Now()
	for range times {
		x, err := values.Read(ctx, v)
		if err == nil {
			err = r.encodeWith(ctx, g, x)
		}
		if err != nil {
			return backend.Timing{}, err
		}
	}
	return backend.Timing{Host: time.Since(start)}, nil
}

// SetLaunches needs a device that can bring values to fixed point.
func (r *Executor) SetLaunches(ctx context.Context, g *values.Given, v *tensor.Tensor) ([]backend.Launch, error) {
	ready := false
	var err error
	if r.auto == nil {
		ready, err = r.prepareRequantise(ctx, g)
	}
	if err != nil {
		return nil, err
	}
	if !ready {
		return nil, fmt.Errorf("new values are brought to fixed point on the host, not in a sequence: %w",
			backend.ErrUnsupported)
	}
	launches, err := r.setter.SetLaunches(ctx, g, v)
	return slices.Concat(launches, r.requantise), err
}

func (r *Executor) SetHost(ctx context.Context, g *values.Given, v values.Host) error {
	if r.auto == nil {
		ready, err := r.prepareRequantise(ctx, g)
		if err != nil {
			return err
		}
		if ready {
			_, err := r.requantiseAfter(ctx, 1, func() (backend.Timing, error) {
				return backend.Timing{}, r.setter.SetHost(ctx,
					g, v)
			})
			return err
		}
	}
	return r.encodeWith(ctx, g, v)
}

// requantiseAfter sets values and brings them to fixed point, some times.
func (r *Executor) requantiseAfter(ctx context.Context, times int, set func() (backend.Timing,
	error)) (sum backend.Timing, err error) {
	for range times {
		t, err := set()
		if err != nil {
			return sum, err
		}
		u, err := r.Device.Run(ctx, r.requantise...)
		if err != nil {
			return sum, err
		}
		sum.Device += t.Device + u.Device
		sum.Host += t.Host + u.Host
	}
	return sum, nil
}

// prepareRequantise makes the launches of kernel requantise, unless there are some. It reports whether the device can
// run them: the table of a part's slots may exceed what it binds.
func (r *Executor) prepareRequantise(ctx context.Context, g *values.Given) (bool, error) {
	if r.requantise != nil || r.refused {
		return !r.refused, nil
	}
	row, whole := 0, g.Zeros(r.Operand)
	launches := []backend.Launch{}
	if r.tables == nil {
		r.tables = make([]backend.Buffer, len(r.Parts))
	}
	for i, pt := range r.Parts {
		add, err := r.requantiseOf(ctx, i, whole.RowRange(row, row+pt.Data.Rows))
		if work.Refusal(err) {
			r.refused = true
			return false, nil
		}
		if err != nil {
			return false, err
		}
		launches = append(launches, add...)
		row += pt.Data.Rows
	}
	r.requantise = launches
	return true, nil
}

// requantiseOf returns the launches for part i, which holds the rows of a.
func (r *Executor) requantiseOf(ctx context.Context, i int, a formats.Sparse) ([]backend.Launch, error) {
	pt := r.Parts[i]
	v, err := requantise.Variant(r.Device.Caps())
	if err != nil {
		return nil, err
	}
	slots, err := kernel.Slots(a, r.Variant)
	if err != nil {
		return nil, err
	}
	s := pt.Data.Format.(kernel.Split)
	l, err := requantise.Launch(v, requantise.Op{Rows: int64(pt.Data.Rows), NNZ: pt.Data.NNZ, Type: s.Type, P: s.P,
		V: s.V, Slots: int64(len(slots)), Strips: s.Strips.Blocks > 0, Pairs: s.Pairs.Blocks > 0,
		Planes: requantise.Planes{Count: s.Planes, Cols: pt.Data.Cols, Columns: s.Columns, Weights: s.Weights,
			Remainder: s.RemainderEntries(pt.Data.Rows)}})
	if err != nil {
		return nil, err
	}
	arg := func(name string) backend.Buffer { return pt.Buffers[r.Kernel.Arg(name)] }
	values := arg("values")
	table := values // not read for rows
	if len(slots) > 0 {
		if r.tables[i] == nil {
			if r.tables[i], err = r.Device.NewWords(ctx, slots, "slots of the entries"); err != nil {
				return nil, err
			}
		}
		table = r.tables[i]
	}
	return launch.Passes(r.Device, requantise.Program, []backend.Buffer{values, table, arg("rows"), arg("ints")}, l.Passes)
}

// encodeWith encodes the matrix with other values and writes its arrays where the old ones are. With a precision that
// is found for each multiplication it notes the values, and that is done before the next one.
func (r *Executor) encodeWith(ctx context.Context, g *values.Given, v values.Host) error {
	m := g.Sparse(r.Operand, v)
	if r.auto == nil {
		return r.Rewrite(ctx, m)
	}
	r.auto.matrix, r.auto.rows = m, ranges(m)
	for bits := range r.auto.at {
		r.auto.stale[bits] = true
	}
	return nil
}
