// A share of A on a device, and multiplying with it together with the other ranks.

package dist

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

// Options say how to prepare.
type Options struct {
	// Multiply is what each rank prepares its share with. Of its fields, Format, Precision, Cols, Mode, P and Variant may be set;
	// Precision must be stored as the share's elements are. All ranks give the same.
	Multiply spmm.Options
	// B says which rows of B each rank holds; nil: those with the numbers of its rows of A, if A is square, else about as many
	// as the others.
	B Bounds
	// Exchange is how rows of B are brought to those that need them.
	Exchange Exchange
}

// Plan is a rank's share of A on its device, and what it takes to multiply with it. One goroutine at a time may use it.
type Plan[T formats.Value] struct {
	c       comm.Comm
	rows    Bounds // of A and C
	held    Bounds // of B
	x       *exchange
	inner   *part[T] // rows that meet own rows of B alone; nil if they are not multiplied by themselves
	outer   *part[T] // the others; nil if all are in inner
	mode    *reproducible
	nnz     int64 // of the share
	buffers *buffers[T]
}

// Info is what there is to know of a rank's plan.
type Info struct {
	Rows, NNZ int64         // of the share
	Inner     int64         // entries in rows that meet own rows of B alone, which are multiplied during the exchange
	Gather    bool          // all rows of B are gathered
	Stored    int64         // bytes of the share as the device has it
	Ghosts    int64         // rows of B that are received for each product
	Sent      int64         // rows of B that are sent
	Plan      spmm.PlanInfo // of the larger part
}

