// Predicting the time of a multiplication, by which formats are compared.

package plan

import (
	"context"
	"math"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// habits are what ceilings do not tell of a kind of device, fitted to measurements (bench/NOTES.md).
type habits struct {
	launch time.Duration // a launch that does nothing
	first  float64       // fetching rows of B, by the rate at which caches are read
	again  float64       // the same for rows that rows nearby fetch too
	pieces int           // of work that a unit does at a time
}

// On the CPU a loop's Reach has in it that it finds rows again in the cache.
var (
	gpu = habits{launch: 3 * time.Microsecond, first: 2, again: 0.7, pieces: 8}
	cpu = habits{first: 1, pieces: 1}
)

// predictor predicts multiplications of one matrix by n columns on a device.
type predictor struct {
	ceil       *Ceilings
	habits     habits
	units      int
	rows, cols int
	longest    int64 // entries of the longest row
	nearby     int64 // see distinct
	n          int
}

// newPredictor measures the device if it has not been measured before.
func newPredictor(ctx context.Context, d *Device, a formats.Sparse, n int) (*predictor, error) {
	ceil, err := d.Ceilings(ctx)
	if err != nil {
		return nil, err
	}
	p := &predictor{ceil: ceil, habits: gpu, units: max(1, d.Caps().Units), nearby: distinct(a), n: n}
	if d.Caps().Code == backend.CodeGo {
		p.habits = cpu
	}
	p.rows, p.cols = a.Dims()
	ptr, _ := a.Pattern()
	for i := range p.rows {
		p.longest = max(p.longest, ptr[i+1]-ptr[i])
	}
	return p, nil
}

// time predicts a variant with a packing's stats, which deals its work out in so many items. Data come from
// memory, and then the units are busy, all of them as long as their share takes, or one with the longest piece.
func (p *predictor) time(v *spec.Variant, s formats.Stats, items int64) (Bound, time.Duration) {
	first := fetched(s, p.nearby)
	b := p.ceil.bound(v, newWork(p.rows, p.cols, p.n, v.In, s, first, dtype.F32))
	width := p.width(v)
	rows := p.habits.first*float64(first) + p.habits.again*float64(s.Gathers-first)
	fetch := at(int64(rows*float64(width*v.In.Storage().Size())), p.ceil.Gather)
	compute := float64(at(2*s.MACs*int64(width), p.ceil.rate(v)))
	if v.Cost.Reach > 0 {
		compute /= v.Cost.Reach
	}
	pieces := items * p.tiles(v)
	starts := micros(v.Cost.Start * float64(pieces) / float64(p.units*p.habits.pieces))
	share := p.alone(v, s.Gathers/max(1, items)) + fetch + time.Duration(math.Round(compute)) + starts
	return b, p.habits.launch + b.Memory + max(share, p.alone(v, p.heaviest(s)))
}

// heaviest is how many rows of B one piece of work fetches at most. The stats may be those of a sample without the
// longest row.
func (p *predictor) heaviest(s formats.Stats) int64 {
	if s.Longest == 0 {
		return 0
	}
	return max(s.Longest, p.longest)
}

// alone is the time of a piece of work that has a unit for itself.
func (p *predictor) alone(v *spec.Variant, rows int64) time.Duration {
	return micros(v.Cost.Start + v.Cost.Step*float64(rows))
}

// tiles is how many pieces of work share C's columns.
func (p *predictor) tiles(v *spec.Variant) int64 {
	if cols := int(v.Const("COLS")); cols > 0 {
		return int64(ceil(p.n, cols))
	}
	return 1
}

// width is how many columns are computed: GPUs compute whole tiles even where B has fewer.
func (p *predictor) width(v *spec.Variant) int {
	if cols := int(v.Const("COLS")); cols > 0 && v.Code != backend.CodeGo {
		return up(p.n, cols)
	}
	return p.n
}

func micros(x float64) time.Duration { return time.Duration(math.Round(x * float64(time.Microsecond))) }
