// A share of A on a device, and multiplying with it together with the other ranks.

package dist

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
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
	// Via exchanges them between the ranks' devices; nil: through the host's memory. It stays the caller's.
	Via comm.DeviceComm
}

// Plan is a rank's share of A on its device, and what it takes to multiply with it. One goroutine at a time may use it.
type Plan[T formats.Value] struct {
	c       comm.Comm
	dev     *spmm.Device
	rows    Bounds // of A and C
	held    Bounds // of B
	x       *exchange
	inner   *part[T]   // rows that meet own rows of B alone; nil if they are not multiplied by themselves
	outer   []*part[T] // the others; none if all are in inner
	local   int        // rows of the local B, which the outer parts share
	own     []int32    // own rows of B that are in it, ascending, from row at on
	at      int
	ownList *spmm.RowList // own, on the device
	mode    *reproducible
	nnz     int64           // of the share
	send    *spmm.RowList   // own rows that others need
	buffers *buffers[T]     // of the last product
	staged  comm.DeviceComm // nil: the caller's is used
	host    struct {        // what Run has of host matrices on the device
		b *spmm.Tensor[T]
		c *spmm.Tensor[float32]
	}
}

// Info is what there is to know of a rank's plan.
type Info struct {
	Rows, NNZ int64         // of the share
	Inner     int64         // entries in rows that meet own rows of B alone, which are multiplied during the exchange
	Gather    bool          // all rows of B are gathered
	Via       string        // how rows of B travel
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
	p := &Plan[T]{c: c, dev: dev, rows: rows, held: o.B, nnz: s.A.NNZ()}
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
		pieces := []int64{mo.Whole.CountPieces(s.A.RowPtr)}
		if err := c.AllReduce(pieces, comm.Sum); err != nil {
			return nil, err
		}
		mo.Whole.Pieces = pieces[0]
		if mo.Whole.Offset, err = before(c, s.A.NNZ()); err != nil {
			return nil, err
		}
	}
	p.mode, err = newReproducible(c, s.A, mo)
	if err != nil {
		return nil, err
	}
	runs := mo.Whole != (spmm.Extent{}) && dev.Info().Backend != "cpu"
	if err := p.split(s.A, o.Exchange, runs); err != nil {
		return nil, err
	}
	if p.x.via = o.Via; o.Via == nil {
		p.staged = comm.Staged(c)
		p.x.via = p.staged
	}
	var errs []error
	p.send, err = spmm.NewRowList(ctx, dev, p.x.send)
	errs = append(errs, err)
	p.ownList, err = spmm.NewRowList(ctx, dev, p.own)
	errs = append(errs, err)
	for _, q := range p.parts() {
		q.dev, q.options = dev, mo
		if runs {
			q.options.Whole.Offset += s.A.RowPtr[q.first]
		}
		errs = append(errs, q.prepare(ctx, p.mode.first()), q.place(ctx))
	}
	if err := comm.Agree(c, errors.Join(errs...), nil); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// before returns the sum of what the ranks below this one give.
func before(c comm.Comm, mine int64) (int64, error) {
	all := make([]int64, c.Size())
	all[c.Rank()] = mine
	if err := c.AllReduce(all, comm.Sum); err != nil {
		return 0, err
	}
	sum := int64(0)
	for _, x := range all[:c.Rank()] {
		sum += x
	}
	return sum, nil
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
	if p.inner != nil {
		ps = append(ps, p.inner)
	}
	return append(ps, p.outer...)
}

// Held returns the rows of B that each rank holds: Run takes this rank's.
func (p *Plan[T]) Held() Bounds { return p.held }

// Shares returns the rows of A and C that each rank holds.
func (p *Plan[T]) Shares() Bounds { return p.rows }

