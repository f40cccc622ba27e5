// How several devices share a matrix: which way it is split, where it is cut, and its parts on the devices.

package many

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/work"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
)

// divided is work to be shared.
type divided struct {
	*work.Work
	budgets []*work.Budget // of each device; nil: all of its memory
	extent  work.Extent    // once rows are shared out
}

// on returns device i's share of the work: some rows.
func (m divided) on(i int, rows *work.Matrix) *work.Work {
	w := m.Of(rows)
	w.Reordered = false
	if m.budgets != nil {
		w.Budget = m.budgets[i]
	}
	return w
}

// decision is a split and its reason.
type decision struct {
	split   api.Split
	why     string    // reads behind "because"
	weights []float64 // each device's share of the work
	misfit  string    // why not every device can hold all of A; "": all can
}

// decide takes the split that the options name, or the one that is predicted to be faster of those whose parts fit the
// devices. With t_d(n) the time that device d is predicted to take for all of A by n columns, p devices take
// max t_d(w_d·n) by columns and 1/Σ 1/t_d(n) by rows, where w_d is in proportion to 1/t_d(n).
func decide(ctx context.Context, devs []*device.Device, m divided, o Sharing) (decision, error) {
	one := decision{split: o.Split, why: "it was requested", weights: equal(len(devs)), misfit: misfit(devs, m, o)}
	if o.Split == api.ByColumns && o.Memory > 0 && one.misfit != "" {
		return one, fmt.Errorf("by columns each device holds all of A, and %s: %w", one.misfit, backend.ErrOutOfMemory)
	}
	if len(devs) == 1 || o.Split != api.AutoSplit && alike(devs) {
		switch {
		case one.split == api.AutoSplit && one.misfit != "":
			one.split, one.why = api.ByRows, one.misfit
		case one.split == api.AutoSplit:
			one.split, one.why = api.ByColumns, "there is one device"
		}
		return one, nil
	}
	times := make([]time.Duration, len(devs))
	for i, d := range devs {
		if i > 0 && alike(devs) {
			times[i] = times[0]
			continue
		}
		t, err := choose.Predict(ctx, d, m.Work, m.Cols)
		if err != nil {
			return one, named(d, err)
		}
		times[i] = t
	}
	one.weights = inverse(times)
	if o.Split != api.AutoSplit {
		return one, nil
	}
	if one.misfit != "" {
		one.split, one.why = api.ByRows, one.misfit
		return one, nil
	}
	return one.faster(ctx, devs, m, o, times)
}

// faster takes the split that is predicted to be faster, given the time of each device for all of A.
func (one decision) faster(ctx context.Context, devs []*device.Device, m divided, o Sharing,
	times []time.Duration) (decision, error) {
	n, rate := m.Cols, 0.0
	for _, t := range times {
		rate += 1 / float64(max(1, t))
	}
	byRows := time.Duration(1 / rate)
	byColumns, cuts := time.Duration(0), cutColumns(n, one.weights)
	for i, d := range devs {
		if i > 0 && alike(devs) { // the first has as many columns as any
			break
		}
		t, err := choose.Predict(ctx, d, m.Work, cuts[i+1]-cuts[i])
		if err != nil {
			return one, named(d, err)
		}
		byColumns = max(byColumns, t)
	}
	moves := ""
	if o.From != InPlace {
		rate, err := linkBetween(ctx, devs[0], devs[1])
		if err != nil {
			return one, named(devs[0], err)
		}
		if rate > 0 {
			a, b := moving(devs, m, o, api.ByColumns, one.weights, rate), moving(devs, m, o, api.ByRows, one.weights, rate)
			byColumns, byRows = byColumns+a, byRows+b
			moves = fmt.Sprintf("; of these %s and %s are for moving B, %v, at %.3g GB/s", choose.Short(a), choose.Short(b),
				o.From, rate/1e9)
		}
	}
	// Rows have to be that much faster: every device gets all of B then, and no device has all of C.
	const margin = 1.1
	one.split = api.ByColumns
	if float64(byRows)*margin < float64(byColumns) {
		one.split = api.ByRows
	}
	one.why = fmt.Sprintf("%d %s by columns are predicted to take %s, and by rows %s%s", n,
		plan.Sides{Right: m.Right}.Counted(), choose.Short(byColumns), choose.Short(byRows), moves)
	return one, nil
}

