// How a group's devices share a matrix: which way it is split, where it is cut, and its parts on the devices.

package plan

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// divided is a matrix to be shared, as it is multiplied with on the left.
type divided struct {
	*source
	turned bool   // see Options.operand
	extent Extent // once rows are shared out
}

// newDivided returns the matrix to share. Of a quantised one, o is then for the precision of B.
func newDivided(a formats.Encoded, o *Options) (divided, error) {
	if q, err := o.quantised(a); q != nil || err != nil {
		if err != nil {
			return divided{}, err
		}
		return divided{source: newQuantisedSource(q)}, nil
	}
	m, turned := o.operand(a)
	return divided{source: newSource(m), turned: turned}, nil
}

// decision is a split and its reason.
type decision struct {
	split   Split
	why     string    // reads behind "because"
	weights []float64 // each device's share of the work
	misfit  string    // why not every device can hold all of A; "": all can
}

// decide takes the split that the options name, or the one that is predicted to be faster of those whose parts fit the
// devices. With t_d(n) the time that device d is predicted to take for all of A by n columns, p devices take
// max t_d(w_d·n) by columns and 1/Σ 1/t_d(n) by rows, where w_d is in proportion to 1/t_d(n).
func decide(ctx context.Context, devs []*Device, m divided, o GroupOptions) (decision, error) {
	one := decision{split: o.Split, why: "it was requested", weights: equal(len(devs)), misfit: misfit(devs, m, o)}
	if o.Split == ByColumns && o.Memory > 0 && one.misfit != "" {
		return one, fmt.Errorf("by columns each device holds all of A, and %s: %w", one.misfit, backend.ErrOutOfMemory)
	}
	if len(devs) == 1 || o.Split != AutoSplit && alike(devs) {
		switch {
		case one.split == AutoSplit && one.misfit != "":
			one.split, one.why = ByRows, one.misfit
		case one.split == AutoSplit:
			one.split, one.why = ByColumns, "there is one device"
		}
		return one, nil
	}
	times := make([]time.Duration, len(devs))
	for i, d := range devs {
		if i > 0 && alike(devs) {
			times[i] = times[0]
			continue
		}
		t, err := foretell(ctx, d, m, o.Options, o.cols())
		if err != nil {
			return one, named(d, err)
		}
		times[i] = t
	}
	one.weights = inverse(times)
	if o.Split != AutoSplit {
		return one, nil
	}
	if one.misfit != "" {
		one.split, one.why = ByRows, one.misfit
		return one, nil
	}
	return one.faster(ctx, devs, m, o, times)
}

// faster takes the split that is predicted to be faster, given the time of each device for all of A.
func (one decision) faster(ctx context.Context, devs []*Device, m divided, o GroupOptions, times []time.Duration) (decision, error) {
	n, rate := o.cols(), 0.0
	for _, t := range times {
		rate += 1 / float64(max(1, t))
	}
	byRows := time.Duration(1 / rate)
	byColumns, cuts := time.Duration(0), cutColumns(n, one.weights)
	for i, d := range devs {
		if i > 0 && alike(devs) { // the first has as many columns as any
			break
		}
		t, err := foretell(ctx, d, m, o.Options, cuts[i+1]-cuts[i])
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
			a, b := moving(devs, m, o, ByColumns, one.weights, rate), moving(devs, m, o, ByRows, one.weights, rate)
			byColumns, byRows = byColumns+a, byRows+b
			moves = fmt.Sprintf("; of these %s and %s are for moving B, %v, at %.3g GB/s", short(a), short(b), o.From, rate/1e9)
		}
	}
	// Rows have to be that much faster: every device gets all of B then, and C is not in one piece anywhere.
	const margin = 1.1
	one.split = ByColumns
	if float64(byRows)*margin < float64(byColumns) {
		one.split = ByRows
	}
	one.why = fmt.Sprintf("%d %s by columns are predicted to take %s, and by rows %s%s", n, pick(o.Right, "rows of B", "columns of B"), short(byColumns), short(byRows), moves)
	return one, nil
}

// foretell predicts a multiplication by n columns on a device in fast mode, in the fastest format that the options allow.
// Reproducible mode takes longer by a factor that is about the same for all parts of a matrix.
func foretell(ctx context.Context, d *Device, m divided, o Options, n int) (time.Duration, error) {
	o.Reproducible, o.Variant, o.Cols = 0, "", max(1, n)
	cs, err := candidates(d, m.source, o)
	if err != nil {
		return 0, err
	}
	if err := price(ctx, d, cs, m.source, o); err != nil {
		return 0, err
	}
	best := unlikely
	for _, c := range cs {
		best = min(best, c.cost)
	}
	return best, nil
}

