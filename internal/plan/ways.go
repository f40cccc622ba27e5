// The ways to multiply that Prepare tries, and plans that multiply in one.

package plan

import (
	"context"
	"fmt"
	"iter"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/reproducible"
	"github.com/spmmrun/spmm/internal/resident"
	"github.com/spmmrun/spmm/internal/values"
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
		why: why, pack: func(ctx context.Context) (*work.Packed, error) {
			return work.Abandon(ctx, func() (*work.Packed, error) { return r.Pack(w, kind) }, nil)
		},
		executor: func(m *resident.Matrix) executor {
			r.Take(m)
			return r
		},
	}
}

// build packs the matrix in one way, and makes the plan of it, which it brings onto the device.
func build(ctx context.Context, d *device.Device, w *work.Work, x way) (*Plan, error) {
	e, err := x.pack(ctx)
	if err != nil {
		return nil, err
	}
	m, took, err := resident.Place(ctx, d, w, e)
	if err != nil {
		return nil, err
	}
	p := &Plan{
		PlanInfo: api.PlanInfo{
			Rows: m.Rows, Cols: m.Cols, NNZ: e.Matrix.NNZ(), Format: e.Format, Variant: e.Name, Why: x.why,
			Precision: e.Precision, Kernel: m.Runs(0, w.Cols).Kernel(), Quantised: w.A.Kind(),
			Stats: m.Stats, EncodeTime: e.Took + took.Packing, UploadTime: took.Upload,
		},
		dev: d, rowBlock: m.RowBlock, right: w.Right, exec: x.executor(m), launcher: launch.New(d),
	}
	if m.Stream != nil {
		p.Panels = len(m.Parts)
		p.Why += fmt.Sprintf("; A, of %.3g MiB, stays in the host's memory: %d panels are copied for each product",
			float64(m.Stats.StoredBytes)/(1<<20), p.Panels)
	}
	if m.Stream == nil && p.Quantised == dtype.Invalid { // else values cannot be replaced
		p.given = values.NewGiven(w.A.Encoded, w.Reordered, w.P != 0)
	}
	return p, nil
}