// misfit says why not every device can hold all of A together with its columns of B and C; "" if all can.
func misfit(devs []*device.Device, m divided, o Sharing) string {
	rows, cols := m.A.Dims()
	size := int64(m.A.Type().Size())
	matrix := m.A.NNZ()*(4+size) + 8*int64(rows)
	dense := (int64(cols)*size + int64(rows)*4) * int64(m.Cols) / int64(len(devs))
	for _, d := range devs {
		const mib = 1 << 20
		have, takes, more := o.have(d), matrix, ""
		if o.Memory > 0 && matrix+dense <= have { // a limit that holds in any format
			takes, more = 2*matrix, "up to "
		}
		if have > 0 && takes+dense > have {
			return fmt.Sprintf("A takes "+more+"about %.3g MiB and its share of B and C %.3g MiB, of %.4g MiB on %s:%d",
				float64(takes)/mib, float64(dense)/mib, float64(have)/mib, d.Info().Backend, d.Info().Index)
		}
	}
	return ""
}

// have returns the bytes that may be used of a device, 0 if they are not known.
func (o Sharing) have(d *device.Device) int64 {
	have := d.Info().Memory / 10 * 9
	if o.Memory > 0 && (have == 0 || o.Memory < have) {
		return o.Memory
	}
	return have
}

// budgets returns how much may be used of each device where products have n columns.
func (o Sharing) budgets(devs []*device.Device, n int) []*work.Budget {
	bs := make([]*work.Budget, len(devs))
	for i, d := range devs {
		if have := o.have(d); have > 0 {
			bs[i] = &work.Budget{Bytes: have, Cols: n}
		}
	}
	return bs
}

// alike tells whether all devices are of one kind, and so do the same work in the same time and with the same bits.
func alike(devs []*device.Device) bool {
	return !slices.ContainsFunc(devs, func(d *device.Device) bool {
		i, j := d.Info(), devs[0].Info()
		return i.Backend != j.Backend || i.Name != j.Name || i.Driver != j.Driver
	})
}

func equal(n int) []float64 { return slices.Repeat([]float64{1 / float64(n)}, n) }

// inverse returns weights in proportion to one over the times.
func inverse(times []time.Duration) []float64 {
	w, sum := make([]float64, len(times)), 0.0
	for i, t := range times {
		w[i] = 1 / float64(max(1, t))
		sum += w[i]
	}
	for i := range w {
		w[i] /= sum
	}
	return w
}

// Tile is the number of columns that the widest loop of a kernel sums at once: eight registers of AVX-512, or a warp's
// lanes with 16 bytes each.
const Tile = 128

// cutColumns cuts n columns in proportion to weights, at multiples of Tile where that costs little, so that a column is
// summed in a tile of the same width as on one device; else at multiples of what kernels load at a time. Where there
// are few columns some devices get none.
func cutColumns(n int, weights []float64) []int {
	const little = 1.1 // times the columns that the largest share has
	most := slices.Max(weights) * float64(n)
	step := tensor.Align
	if float64(tensor.Up(int(math.Ceil(most-0.5)), Tile)) <= little*most {
		step = Tile
	}
	bounds, sum := make([]int, len(weights)+1), 0.0
	for i, w := range weights {
		sum += w
		bounds[i+1] = max(bounds[i], min(n, tensor.Up(int(sum*float64(n)+0.5), step)))
	}
	bounds[len(weights)] = n
	return bounds
}

// cutRows cuts rows into ranges in which work is in proportion to weights, at multiples of step. An entry is the unit
// of work, and a row costs as much as a few; see cutEven.
func cutRows(a formats.Sparse, weights []float64, step int) []int {
	const row = 4
	ptr, _ := a.Pattern()
	rows, _ := a.Dims()
	work := func(i int) float64 { return float64(ptr[i]-ptr[0]) + row*float64(i) }
	bounds, sum := make([]int, len(weights)+1), 0.0
	for i, w := range weights {
		sum += w
		want := sum * work(rows)
		at := sort.Search(rows, func(i int) bool { return work(i) >= want })
		bounds[i+1] = max(bounds[i], min(rows, tensor.Up(at, step)))
	}
	bounds[len(weights)] = rows
	return bounds
}

// byColumns brings all of the matrix onto each device. For devices of one kind it is packed once.
func (m divided) byColumns(ctx context.Context, devs []*device.Device) ([]*plan.Plan, error) {
	if m.P != 0 || len(devs) == 1 || !alike(devs) {
		return each(ctx, devs, func(ctx context.Context, _ int, d *device.Device) (*plan.Plan, error) {
			return plan.Prepare(ctx, d, m.Work)
		})
	}
	var refused error // the first
	for c, err := range choose.InOrder(ctx, devs[0], m.Work) {
		if err != nil {
			return nil, named(devs[0], err)
		}
		plans, err := m.copies(ctx, devs, c)
		if err == nil || !work.Refusal(err) {
			return plans, err
		}
		refused = cmp.Or(refused, err, closePlans(plans))
	}
	return nil, refused
}