// Info tells what was planned on this rank.
func (p *Plan[T]) Info() Info {
	i := Info{NNZ: p.nnz, Gather: p.x.gather, Via: p.x.via.Name(), Ghosts: int64(p.x.ghosts), Sent: int64(p.x.sending)}
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

// Memory returns the bytes that products by n columns take besides A, B and C: of the device's memory and of the host's. The CPU's
// devices have theirs in the host's.
func (p *Plan[T]) Memory(n int) (device, host int64) {
	const elements = 8 // tensors have lines of a multiple of so many
	wide := int64(n+elements-1) / elements * elements
	row := wide * int64(sizeOf[T]())
	device = int64(len(p.x.send)+p.local) * row
	if p.staged != nil {
		sent := int64(p.x.sending)
		if lo, hi := p.held.Range(p.c.Rank()); p.x.gather {
			sent = int64(hi - lo)
		}
		host = (sent + int64(comm.End(p.x.received))) * row
	}
	fixed := int64(0) // B in fixed point
	if p.mode != nil {
		fixed = wide * int64(rfx.P47.Size())
		if p.mode.bits != spmm.AutoP {
			fixed = wide * int64(rfx.P(p.mode.bits).Size())
		}
	}
	for _, q := range p.parts() {
		device += int64(q.a.Cols) * fixed
		if q == p.inner && q.ranged {
			device += int64(q.a.Cols) * row
		}
		if !q.all {
			device += int64(q.a.Rows) * sizeOfF32 * (wide + 1)
		}
	}
	return device, host
}

const sizeOfF32 = 4

// Timing is how a rank spent a product, and what it moved.
type Timing struct {
	Total    time.Duration
	Copy     time.Duration // of B and C between the host and the device, by Run
	Ranges   time.Duration // finding the ranges of B's columns over all ranks, in reproducible mode
	Pack     time.Duration // gathering rows that others need
	Exchange time.Duration // until all rows had come, the wait for other ranks included
	Compute  time.Duration // multiplying, and copying own rows for it
	Overlap  time.Duration // the part of Compute that ran during the exchange

	Sent, Received int64 // bytes of B, to and from other ranks
}

// Run computes this rank's rows of C = alpha·A·B + beta·C, given its rows of B: b and c are row-major, with the rows that
// Held and Shares say, and as many columns on all ranks. c is not read where beta is 0. They are copied to the device and
// back; see RunTensors, which says what an Epilogue may be. An error leaves ranks out of step: the job is to be aborted.
func (p *Plan[T]) Run(ctx context.Context, alpha float32, b *formats.Dense[T], beta float32, c *formats.Dense[float32], e ...spmm.Epilogue) (Timing, error) {
	start := time.Now()
	if err := p.fits(b, c); err != nil {
		return Timing{}, err
	}
	if err := p.reserveHost(b.Cols); err != nil {
		return Timing{}, err
	}
	err := p.host.b.Upload(ctx, b)
	if err == nil && beta != 0 {
		err = p.host.c.Upload(ctx, c)
	}
	if err != nil {
		return Timing{}, err
	}
	in := time.Since(start)
	t, err := p.RunTensors(ctx, alpha, p.host.b, beta, p.host.c, e...)
	if err != nil {
		return t, err
	}
	out := time.Now()
	err = p.host.c.Download(ctx, c)
	t.Copy, t.Total = in+time.Since(out), time.Since(start)
	return t, err
}

// reserveHost makes tensors for host matrices of n columns.
func (p *Plan[T]) reserveHost(n int) (err error) {
	if p.host.b != nil {
		if _, cols := p.host.b.Dims(); cols == n {
			return nil
		}
	}
	if err := p.releaseHost(); err != nil {
		return err
	}
	lo, hi := p.held.Range(p.c.Rank())
	first, last := p.rows.Range(p.c.Rank())
	c, err := spmm.NewTensor[float32](p.dev, last-first, n, false)
	if err != nil {
		return err
	}
	p.host.c = c
	p.host.b, err = spmm.NewTensor[T](p.dev, hi-lo, n, false)
	return err
}

func (p *Plan[T]) releaseHost() error {
	var errs []error
	if p.host.b != nil {
		errs = append(errs, p.host.b.Close())
	}
	if p.host.c != nil {
		errs = append(errs, p.host.c.Close())
	}
	p.host.b, p.host.c = nil, nil
	return errors.Join(errs...)
}

// RunTensors computes this rank's rows of C = alpha·A·B + beta·C from its rows of B, both on the plan's device and row-major
// in one block, as NewTensor makes them, with the rows that Held and Shares say and as many columns on all ranks. Nothing but
// what ranks exchange leaves the device. c is not read where beta is 0. An error leaves ranks out of step: the job is to be
// aborted.
//
// At most one Epilogue may be given, the same on all ranks. Its RowBias is a row-major tensor of f32, of this rank's rows and
// one column.
func (p *Plan[T]) RunTensors(ctx context.Context, alpha float32, b *spmm.Tensor[T], beta float32, c *spmm.Tensor[float32], e ...spmm.Epilogue) (Timing, error) {
	return p.run(ctx, alpha, b, beta, c, nil, e...)
}

// run is RunTensors; prepare, if there is one, begins what is to be done to c before, during the exchange.
func (p *Plan[T]) run(ctx context.Context, alpha float32, b *spmm.Tensor[T], beta float32, c *spmm.Tensor[float32], prepare func() (*spmm.Pending, error), e ...spmm.Epilogue) (Timing, error) {
	var t Timing
	start := time.Now()
	if err := p.fitTensors(b, c); err != nil {
		return t, err
	}
	_, n := b.Dims()
	if err := p.reserve(n); err != nil {
		return t, err
	}
	bits, peaks, err := settle(ctx, p.mode, p.c, b)
	if err == nil {
		err = p.writePeaks(ctx, peaks)
	}
	if err != nil {
		return t, err
	}
	t.Ranges = time.Since(start)
	var transfer comm.Transfer
	packed := time.Now()
	if p.c.Size() > 1 {
		if err := p.pack(ctx, b); err != nil {
			return t, err
		}
		t.Pack = time.Since(packed)
		packed = time.Now()
		if transfer, err = begin(ctx, p.x, p.buffers, b); err != nil {
			return t, err
		}
	}
	inner, err := p.startInner(ctx, bits, alpha, b, beta, c, prepare, e)
	if err != nil {
		giveUp(transfer)
		return t, err
	}
	meanwhile := make(chan computed, 1)
	go func() { meanwhile <- computed{begin: packed, err: inner.wait(ctx)}.ended() }()
	if transfer != nil {
		err = transfer.Wait(ctx)
		t.Exchange = time.Since(packed)
		size := int64(n) * int64(sizeOf[T]())
		t.Sent, t.Received = int64(p.x.sending)*size, int64(p.x.ghosts)*size
	}
	var rest started
	begun := time.Now()
	for _, q := range p.outer {
		if err == nil {
			var more started
			more, err = q.start(ctx, bits, alpha, p.buffers.local, beta, c, e...)
			rest = append(rest, more...)
		}
	}
	in := <-meanwhile
	err = errors.Join(err, in.err, rest.wait(ctx))
	out := computed{begin: begun, end: time.Now()}
	if len(p.outer) == 0 {
		out.begin = out.end
	}
	t.Compute = in.and(out)
	t.Overlap = min(in.end.Sub(in.begin), t.Exchange)
	t.Total = time.Since(start)
	return t, err
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
func (p *Plan[T]) startInner(ctx context.Context, bits int, alpha float32, b *spmm.Tensor[T], beta float32, c *spmm.Tensor[float32], prepare func() (*spmm.Pending, error), e []spmm.Epilogue) (s started, err error) {
	if prepare != nil {
		if err := s.and(prepare()); err != nil {
			return nil, err
		}
	}
	if p.inner != nil {
		more, err := p.inner.start(ctx, bits, alpha, b, beta, c, e...)
		if err != nil {
			return nil, err
		}
		s = append(s, more...)
	}
	if len(p.outer) > 0 && !p.x.gather {
		err = s.and(spmm.CopyRows(ctx, p.buffers.local, b, spmm.RowCopy{From: p.ownList, Dst: p.at}))
	}
	return s, err
}

// computed is when something was computed.
type computed struct {
	begin, end time.Time
	err        error
}

// ended is x at its end.
func (x computed) ended() computed {
	x.end = time.Now()
	return x
}

// and returns how long x or y, which began later, was computed; when both were, the time counts once.
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
		return errMissing
	}
	if err := p.fit(b.Rows, b.Cols, c.Rows, c.Cols); err != nil {
		return err
	}
	if b.ColMajor || c.ColMajor {
		return errors.New("dist: B and C are row-major")
	}
	return errors.Join(b.Validate(), c.Validate())
}

