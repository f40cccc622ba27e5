// A sparse matrix on several devices: preparing it, what there is to know of it, and new values.

package many

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/resident"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/values"
	"github.com/spmmrun/spmm/internal/work"
)

// Sharing says how devices share a product. The zero value leaves it open.
type Sharing struct {
	Split  api.Split
	Memory int64     // bytes that may be used of each device; 0: what it has
	From   Placement // where B lies before each product
}

// plansMade counts plans.
var plansMade atomic.Int64

// Plan is a matrix on several devices. Its methods may be called from any goroutine; multiplications run one after
// another.
type Plan struct {
	number int64 // of all, by which sequences take several in one order

	Split api.Split // api.ByColumns or api.ByRows
	Why   string

	all     whole
	plans   []*plan.Plan // one for each device
	weights []float64
	bounds  []int   // api.ByRows: the rows of each device
	entries []int64 // api.ByRows: where the entries of each begin
	given   *values.Given
	most    int // columns of a product for which there is memory on the devices; 0: any number, as far as is known

	mu     sync.Mutex
	closed bool
	alone  bool       // its operands are Tensors of the only device
	torn   error      // why some devices have new values and others not, after SetHostValues
	held   [4]*Tensor // by role: what lay elsewhere in the last product
	chunks []chunked  // by device: see overlap
}

// whole is the size of the matrix.
type whole struct {
	plan.Sides
	NNZ int64
}

// Prepare prepares a matrix, which is not needed afterwards, for devices that multiply together, or for one by itself.
func Prepare(ctx context.Context, devs []*device.Device, together bool, w *work.Work, s Sharing) (Matrix, error) {
	if !together && s == (Sharing{}) {
		p, err := plan.Prepare(ctx, devs[0], w)
		if err != nil {
			return nil, err
		}
		return one{p}, nil
	}
	g, err := New(ctx, devs, w, s)
	if err != nil {
		return nil, err
	}
	g.alone = !together
	return g, nil
}

// New prepares a matrix for one or more devices that multiply together.
func New(ctx context.Context, devs []*device.Device, w *work.Work, sh Sharing) (*Plan, error) {
	if err := sh.validate(devs, w); err != nil {
		return nil, err
	}
	m := divided{Work: w}
	s, err := decide(ctx, devs, m, sh)
	if err != nil {
		return nil, err
	}
	g := &Plan{number: plansMade.Add(1), Split: s.split, Why: s.why, weights: s.weights,
		chunks: make([]chunked, len(devs))}
	rows, cols := w.A.Dims()
	g.all = whole{plan.Sides{Rows: rows, Cols: cols, Right: w.Right}, w.A.NNZ()}
	if s.split == api.ByRows {
		err = g.divideRows(ctx, devs, m, s, sh)
	} else {
		g.plans, err = m.byColumns(ctx, devs)
	}
	if err != nil {
		return nil, cmp.Or(err, closePlans(g.plans))
	}
	if s.split == api.ByRows {
		ptr, _ := w.A.CSR().Pattern()
		for _, row := range g.bounds {
			g.entries = append(g.entries, ptr[row]-ptr[0])
		}
		g.given = values.NewGiven(w.A.Encoded, w.Reordered, false)
	}
	return g, nil
}

// SetHostValues makes values, in the order of Plan.SetValues, those of the matrix's entries, on all devices.
func (g *Plan) SetHostValues(ctx context.Context, v values.Host) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fmt.Errorf("the plan: %w", backend.ErrClosed)
	}
	if n := v.Len(); int64(n) != g.all.NNZ {
		return fmt.Errorf("%d values for a matrix of %d entries", n, g.all.NNZ)
	}
	for _, p := range g.plans { // before any device has new values
		if err := p.MayChange(ctx); err != nil {
			return named(p.Device(), err)
		}
	}
	if g.Split == api.ByRows && g.given.Reordered { // by the rows of what is multiplied with
		v.Data = g.given.InOrder(v)
	}
	size := int64(v.Type.Size())
	g.torn = together(ctx, len(g.plans), func(ctx context.Context, d int) error {
		part := v
		if g.Split == api.ByRows {
			part.Data = v.Data[g.entries[d]*size : g.entries[d+1]*size]
		}
		if err := g.plans[d].SetHostValues(ctx, part); err != nil {
			return named(g.plans[d].Device(), err)
		}
		return nil
	})
	return g.torn
}