// misfit says why not every device can hold all of A beside its columns of B and C; "" if all can.
func misfit(devs []*Device, m divided, o GroupOptions) string {
	rows, cols := m.Dims()
	size := int64(m.source.Type().Size())
	matrix := m.NNZ()*(4+size) + 8*int64(rows)
	dense := (int64(cols)*size + int64(rows)*4) * int64(o.cols()) / int64(len(devs))
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
func (o GroupOptions) have(d *Device) int64 {
	have := d.Info().Memory / 10 * 9
	if o.Memory > 0 && (have == 0 || o.Memory < have) {
		return o.Memory
	}
	return have
}

// limit sets what may be used of each device where products have n columns.
func (o *GroupOptions) limit(devs []*Device, n int) {
	o.limits = nil
	for _, d := range devs {
		var l *allowance
		if have := o.have(d); have > 0 {
			l = &allowance{have, n}
		}
		o.limits = append(o.limits, l)
	}
}

// on returns the options for device i of a group.
func (o Options) on(i int) Options {
	if o.limits != nil {
		o.within = o.limits[i]
	}
	return o
}

// alike tells whether all devices are of one kind, and so do the same work in the same time and with the same bits.
func alike(devs []*Device) bool {
	return !slices.ContainsFunc(devs, func(d *Device) bool {
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

// Tile is the number of columns that the widest loop of a kernel sums at once: eight registers of AVX-512, or a warp's lanes
// with 16 bytes each.
const Tile = 128

// cutColumns cuts n columns in proportion to weights, at multiples of Tile where that costs little, so that a column is summed
// in a tile of the same width as on one device; else at multiples of what kernels load at a time. Where there are few columns
// some devices get none.
func cutColumns(n int, weights []float64) []int {
	const little = 1.1 // times the columns that the largest share has
	most := slices.Max(weights) * float64(n)
	step := align
	if float64(up(int(math.Ceil(most-0.5)), Tile)) <= little*most {
		step = Tile
	}
	bounds, sum := make([]int, len(weights)+1), 0.0
	for i, w := range weights {
		sum += w
		bounds[i+1] = max(bounds[i], min(n, up(int(sum*float64(n)+0.5), step)))
	}
	bounds[len(weights)] = n
	return bounds
}

// cutRows cuts rows into ranges in which work is in proportion to weights, at multiples of step. An entry is the unit of
// work, and a row costs as much as a few; see cutEven.
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
		bounds[i+1] = max(bounds[i], min(rows, up(at, step)))
	}
	bounds[len(weights)] = rows
	return bounds
}

// byColumns brings all of the matrix onto each device. For devices of one kind it is packed once.
func (m divided) byColumns(ctx context.Context, devs []*Device, a formats.Encoded, o Options) ([]*Plan, error) {
	if o.Reproducible != 0 || len(devs) == 1 || !alike(devs) {
		return each(ctx, devs, func(ctx context.Context, _ int, d *Device) (*Plan, error) { return New(ctx, d, a, o) })
	}
	cs, err := choose(ctx, devs[0], m.source, o)
	if err != nil {
		return nil, named(devs[0], err)
	}
	var refused error // the first
	for _, c := range cs {
		plans, err := m.copies(ctx, devs, c, o)
		if err == nil || !refusal(err) {
			return plans, err
		}
		refused = firstOf(refused, firstOf(err, closePlans(plans)))
	}
	if len(cs) > 0 && cs[0].adopted != nil { // what it is packed in does not fit the devices
		m.source = newSource(m.csr())
		return m.byColumns(ctx, devs, a, o)
	}
	return nil, refused
}

// copies packs the matrix in a candidate's format and brings it onto each device.
func (m divided) copies(ctx context.Context, devs []*Device, c *candidate, o Options) ([]*Plan, error) {
	e, err := c.encode(ctx, m.source)
	if err != nil {
		return nil, err
	}
	return each(ctx, devs, func(ctx context.Context, _ int, d *Device) (*Plan, error) {
		p, placed, err := place(ctx, d, e, c.why)
		if err != nil {
			return nil, err
		}
		p.exec, p.given, p.right = fast{placed}, newGiven(m.Encoded, m.turned, false), o.Right
		if m.quantised != nil {
			p.Quantised = m.quantised.Kind
		}
		return p, nil
	})
}

// each makes a plan for each device, for all at once. After an error, which names the device, what it returns must be closed.
func each(ctx context.Context, devs []*Device, f func(ctx context.Context, i int, d *Device) (*Plan, error)) ([]*Plan, error) {
	plans := make([]*Plan, len(devs))
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
func (m divided) byRows(ctx context.Context, devs []*Device, weights []float64, o Options) ([]*Plan, []int, error) {
	if o.Reproducible != 0 {
		return m.reproducible(ctx, devs, weights, o)
	}
	if m.source.Format() != "csr" && m.quantised == nil { // what comes packed is not packed row by row
		if o.anyFormat() {
			o.Format = m.source.Format()
		}
		m.source = newSource(m.csr())
	}
	cs, err := choose(ctx, devs[0], m.source, o)
	if err != nil {
		return nil, nil, named(devs[0], err)
	}
	var refused error // the first
	for _, c := range cs {
		plans, bounds, err := m.packed(ctx, devs, weights, c, o)
		if err == nil || !refusal(err) {
			return plans, bounds, err
		}
		refused = firstOf(refused, firstOf(err, closePlans(plans)))
	}
	return nil, nil, refused
}

// reproducible prepares ranges of rows for reproducible mode, in which the bits of a row depend on the row and B alone.
func (m divided) reproducible(ctx context.Context, devs []*Device, weights []float64, o Options) ([]*Plan, []int, error) {
	const panel = 32
	bounds, err := m.cutEven(ctx, devs, weights, panel, kernel.Rows.Format(), o)
	if err != nil {
		return nil, nil, err
	}
	plans, err := each(ctx, devs, func(ctx context.Context, i int, d *Device) (*Plan, error) {
		part := m.csr().RowRange(bounds[i], bounds[i+1])
		p, err := newReproducible(ctx, d, part, o.on(i))
		if err == nil {
			p.given, p.right = newGiven(part, false, p.Panels == 0), o.Right
		}
		return p, err
	})
	return plans, bounds, err
}

// packed prepares ranges of rows in a candidate's format.
func (m divided) packed(ctx context.Context, devs []*Device, weights []float64, c *candidate, o Options) ([]*Plan, []int, error) {
	whole, panel := (*encoded)(nil), 1
	if c.kernel.EncodeShare == nil || m.quantised != nil {
		var err error
		if whole, err = c.encode(ctx, m.source); err != nil {
			return nil, nil, err
		}
		panel = whole.enc.Panel
	}
	const rows = 32 // what panels of all formats fit in
	bounds, err := m.cutEven(ctx, devs, weights, lcm(rows, max(1, panel)), c.kernel.Name, o)
	if err != nil {
		return nil, nil, err
	}
	all, _ := m.Dims()
	ptr, _ := m.csr().Pattern()
	m.extent = Extent{Rows: all, NNZ: m.NNZ()}
	m.extent.Pieces = m.extent.CountPieces(ptr)
	plans, err := each(ctx, devs, func(ctx context.Context, i int, d *Device) (*Plan, error) {
		e, err := m.part(ctx, d, bounds[i], bounds[i+1], c, whole, o)
		if err != nil {
			return nil, err
		}
		o := o.on(i)
		p, placed, err := placeWithin(ctx, d, e, c.why, o)
		if err != nil {
			return nil, err
		}
		p.exec = fast{placed}
		p.right = o.Right
		if p.Panels == 0 { // else values cannot be replaced
			p.given = newGiven(e.matrix.Encoded, false, false)
		}
		if m.quantised != nil {
			p.Quantised = m.quantised.Kind
		}
		return p, nil
	})
	return plans, bounds, err
}

// part packs rows lo to hi-1 for a device: as whole was packed, or, where that is nil, to be summed as within the matrix.
func (m divided) part(ctx context.Context, d *Device, lo, hi int, c *candidate, whole *encoded, o Options) (*encoded, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	start := time.Now()
	v, err := c.on(d, o, m.source)
	if err != nil {
		return nil, err
	}
	c = &candidate{kernel: c.kernel, variant: v, room: c.room, why: c.why, exact: c.exact, cols: c.cols}
	rows := m.csr().RowRange(lo, hi)
	if whole == nil {
		of := m.extent
		ptr, _ := m.csr().Pattern()
		of.Offset = ptr[lo]
		return c.encode(ctx, &source{Encoded: rows, of: of})
	}
	matrix := newSource(formats.ConvertTo(rows, v.In))
	if m.quantised != nil {
		matrix.quantised = m.quantised.RowRange(lo, hi)
	}
	enc, err := whole.matrix.part(lo, hi, c.kernel, v, whole.enc)
	if err != nil {
		return nil, err
	}
	return c.encoded(matrix, enc, time.Since(start)), nil
}

// on returns the variant of the candidate's format and packing that a device runs.
func (c *candidate) on(d *Device, o Options, m *source) (*spec.Variant, error) {
	for _, v := range usable(c.kernel, d.Caps(), o.precision(m), m.kind()) {
		if v == c.variant || o.Variant == "" && c.kernel.SamePacking(c.variant, v) {
			return v, nil
		}
	}
	return nil, fmt.Errorf("no kernel for format %s and %v as on the group's first device: %w", c.kernel.Name, o.precision(m), backend.ErrUnsupported)
}
