// The ways to multiply that a plan tries.

package plan

import (
	"context"
	"iter"

	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/reproducible"
	"github.com/spmmrun/spmm/internal/resident"
	"github.com/spmmrun/spmm/internal/work"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
)

// way is one way to multiply.
type way struct {
	why      string // reads behind "because"
	instead  string // if not "", the reason is this and the refusal of the way before
	pack     func(ctx context.Context) (*work.Packed, error)
	executor func(m *resident.Matrix) executor // around the matrix on the device
}

// ways gives the ways to multiply in the order in which to try them.
func ways(ctx context.Context, d *device.Device, w *work.Work) iter.Seq2[way, error] {
	if w.P != 0 {
		return reproducibleWays(ctx, d, w)
	}
	return func(yield func(way, error) bool) {
		for c, err := range choose.InOrder(ctx, d, w) {
			if err != nil {
				yield(way{}, err)
				return
			}
			if !yield(fastWay(w, c), nil) {
				return
			}
		}
	}
}

// fastWay is a candidate as a way.
func fastWay(w *work.Work, c *choose.Candidate) way {
	return way{
		why: c.Why, pack: func(ctx context.Context) (*work.Packed, error) { return c.Pack(ctx, w.A) }, executor: newFast,
	}
}

// reproducibleWays gives the ways to multiply in reproducible mode: in panels or by rows, as is predicted to be
// faster, then by rows where panels are refused.
func reproducibleWays(ctx context.Context, d *device.Device, w *work.Work) iter.Seq2[way, error] {
	return func(yield func(way, error) bool) {
		r, err := reproducible.New(d, w)
		if err != nil {
			yield(way{}, err)
			return
		}
		kind, why, err := r.Choose(ctx, w)
		if !yield(reproducibleWay(r, w, kind, why), err) || err != nil {
			return
		}
		if r.MayTakeRows(w, kind) {
			x := reproducibleWay(r, w, kernel.Rows, "")
			x.instead = "panels are refused"
			yield(x, nil)
		}
	}
}

// reproducibleWay is rows, or panels of a kind, as a way.
func reproducibleWay(r *reproducible.Executor, w *work.Work, kind kernel.Kind, why string) way {
	return way{
		why: why, pack: func(context.Context) (*work.Packed, error) { return r.Pack(w, kind) },
		executor: func(m *resident.Matrix) executor {
			r.Take(m)
			return r
		},
	}
}