// usable refuses to multiply where the plan is closed, or devices have different values.
func (g *Plan) usable() error {
	switch {
	case g.closed:
		return fmt.Errorf("the plan: %w", backend.ErrClosed)
	case g.torn != nil:
		return fmt.Errorf("the matrix has new values on some devices and old ones on others: set its values again; when they were set last: %w", g.torn)
	}
	return nil
}

// divideRows brings ranges of rows onto the devices. Where memory is scarce it is for as many columns as there is room
// for.
func (g *Plan) divideRows(ctx context.Context, devs []*device.Device, m divided, s decision, o Sharing) (err error) {
	n := m.Cols
	scarce := o.Memory > 0 || s.misfit != ""
	rows, cols := m.A.Dims()
	each := int64(cols)*int64(m.Precision.Size()) + 4*int64(rows)/int64(len(devs)) // bytes of a column of B and C
	for _, d := range devs {
		for have := o.have(d); scarce && have > 0 && n > tensor.Align && each*int64(n) > have/4*3; {
			n = fewer(n)
		}
	}
	for {
		if scarce {
			m.budgets = o.budgets(devs, n)
			g.most = n
		}
		g.plans, g.bounds, err = m.byRows(ctx, devs, s.weights)
		if !scarce || n <= tensor.Align || !errors.Is(err, backend.ErrOutOfMemory) {
			return err
		}
		if err := closePlans(g.plans); err != nil {
			return err
		}
		n = fewer(n)
	}
}

// fewer is about half as many columns.
func fewer(n int) int {
	if n > 2*Tile {
		return tensor.Up(n/2, Tile)
	}
	return max(tensor.Align, n/2/tensor.Align*tensor.Align)
}

// validate refuses what no matrix can make right on these devices.
func (s Sharing) validate(devs []*device.Device, w *work.Work) error {
	switch {
	case s.From.check(len(devs)) != nil:
		return fmt.Errorf("Options.From: %w", s.From.check(len(devs)))
	case w.A.IsPart():
		return errors.New("Form.Whole is for a device by itself")
	case w.Tune && len(devs) > 1:
		return errors.New("Options.Tune: tune on one of the devices: what is found is remembered for all of its kind")
	}
	return nil
}

// Parts returns what each device holds.
func (g *Plan) Parts() []api.PlanInfo {
	var parts []api.PlanInfo
	for _, p := range g.plans {
		parts = append(parts, p.Describe())
	}
	return parts
}

// Describe returns the Info of the whole matrix, in the caller's terms; the format and the variant are the first
// device's.
func (g *Plan) Describe() api.PlanInfo {
	parts := g.Parts()
	whole := parts[0]
	if g.Split == api.ByRows {
		for _, p := range parts[1:] {
			whole.Panels = max(whole.Panels, p.Panels)
			whole.Stats = resident.AddStats(whole.Stats, p.Stats, g.all.NNZ)
			whole.ChooseTime = max(whole.ChooseTime, p.ChooseTime)
			whole.EncodeTime, whole.UploadTime = max(whole.EncodeTime, p.EncodeTime), max(whole.UploadTime, p.UploadTime)
		}
	}
	whole.Rows, whole.Cols, whole.NNZ = g.all.Rows, g.all.Cols, g.all.NNZ
	if g.all.Right {
		whole.Rows, whole.Cols = whole.Cols, whole.Rows
	}
	whole.Split, whole.WhySplit, whole.Columns = g.Split, g.Why, g.most
	return whole
}