func (p *Plan[T]) fitTensors(b *spmm.Tensor[T], c *spmm.Tensor[float32]) error {
	if b == nil || c == nil {
		return errMissing
	}
	rows, n := b.Dims()
	outputs, m := c.Dims()
	return p.fit(rows, n, outputs, m)
}

var errMissing = errors.New("dist: B or C is missing")

func (p *Plan[T]) fit(bRows, bCols, cRows, cCols int) error {
	lo, hi := p.held.Range(p.c.Rank())
	first, last := p.rows.Range(p.c.Rank())
	if bRows != hi-lo || cRows != last-first || bCols != cCols {
		return fmt.Errorf("dist: rank %d has B of %d×%d and C of %d×%d, and the plan takes B of %d×n and C of %d×n",
			p.c.Rank(), bRows, bCols, cRows, cCols, hi-lo, last-first)
	}
	return nil
}

// reserve allocates what products with n columns take.
func (p *Plan[T]) reserve(n int) (err error) {
	if p.buffers != nil && p.buffers.cols == n {
		return nil
	}
	if err := p.buffers.close(); err != nil {
		return err
	}
	p.buffers = nil
	b, err := newBuffers[T](p.x, p.dev, p.local, n)
	if err != nil {
		return err
	}
	for _, q := range p.parts() {
		if err := q.reserve(n, q == p.inner && q.ranged); err != nil {
			return errors.Join(err, b.close())
		}
	}
	p.buffers = b
	return nil
}

