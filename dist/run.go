// Products of a share with B, together with the other ranks.

package dist

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/access"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/rowcopy"
	"github.com/spmmrun/spmm/internal/tensor"
)

// Timing says how long each step of a product took on a rank, and how many bytes it exchanged.
type Timing struct {
	spmm.Timing               // Host is how long the call took; Device is 0
	Copy        time.Duration // of B and C between the host and the device, by Multiply
	Ranges      time.Duration // finding the ranges of B's columns over all ranks, in reproducible mode
	Pack        time.Duration // copying rows that others need together
	Exchange    time.Duration // until all rows had come, the wait for other ranks included
	Compute     time.Duration // multiplying, and copying own rows for it
	Overlap     time.Duration // the part of Compute that ran during the exchange

	Sent, Received int64 // bytes of B, to and from other ranks
}

// Multiply computes this rank's rows of c = alpha·A·b + beta·c for matrices in the host's memory, which it copies to
// the device and back. b and c are row-major; their rows are those of Held and Shares, and all ranks have the same
// number of columns. c is not read if beta is 0. Plan.Run describes the Epilogue.
func Multiply[T formats.Value](ctx context.Context, p *Plan, alpha float64, b *formats.Dense[T], beta float64,
	c *formats.Dense[float32], e ...spmm.Epilogue) (Timing, error) {
	start := time.Now()
	if err := fits(p, b, c); err != nil {
		return Timing{}, err
	}
	if err := p.reserveHost(b.Cols); err != nil {
		return Timing{}, err
	}
	err := p.host.b.Write(ctx, hostOf(b))
	if err == nil && beta != 0 {
		err = p.host.c.Write(ctx, hostOf(c))
	}
	if err != nil {
		return Timing{}, err
	}
	in := time.Since(start)
	t, err := p.run(ctx, alpha, p.host.b, beta, p.host.c, nil, e)
	if err != nil {
		return t, err
	}
	out := time.Now()
	err = p.host.c.Read(ctx, hostOf(c))
	t.Copy, t.Host = in+time.Since(out), time.Since(start)
	return t, err
}

// hostOf describes a dense matrix of the host to package plan.
func hostOf[T formats.Value](d *formats.Dense[T]) tensor.Host {
	return tensor.Host{Data: bytesOf(d.Data), LD: d.LD, ColMajor: d.ColMajor}
}

// fits refuses matrices of other sizes than the plan's.
func fits[T formats.Value](p *Plan, b *formats.Dense[T], c *formats.Dense[float32]) error {
	if b == nil || c == nil {
		return errMissing
	}
	if err := p.fit(b.Rows, b.Cols, formats.TypeOf[T](), c.Rows, c.Cols); err != nil {
		return err
	}
	if b.ColMajor || c.ColMajor {
		return errors.New("dist: B or C is column-major: want both row-major")
	}
	return errors.Join(b.Validate(), c.Validate())
}

var errMissing = errors.New("dist: B or C is missing")

func (p *Plan) fit(bRows, bCols int, t dtype.Type, cRows, cCols int) error {
	lo, hi := p.held.Range(p.c.Rank())
	first, last := p.rows.Range(p.c.Rank())
	if t != p.elements {
		return fmt.Errorf("dist: B is of %v, and the plan takes %v", t, p.elements)
	}
	if bRows != hi-lo || cRows != last-first || bCols != cCols {
		return fmt.Errorf("dist: rank %d has B of %d×%d and C of %d×%d, and the plan takes B of %d×n and C of %d×n",
			p.c.Rank(), bRows, bCols, cRows, cCols, hi-lo, last-first)
	}
	return nil
}

// reserveHost makes tensors for host matrices of n columns.
func (p *Plan) reserveHost(n int) (err error) {
	if p.host.b != nil && p.host.b.Cols == n {
		return nil
	}
	if err := closeTensors(&p.host.b, &p.host.c); err != nil {
		return err
	}
	lo, hi := p.held.Range(p.c.Rank())
	first, last := p.rows.Range(p.c.Rank())
	if p.host.c, err = newTensor(p.dev, last-first, n, dtype.F32); err != nil {
		return err
	}
	p.host.b, err = newTensor(p.dev, hi-lo, n, p.elements)
	return err
}

func newTensor(dev *device.Device, rows, cols int, t dtype.Type) (*tensor.Tensor, error) {
	return tensor.New(dev, tensor.Shape{Rows: rows, Cols: cols, Type: t})
}