// Single returns the only device's plan, nil if there are several.
func (g *Plan) Single() *plan.Plan {
	if len(g.plans) == 1 {
		return g.plans[0]
	}
	return nil
}

// SetValues is SetHostValues of a tensor's elements, which go through the host's memory.
func (g *Plan) SetValues(ctx context.Context, v tensor.Operand) error {
	if v == nil {
		return errors.New("the tensor of values is missing")
	}
	s := v.Described()
	if s.Rows != 1 && s.Cols != 1 {
		return fmt.Errorf("values of %d×%d for a matrix of %d entries: want 1×%d or %d×1", s.Rows, s.Cols, g.all.NNZ, g.all.NNZ, g.all.NNZ)
	}
	h := values.Host{Type: s.Type, Data: make([]byte, s.Rows*s.Cols*s.Type.Size())}
	if err := v.Read(ctx, tensor.Host{Data: h.Data, LD: s.Rows * s.Cols, ColMajor: s.Rows != 1}); err != nil {
		return err
	}
	return g.SetHostValues(ctx, h)
}

// Reproduced is Plan.Reproduced: the largest precision that a device took, and whether none lost anything.
func (g *Plan) Reproduced() (bits rfx.P, lossless bool) {
	lossless = true
	for _, p := range g.plans {
		b, l := p.Reproduced()
		if b == 0 { // it had nothing to do
			continue
		}
		bits, lossless = max(bits, b), lossless && l
	}
	return bits, lossless && bits > 0
}

// Attainable returns the bounds of the device whose part of a multiplication by n columns takes longest, C having
// elements of type out and not being read, with an epilogue.
func (g *Plan) Attainable(ctx context.Context, n int, out dtype.Type, e launch.Epilogue) (api.Bound, error) {
	return g.slowest(n, e, func(p *plan.Plan, n int, e launch.Epilogue) (api.Bound, error) {
		return p.Attainable(ctx, n, out, e)
	})
}

// Observe is Plan.Observe of each device. No device takes longer than the product.
func (g *Plan) Observe(ctx context.Context, n int, out dtype.Type, took time.Duration,
	e launch.Epilogue) (api.Bound, error) {
	return g.slowest(n, e, func(p *plan.Plan, n int, e launch.Epilogue) (api.Bound, error) {
		return p.Observe(ctx, n, out, took, e)
	})
}

// slowest returns the longest bound of a device, for its part of n columns.
func (g *Plan) slowest(n int, e launch.Epilogue,
	bound func(p *plan.Plan, n int, e launch.Epilogue) (api.Bound, error)) (api.Bound, error) {
	var most api.Bound
	row, err := g.tensor(e.RowBias)
	if err != nil {
		return most, err
	}
	col, err := g.tensor(e.ColBias)
	if err != nil {
		return most, err
	}
	cuts := cutColumns(n, g.weights)
	for d, p := range g.plans {
		part := n
		if g.Split == api.ByColumns {
			if part = cuts[d+1] - cuts[d]; part == 0 && d > 0 {
				continue
			}
		}
		b, err := bound(p, part, launch.NewEpilogue(row.part(d), col.part(d), e.Activation))
		if err != nil {
			return most, named(p.Device(), err)
		}
		if b.Time() >= most.Time() {
			most = b
		}
	}
	return most, nil
}

// named puts a device's name before an error.
func named(d *device.Device, err error) error {
	i := d.Info()
	return fmt.Errorf("%s:%d: %w", i.Backend, i.Index, err)
}

// Close waits for the multiplication in progress and frees everything the plan holds on the devices. A second call does
// nothing.
func (g *Plan) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	var errs []error
	for i, t := range g.held {
		if t != nil {
			errs = append(errs, t.Close())
			g.held[i] = nil
		}
	}
	for d := range g.chunks {
		errs = append(errs, g.chunks[d].close(g.plans[d]))
	}
	return cmp.Or(append(errs, closePlans(g.plans))...)
}

func closePlans(plans []*plan.Plan) error {
	var errs []error
	for _, p := range plans {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return cmp.Or(errs...)
}