// writePeaks writes the last row of the parts' B, where there is one.
func (p *Plan[T]) writePeaks(ctx context.Context, peaks []T) error {
	if len(peaks) == 0 {
		return nil
	}
	var bs []*spmm.Tensor[T]
	for _, q := range p.parts() {
		switch {
		case q.ranged && q == p.inner:
			bs = append(bs, q.b)
		case q.ranged:
			bs = append(bs, p.buffers.local)
		}
	}
	for _, b := range bs {
		memory, pitch, err := b.Memory()
		if err != nil {
			return err
		}
		row := make([]T, pitch/sizeOf[T]())
		copy(row, peaks)
		rows, _ := b.Dims()
		if err := memory.Write(ctx, int64(rows-1)*int64(pitch), bytesOf(row)); err != nil {
			return err
		}
	}
	return nil
}

// pack copies own rows of B to where they are sent from.
func (p *Plan[T]) pack(ctx context.Context, b *spmm.Tensor[T]) error {
	if p.x.gather {
		return nil
	}
	var s started
	if err := s.and(spmm.CopyRows(ctx, p.buffers.out, b, spmm.RowCopy{From: p.send})); err != nil {
		return err
	}
	return s.wait(ctx)
}

// Close frees what the plan holds. It is not collective.
func (p *Plan[T]) Close() error {
	var errs []error
	for _, q := range p.parts() {
		errs = append(errs, q.close())
	}
	errs = append(errs, p.buffers.close(), p.releaseHost())
	p.buffers = nil
	for _, l := range []*spmm.RowList{p.send, p.ownList} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	if p.staged != nil {
		errs = append(errs, p.staged.Close())
	}
	return errors.Join(errs...)
}