// Run computes this rank's rows of c = alpha·A·b + beta·c. The operands are tensors on the plan's device, row-major in
// one block, as spmm.NewTensor makes them. b has the share's element type and c float32; their rows are those of Held
// and Shares, and all ranks have the same number of columns. Only the rows that ranks exchange leave the device. c is
// not read if beta is 0.
//
// At most one Epilogue may be given, the same on all ranks. Its RowBias is a row-major tensor of float32 with this
// rank's rows and one column.
func (p *Plan) Run(ctx context.Context, alpha float64, b spmm.Operand, beta float64, c spmm.Operand,
	e ...spmm.Epilogue) (Timing, error) {
	return p.run(ctx, alpha, access.Tensor(b), beta, access.Tensor(c), nil, e)
}

// Repeat is Run `times` times in succession, for measurements. The Timing is the sum of all runs. If beta is not 0,
// each run adds to the c of the one before.
func (p *Plan) Repeat(ctx context.Context, times int, alpha float64, b spmm.Operand, beta float64, c spmm.Operand,
	e ...spmm.Epilogue) (sum Timing, err error) {
	if times < 1 {
		return sum, fmt.Errorf("dist: %d repetitions: at least 1 is possible", times)
	}
	for range times {
		t, err := p.Run(ctx, alpha, b, beta, c, e...)
		if err != nil {
			return sum, err
		}
		sum = sum.plus(t)
	}
	return sum, nil
}

func (t Timing) plus(u Timing) Timing {
	t.Host, t.Copy, t.Ranges, t.Pack = t.Host+u.Host, t.Copy+u.Copy, t.Ranges+u.Ranges, t.Pack+u.Pack
	t.Exchange, t.Compute, t.Overlap = t.Exchange+u.Exchange, t.Compute+u.Compute, t.Overlap+u.Overlap
	t.Sent, t.Received = t.Sent+u.Sent, t.Received+u.Received
	return t
}

// product is a product in progress, as parts take it.
type product struct {
	p           rfx.P // 0 in fast mode
	alpha, beta float64
	c           *tensor.Tensor
	epilogue    launch.Epilogue
}

// run is Run; fill, if there is one, starts to fill c, during the exchange.
func (p *Plan) run(ctx context.Context, alpha float64, b *tensor.Tensor, beta float64, c *tensor.Tensor,
	fill func() (backend.Pending, error), e []spmm.Epilogue) (t Timing, err error) {
	start := time.Now()
	q := product{alpha: alpha, beta: beta, c: c}
	if err := p.fitTensors(b, c); err != nil {
		return t, err
	}
	if q.epilogue, err = epilogueOf(e); err != nil {
		return t, err
	}
	if err := p.reserve(b.Cols); err != nil {
		return t, err
	}
	if err := p.ranges(ctx, &q, b); err != nil {
		return t, err
	}
	t.Ranges = time.Since(start)
	transfer, err := p.begin(ctx, b, &t)
	if err != nil {
		return t, err
	}
	begun := time.Now()
	inner, err := p.startInner(ctx, q, b, fill)
	if err != nil {
		giveUp(transfer)
		return t, err
	}
	during := make(chan computed, 1)
	go func() { during <- inner.measured(ctx, begun) }()
	if transfer != nil {
		err = transfer.Wait(ctx)
		t.Exchange = time.Since(begun)
	}
	after := time.Now()
	var outer started
	if err == nil {
		outer, err = p.startOuter(ctx, q)
	}
	in, out := <-during, outer.measured(ctx, after)
	t.Compute, t.Overlap = in.and(out), min(in.end.Sub(in.begin), t.Exchange)
	t.Host = time.Since(start)
	return t, errors.Join(err, in.err, out.err)
}

func (p *Plan) fitTensors(b, c *tensor.Tensor) error {
	if b == nil || c == nil {
		return errMissing
	}
	if c.Type != dtype.F32 {
		return fmt.Errorf("dist: C is of %v, and the plan takes f32", c.Type)
	}
	return p.fit(b.Rows, b.Cols, b.Type, c.Rows, c.Cols)
}

// epilogueOf returns the only one of e as package plan takes it, none if there is none.
func epilogueOf(e []spmm.Epilogue) (launch.Epilogue, error) {
	switch len(e) {
	case 0:
		return launch.Epilogue{}, nil
	case 1:
		return launch.NewEpilogue(access.Tensor(e[0].RowBias), access.Tensor(e[0].ColBias),
			launch.Activation(e[0].Activation)), nil
	}
	return launch.Epilogue{}, errors.New("dist: at most one epilogue is possible")
}