// copies packs the matrix in a candidate's format and brings it onto each device.
func (m divided) copies(ctx context.Context, devs []*device.Device, c *choose.Candidate) ([]*plan.Plan, error) {
	e, err := c.Pack(ctx, m.A)
	if err != nil {
		return nil, err
	}
	return each(ctx, devs, func(ctx context.Context, _ int, d *device.Device) (*plan.Plan, error) {
		return plan.Bring(ctx, d, m.Work, e, c.Why)
	})
}

// each makes a plan for each device, for all at once. After an error, which names the device, what it returns must be
// closed.
func each(ctx context.Context, devs []*device.Device,
	f func(ctx context.Context, i int, d *device.Device) (*plan.Plan, error)) ([]*plan.Plan, error) {
	plans := make([]*plan.Plan, len(devs))
	err := together(ctx, len(devs), func(ctx context.Context, i int) (err error) {
		if plans[i], err = f(ctx, i, devs[i]); err != nil {
			return named(devs[i], err)
		}
		return nil
	})
	return plans, err
}

// byRows brings a range of the matrix's rows onto each device, and returns where it was cut. In fast mode the format is
// the one that the first device would take for all of A, and each range is packed as the whole was.
func (m divided) byRows(ctx context.Context, devs []*device.Device, weights []float64) ([]*plan.Plan, []int, error) {
	if m.P != 0 {
		return m.reproducible(ctx, devs, weights)
	}
	if m.A.Format() != "csr" && m.A.Kind() == dtype.Invalid { // what comes packed is not packed row by row
		format := cmp.Or(m.Format, m.A.Format())
		m.Work = m.Decoded()
		m.Format = format
	}
	var refused error // the first
	for c, err := range choose.InOrder(ctx, devs[0], m.Work) {
		if err != nil {
			return nil, nil, named(devs[0], err)
		}
		plans, bounds, err := m.packed(ctx, devs, weights, c)
		if err == nil || !work.Refusal(err) {
			return plans, bounds, err
		}
		refused = cmp.Or(refused, err, closePlans(plans))
	}
	return nil, nil, refused
}

// reproducible prepares ranges of rows for reproducible mode, in which the bits of a row depend on the row and B alone.
func (m divided) reproducible(ctx context.Context, devs []*device.Device,
	weights []float64) ([]*plan.Plan, []int, error) {
	const panel = 32
	bounds, err := m.cutEven(ctx, devs, weights, panel, kernel.Rows.Format())
	if err != nil {
		return nil, nil, err
	}
	plans, err := each(ctx, devs, func(ctx context.Context, i int, d *device.Device) (*plan.Plan, error) {
		return plan.Prepare(ctx, d, m.on(i, m.A.Rows(bounds[i], bounds[i+1])))
	})
	return plans, bounds, err
}

// packed prepares ranges of rows in a candidate's format.
func (m divided) packed(ctx context.Context, devs []*device.Device, weights []float64,
	c *choose.Candidate) ([]*plan.Plan, []int, error) {
	whole, panel := (*work.Packed)(nil), 1
	if c.Kernel.EncodeShare == nil || m.A.Kind() != dtype.Invalid {
		var err error
		if whole, err = c.Pack(ctx, m.A); err != nil {
			return nil, nil, err
		}
		panel = whole.Data.Panel
	}
	const rows = 32 // a multiple of the panels of all formats
	bounds, err := m.cutEven(ctx, devs, weights, work.LCM(rows, max(1, panel)), c.Kernel.Name)
	if err != nil {
		return nil, nil, err
	}
	m.extent = m.A.Extent()
	plans, err := each(ctx, devs, func(ctx context.Context, i int, d *device.Device) (*plan.Plan, error) {
		e, err := m.part(ctx, d, bounds[i], bounds[i+1], c, whole)
		if err != nil {
			return nil, err
		}
		return plan.Bring(ctx, d, m.on(i, m.A.Rows(bounds[i], bounds[i+1])), e, c.Why)
	})
	return plans, bounds, err
}

// part packs rows lo to hi-1 for a device: as whole was packed, or, where that is nil, to be summed as within the
// matrix.
func (m divided) part(ctx context.Context, d *device.Device, lo, hi int, c *choose.Candidate,
	whole *work.Packed) (*work.Packed, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := c.On(d, m.Work)
	if err != nil {
		return nil, err
	}
	if whole == nil {
		return c.Pack(ctx, m.A.RowsWithin(lo, hi, m.extent))
	}
	return whole.Rows(lo, hi, c.Variant)
}