// Prepare plans products with the matrix of which every rank gives its share, on a device of its own each, which may be the
// same. It is collective, as all that follows is. The share may be changed or dropped afterwards. An error that one rank has
// is an error on all.
func Prepare[T formats.Value](ctx context.Context, c comm.Comm, dev *spmm.Device, s Share[T], o Options) (*Plan[T], error) {
	rows, err := s.bounds(c)
	if err != nil {
		return nil, err
	}
	p := &Plan[T]{c: c, rows: rows, held: o.B, nnz: s.A.NNZ()}
	if p.held == nil {
		p.held = Even(s.A.Cols, c.Size())
		if s.A.Cols == rows.Rows() {
			p.held = rows
		}
	}
	all := []int64{s.A.NNZ()}
	if err := c.AllReduce(all, comm.Sum); err != nil {
		return nil, err
	}
	err = errors.Join(o.check(formats.TypeOf[T]()), p.held.check(s.A.Cols, c.Size()))
	if err == nil {
		err = s.A.Validate()
	}
	if err = comm.Agree(c, err, nil); err != nil {
		return nil, err
	}
	mo := o.Multiply
	if mo.Mode != spmm.Reproducible && (mo.Format == "" || mo.Format == "auto" || mo.Format == "csr") {
		mo.Whole = spmm.Extent{Rows: rows.Rows(), NNZ: all[0]}
	}
	p.mode, err = newReproducible(c, s.A, mo)
	if err != nil {
		return nil, err
	}
	if err := p.split(s.A, o.Exchange); err != nil {
		return nil, err
	}
	var errs []error
	for _, q := range p.parts() {
		q.dev, q.options = dev, mo
		errs = append(errs, q.prepare(ctx, p.mode.first()))
	}
	if err := comm.Agree(c, errors.Join(errs...), nil); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// check refuses options that cannot be heeded.
func (o Options) check(elements dtype.Type) error {
	m := o.Multiply
	switch {
	case m.Transpose || m.Right || m.Tune || m.Quantise != dtype.Invalid || m.Whole != (spmm.Extent{}):
		return errors.New("dist: Transpose, Right, Tune, Quantise and Whole are not for shares of a matrix")
	case m.Precision != dtype.Invalid && m.Precision.Storage() != elements:
		return fmt.Errorf("dist: precision %v for a share with elements of %v: convert it first", m.Precision, elements)
	case o.Exchange < Auto || o.Exchange > Gather:
		return fmt.Errorf("dist: exchange %d", o.Exchange)
	}
	return m.Validate()
}

// parts lists those that there are.
func (p *Plan[T]) parts() []*part[T] {
	var ps []*part[T]
	for _, q := range []*part[T]{p.inner, p.outer} {
		if q != nil {
			ps = append(ps, q)
		}
	}
	return ps
}

// Held returns the rows of B that each rank holds: Run takes this rank's.
func (p *Plan[T]) Held() Bounds { return p.held }

// Shares returns the rows of A and C that each rank holds.
func (p *Plan[T]) Shares() Bounds { return p.rows }

// Info tells what was planned on this rank.
func (p *Plan[T]) Info() Info {
	i := Info{NNZ: p.nnz, Gather: p.x.gather, Ghosts: int64(p.x.ghosts), Sent: int64(p.x.sending)}
	lo, hi := p.rows.Range(p.c.Rank())
	i.Rows = int64(hi - lo)
	if p.inner != nil {
		i.Inner = p.inner.nnz
	}
	for _, q := range p.parts() {
		info := q.info()
		i.Stored += info.Stats.StoredBytes
		if info.NNZ >= i.Plan.NNZ {
			i.Plan = info
		}
	}
	return i
}

// Reproduced returns the precision of the last product in reproducible mode, and whether it was found by AutoP to lose
// nothing.
func (p *Plan[T]) Reproduced() (bits int, lossless bool) { return p.mode.last() }

// Timing is how a rank spent a product, and what it moved.
type Timing struct {
	Total    time.Duration
	Ranges   time.Duration // finding the ranges of B's columns over all ranks, in reproducible mode
	Pack     time.Duration // gathering rows that others need, and copying own ones
	Exchange time.Duration // until all rows had come, the wait for other ranks included
	Compute  time.Duration // multiplying, copies to and from the device included
	Overlap  time.Duration // the part of Compute that ran during the exchange

	Sent, Received int64 // bytes of B to and from other ranks
}

// Run computes this rank's rows of C = alpha·A·B + beta·C, given its rows of B: b and c are row-major, with the rows that
// Held and Shares say, and as many columns on all ranks. c is not read where beta is 0, and must not be b. An error leaves
// ranks out of step: the job is to be aborted.
func (p *Plan[T]) Run(ctx context.Context, alpha float32, b *formats.Dense[T], beta float32, c *formats.Dense[float32]) (Timing, error) {
	var t Timing
	start := time.Now()
	if err := p.fits(b, c); err != nil {
		return t, err
	}
	bits, peaks, err := settle(p.mode, p.c, b)
	if err != nil {
		return t, err
	}
	t.Ranges = time.Since(start)
	if err := p.reserve(b.Cols); err != nil {
		return t, err
	}
	packing := time.Now()
	p.pack(b)
	t.Pack = time.Since(packing)

	inner := make(chan computed, 1)
	exchanging := time.Now()
	go func() {
		inner <- timed(p.inner, func() error { return p.inner.multiply(ctx, bits, peaks, alpha, b, beta, c) })
	}()
	if p.c.Size() > 1 {
		err = run(p.x, p.buffers, b)
		t.Exchange = time.Since(exchanging)
		size := int64(b.Cols) * int64(sizeOf[T]())
		t.Sent, t.Received = int64(p.x.sending)*size, int64(p.x.ghosts)*size
	}
	var out computed
	if err == nil {
		out = timed(p.outer, func() error { return p.outer.multiply(ctx, bits, peaks, alpha, p.buffers.local, beta, c) })
	}
	in := <-inner
	t.Compute = in.and(out)
	t.Overlap = min(in.end.Sub(in.begin), t.Exchange)
	t.Total = time.Since(start)
	return t, errors.Join(err, in.err, out.err)
}

// computed is when a part was multiplied; the zero value says that there is none.
type computed struct {
	begin, end time.Time
	err        error
}

// timed calls f, which multiplies q, unless that is nil.
func timed[T formats.Value](q *part[T], f func() error) computed {
	if q == nil {
		return computed{}
	}
	x := computed{begin: time.Now()}
	x.err = f()
	x.end = time.Now()
	return x
}

// and returns how long x or y, which began later, was multiplied; when both were, the time counts once.
func (x computed) and(y computed) time.Duration {
	from := y.begin
	if x.end.After(from) {
		from = x.end
	}
	return x.end.Sub(x.begin) + max(0, y.end.Sub(from))
}

// fits refuses operands of other sizes than the plan's.
func (p *Plan[T]) fits(b *formats.Dense[T], c *formats.Dense[float32]) error {
	if b == nil || c == nil {
		return errors.New("dist: B or C is missing")
	}
	lo, hi := p.held.Range(p.c.Rank())
	first, last := p.rows.Range(p.c.Rank())
	switch {
	case b.Rows != hi-lo || c.Rows != last-first || b.Cols != c.Cols:
		return fmt.Errorf("dist: rank %d has B of %d×%d and C of %d×%d, and the plan takes B of %d×n and C of %d×n",
			p.c.Rank(), b.Rows, b.Cols, c.Rows, c.Cols, hi-lo, last-first)
	case b.ColMajor || c.ColMajor || b.LD != b.Cols:
		return errors.New("dist: B and C are row-major, B without padding")
	}
	return errors.Join(b.Validate(), c.Validate())
}

// reserve allocates buffers for products with n columns.
func (p *Plan[T]) reserve(n int) (err error) {
	if p.buffers != nil && p.buffers.cols == n {
		return nil
	}
	p.buffers.close()
	rows := comm.End(p.x.received) + 1
	if p.outer != nil {
		rows = p.outer.a.Cols
	}
	p.buffers, err = newBuffers[T](p.x, rows, n)
	return err
}

// pack copies own rows of B to where they are sent from, and to the local B.
func (p *Plan[T]) pack(b *formats.Dense[T]) {
	n := b.Cols
	copyRows(p.x.send, func(at int, row int32) { copy(p.buffers.out[at*n:(at+1)*n], b.Line(int(row))) })
	if p.outer == nil || p.x.gather {
		return
	}
	copyRows(p.outer.own, func(at int, row int32) { copy(p.buffers.local.Line(p.outer.at+at), b.Line(int(row))) })
}

// Close frees what the plan holds. It is not collective.
func (p *Plan[T]) Close() error {
	var errs []error
	for _, q := range p.parts() {
		errs = append(errs, q.close())
	}
	p.buffers.close()
	p.buffers = nil
	return errors.Join(errs...)
}

func workers() int { return runtime.GOMAXPROCS(0) }