// reserve allocates what products with n columns take.
func (p *Plan) reserve(n int) (err error) {
	if p.buffers != nil && p.buffers.cols == n {
		return nil
	}
	if err := p.buffers.close(); err != nil {
		return err
	}
	p.buffers = nil
	b, err := newBuffers(p.x, p.dev, p.elements, p.local, n)
	if err != nil {
		return err
	}
	for _, q := range p.parts() {
		if err := q.reserve(n, p.elements, q == p.inner && q.ranged); err != nil {
			return errors.Join(err, b.close())
		}
	}
	p.buffers = b
	return nil
}

// ranges finds the ranges of B's columns, in reproducible mode, and with them the product's precision. The last row of
// the parts' B gets an element of each range.
func (p *Plan) ranges(ctx context.Context, q *product, b *tensor.Tensor) error {
	at, peaks, err := p.mode.settle(ctx, p.c, p.dev, b)
	if q.p = at; err != nil || len(peaks) == 0 {
		return err
	}
	row := elementsOf(peaks, p.elements)
	for _, x := range p.parts() {
		to := p.buffers.local
		switch {
		case !x.ranged:
			continue
		case x == p.inner:
			to = x.b
		}
		memory, pitch, err := to.Memory()
		if err != nil {
			return err
		}
		if err := memory.Write(ctx, int64(to.Rows-1)*int64(pitch), append(row, make([]byte, pitch-len(row))...)); err != nil {
			return err
		}
	}
	return nil
}

// begin packs own rows of B that others need and begins the exchange; nil where there is nothing to exchange.
func (p *Plan) begin(ctx context.Context, b *tensor.Tensor, t *Timing) (comm.Transfer, error) {
	if p.c.Size() == 1 {
		return nil, nil
	}
	start := time.Now()
	if !p.x.gather {
		var s started
		if err := s.and(rowcopy.Start(ctx, p.dev, p.buffers.out, b, rowcopy.Rows{From: p.send})); err != nil {
			return nil, err
		}
		if err := s.wait(ctx); err != nil {
			return nil, err
		}
	}
	t.Pack = time.Since(start)
	row := int64(b.Cols) * int64(p.elements.Size())
	transfer, err := p.x.begin(ctx, p.buffers, b)
	if transfer != nil {
		t.Sent, t.Received = int64(p.x.sending)*row, int64(p.x.halo)*row
	}
	return transfer, err
}

// giveUp ends a transfer that nobody waits for, so that its buffers may be closed; nil is none.
func giveUp(t comm.Transfer) {
	if t == nil {
		return
	}
	ended, end := context.WithCancel(context.Background())
	end()
	_ = t.Wait(ended) // which says that the context has ended
}

// startInner begins what needs nothing from other ranks.
func (p *Plan) startInner(ctx context.Context, q product, b *tensor.Tensor,
	fill func() (backend.Pending, error)) (s started, err error) {
	if fill != nil {
		if err := s.and(fill()); err != nil {
			return nil, err
		}
	}
	if p.inner != nil {
		more, err := p.inner.start(ctx, q, b)
		if err != nil {
			return nil, err
		}
		s = append(s, more...)
	}
	if len(p.outer) > 0 && !p.x.gather {
		err = s.and(rowcopy.Start(ctx, p.dev, p.buffers.local, b, rowcopy.Rows{From: p.ownList, Dst: p.at}))
	}
	return s, err
}

// startOuter begins what needs rows of B from other ranks.
func (p *Plan) startOuter(ctx context.Context, q product) (s started, err error) {
	for _, x := range p.outer {
		more, err := x.start(ctx, q, p.buffers.local)
		if s = append(s, more...); err != nil {
			return s, err
		}
	}
	return s, nil
}

// started is work on the device that is under way.
type started []backend.Pending

// and adds work that has begun.
func (s *started) and(p backend.Pending, err error) error {
	if err == nil {
		*s = append(*s, p)
	}
	return err
}

// wait returns when all is done.
func (s started) wait(ctx context.Context) error {
	for _, p := range s {
		if _, err := p.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// measured waits, and returns when the work was done; no work takes no time.
func (s started) measured(ctx context.Context, begin time.Time) computed {
	if len(s) == 0 {
		return computed{begin, begin, nil}
	}
	err := s.wait(ctx)
	return computed{begin, time.Now(), err}
}

// computed is when something was computed.
type computed struct {
	begin, end time.Time
	err        error
}

// and returns how long x or y, which began later, was computed; when both were, the time counts once.
func (x computed) and(y computed) time.Duration {
	from := y.begin
	if x.end.After(from) {
		from = x.end
	}
	return x.end.Sub(x.begin) + max(0, y.end.Sub(from))
}
