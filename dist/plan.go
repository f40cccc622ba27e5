// A share of A on a rank's device: preparing it, what there is to know of it, and new values.

package dist

import (
	"context"
	"errors"
	"fmt"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/access"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/rowcopy"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/work"
)

// Options are the options of Prepare.
type Options struct {
	// Multiply are the options that each rank prepares its share with. Of its fields, Format, Precision, Cols, Mode, P and
	// Variant may be set; Precision must be stored as the share's elements are. All ranks give the same.
	Multiply spmm.Options
	// B says which rows of B each rank holds; nil: those with the numbers of its rows of A, if A is square, else about as
	// many as the others.
	B Bounds
	// Exchange is how rows of B are brought to the ranks that need them.
	Exchange Exchange
	// Via exchanges them between the ranks' devices; nil: through the host's memory. It stays the caller's.
	Via comm.DeviceComm
}

// Plan is a rank's share of A on its device, prepared to multiply together with the other ranks. Its methods are those
// of spmm.Plan. All but Info, Held, Shares, Memory, Reproduced and Close are collective. One goroutine at a time may
// use it. After an error of a product ranks are out of step, and the job must be aborted.
type Plan struct {
	c        comm.Comm
	dev      *device.Device
	elements dtype.Type // of A and B
	shared   int        // columns of A
	rowPtr   []int64    // of the share
	rows     Bounds     // of A and C
	held     Bounds     // of B
	x        *exchange
	inner    *part         // rows that need own rows of B alone; nil if they are not multiplied by themselves
	outer    []*part       // the other rows
	local    int           // rows of the local B, which the outer parts share
	own      []int32       // own rows of B that are in it, ascending, from row at on
	at       int           // in the local B
	ownList  *rowcopy.List // own, on the device
	send     *rowcopy.List // own rows of B that others need
	mode     *reproducible
	buffers  *buffers        // of the last product
	staged   comm.DeviceComm // nil: the caller's is used
	host     struct {        // tensors for host matrices
		b, c *tensor.Tensor
	}
}

// Info describes a rank's plan.
type Info struct {
	// PlanInfo is that of the rank's part with the most entries, but Rows, Cols, NNZ and Stats.StoredBytes are those of
	// the whole share.
	spmm.PlanInfo
	Inner  int64  // entries in rows that need own rows of B alone, which are multiplied during the exchange
	Gather bool   // all rows of B are gathered
	Via    string // how rows of B travel
	Halo   int64  // rows of B that are received for each product
	Sent   int64  // rows of B that are sent
}

// Prepare plans products with a matrix. Every rank gives its share of the matrix, and a device; ranks may share a
// device. It is collective: if one rank has an error, all return one. The share may be changed or dropped afterwards.
func Prepare[T formats.Value](ctx context.Context, c comm.Comm, dev *spmm.Device, s Share[T], o Options) (*Plan,
	error) {
	rows, err := s.bounds(c)
	if err != nil {
		return nil, err
	}
	p := &Plan{c: c, elements: formats.TypeOf[T](), rows: rows, held: o.B, shared: s.A.Cols, rowPtr: s.A.RowPtr}
	if p.held == nil {
		p.held = Even(s.A.Cols, c.Size())
		if s.A.Cols == rows.Rows() {
			p.held = rows
		}
	}
	w, err := o.check(p.elements)
	if err == nil {
		p.dev, err = access.Device(dev)
	}
	err = errors.Join(err, p.held.check(s.A.Cols, c.Size()), s.A.Validate())
	if err := comm.Agree(c, err, nil); err != nil {
		return nil, err
	}
	all, err := whole(c, s.A.RowPtr, s.A.Cols, rows, w)
	if err != nil {
		return nil, err
	}
	runs := all != (work.Extent{}) && p.dev.Info().Backend != "cpu"
	if p.mode, err = newReproducible(c, rfx.Rows(s.A), w.P); err != nil {
		return nil, err
	}
	if err := split(p, s.A, o.Exchange, runs); err != nil {
		return nil, err
	}
	if p.x.via = o.Via; o.Via == nil {
		p.staged = comm.Staged(c)
		p.x.via = p.staged
	}
	if err := comm.Agree(c, p.place(ctx, w, all, runs), nil); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// whole returns the extent of the matrix that the shares make, where rows are to be summed as within it: in fast mode,
// in format csr.
func whole(c comm.Comm, rowPtr []int64, cols int, rows Bounds, w work.Work) (work.Extent, error) {
	if w.P != 0 || w.Format != "" && w.Format != "auto" && w.Format != "csr" {
		return work.Extent{}, nil
	}
	own := work.NewExtent(len(rowPtr)-1, cols, rowPtr)
	nnz, longest := make([]int64, c.Size()), []int64{own.Longest}
	nnz[c.Rank()] = own.NNZ
	if err := c.AllReduce(nnz, comm.Sum); err != nil {
		return work.Extent{}, err
	}
	if err := c.AllReduce(longest, comm.Max); err != nil {
		return work.Extent{}, err
	}
	e := work.Extent{Rows: rows.Rows(), Cols: cols, Longest: longest[0]}
	for r, n := range nnz {
		if e.NNZ += n; r < c.Rank() {
			e.Offset += n
		}
	}
	segments := []int64{e.CountSegments(rowPtr)}
	err := c.AllReduce(segments, comm.Sum)
	e.Segments = segments[0]
	return e, err
}

// place brings to the device what products need.
func (p *Plan) place(ctx context.Context, w work.Work, all work.Extent, runs bool) (err error) {
	if p.send, err = rowcopy.NewList(ctx, p.dev, p.x.send); err != nil {
		return err
	}
	if p.ownList, err = rowcopy.NewList(ctx, p.dev, p.own); err != nil {
		return err
	}
	for _, q := range p.parts() {
		q.dev, q.work, q.form.Whole = p.dev, w, all
		if runs {
			q.form.Whole.Offset += p.rowPtr[q.first]
		}
		if err := q.place(ctx, p.mode.first()); err != nil {
			return err
		}
	}
	return nil
}

// check refuses options that cannot be heeded, and returns the work that those of Multiply ask for.
func (o Options) check(elements dtype.Type) (work.Work, error) {
	m := o.Multiply
	switch {
	case m.Transpose || m.Right || m.Tune || m.Quantise != dtype.Invalid:
		return work.Work{}, errors.New("dist: Transpose, Right, Tune and Quantise are not for shares of a matrix")
	case m.Precision != dtype.Invalid && m.Precision.Storage() != elements:
		return work.Work{}, fmt.Errorf("dist: precision %v for a share with elements of %v: convert it first", m.Precision,
			elements)
	case o.Exchange < Auto || o.Exchange > Gather:
		return work.Work{}, fmt.Errorf("dist: exchange %d: want Auto, Rows or Gather", o.Exchange)
	}
	return access.Work(m)
}

// parts lists those that there are.
func (p *Plan) parts() []*part {
	if p.inner == nil {
		return p.outer
	}
	return append([]*part{p.inner}, p.outer...)
}

// Held returns the rows of B that each rank holds. Products take this rank's rows.
func (p *Plan) Held() Bounds { return p.held }

// Shares returns the rows of A and C that each rank holds.
func (p *Plan) Shares() Bounds { return p.rows }

// Info returns a description of the plan on this rank.
func (p *Plan) Info() Info {
	i := Info{Gather: p.x.gather, Via: p.x.via.Name(), Halo: int64(p.x.halo), Sent: int64(p.x.sending)}
	if p.inner != nil {
		i.Inner = p.inner.nnz
	}
	stored := int64(0)
	for _, q := range p.parts() {
		info := q.info()
		stored += info.Stats.StoredBytes
		if info.NNZ >= i.NNZ {
			i.PlanInfo = info
		}
	}
	lo, hi := p.rows.Range(p.c.Rank())
	i.Rows, i.Cols, i.NNZ, i.Stats.StoredBytes = hi-lo, p.shared, p.rowPtr[hi-lo], stored
	return i
}

// Reproduced returns the precision of the last product in reproducible mode, and whether AutoP found that it loses
// nothing.
func (p *Plan) Reproduced() (bits int, lossless bool) { return p.mode.last() }

// Memory returns the bytes that products with n columns take besides A, B and C: in the device's memory and in the
// host's. For CPU devices all are in the host's.
func (p *Plan) Memory(n int) (device, host int64) {
	const elements = 8 // the lines of tensors are multiples of as many
	wide := int64(n+elements-1) / elements * elements
	row := wide * int64(p.elements.Size())
	device = int64(len(p.x.send)+p.local) * row
	if p.staged != nil {
		sent := int64(p.x.sending)
		if lo, hi := p.held.Range(p.c.Rank()); p.x.gather {
			sent = int64(hi - lo)
		}
		host = (sent + int64(comm.End(p.x.received))) * row
	}
	fixed := wide * p.mode.elementBytes() // a row of B in fixed point
	for _, q := range p.parts() {
		_, cols := q.a.Dims()
		device += int64(cols) * fixed
		if q == p.inner && q.ranged {
			device += int64(cols) * row
		}
		if !q.all {
			device += int64(q.count) * int64(dtype.F32.Size()) * (wide + 1)
		}
	}
	return device, host
}

// SetValues replaces the values of this rank's entries by the elements of a tensor on the plan's device, in the order
// of the share's entries. The pattern stays, and the format is not chosen again. values is 1×NNZ or NNZ×1, of the
// share's element type, row-major in one block. It is collective. The values go through the host's memory.
func (p *Plan) SetValues(ctx context.Context, values spmm.Operand) error {
	t := access.Tensor(values)
	var err error
	switch {
	case t == nil:
		err = errors.New("dist: the tensor of values is missing")
	case t.Rows != 1 && t.Cols != 1:
		err = fmt.Errorf("dist: values in a tensor of %d×%d: want a row or a column", t.Rows, t.Cols)
	}
	if err := comm.Agree(p.c, err, nil); err != nil {
		return err
	}
	switch t.Type {
	case dtype.F16:
		return setTensor[half.F16](ctx, p, t)
	case dtype.BF16:
		return setTensor[half.BF16](ctx, p, t)
	case dtype.F64:
		return setTensor[float64](ctx, p, t)
	}
	return setTensor[float32](ctx, p, t)
}

func setTensor[T formats.Value](ctx context.Context, p *Plan, t *tensor.Tensor) error {
	d := formats.NewDense[T](t.Rows, t.Cols)
	if err := comm.Agree(p.c, t.Read(ctx, hostOf(d)), nil); err != nil {
		return err
	}
	return SetValues(ctx, p, d.Data)
}

// SetValues is Plan.SetValues for values in the host's memory. They may be changed or dropped afterwards.
func SetValues[T formats.Value](ctx context.Context, p *Plan, values []T) error {
	var err error
	if nnz := p.rowPtr[len(p.rowPtr)-1]; formats.TypeOf[T]() != p.elements || int64(len(values)) != nnz {
		err = fmt.Errorf("dist: %d values of %v for a share of %d entries of %v", len(values), formats.TypeOf[T](), nnz,
			p.elements)
	}
	if err := comm.Agree(p.c, err, nil); err != nil {
		return err
	}
	var ranges []rfx.Range
	var errs []error
	for _, q := range p.parts() {
		a := q.a.(*formats.CSR[T])
		errs = append(errs, q.setValues(ctx, gather(a, q, p.rowPtr, values)))
		if p.mode != nil {
			ranges = append(ranges, rfx.Rows(a)...)
		}
	}
	return comm.Agree(p.c, errors.Join(append(errs, p.mode.see(p.c, ranges))...), nil)
}

// Close frees what the plan holds. A second call does nothing.
func (p *Plan) Close() error {
	var errs []error
	for _, q := range p.parts() {
		errs = append(errs, q.close())
	}
	errs = append(errs, p.buffers.close(), closeTensors(&p.host.b, &p.host.c))
	p.buffers = nil
	for _, l := range []**rowcopy.List{&p.send, &p.ownList} {
		if *l != nil {
			errs = append(errs, (*l).Close())
			*l = nil
		}
	}
	if p.staged != nil {
		errs = append(errs, p.staged.Close())
	}
	return errors.Join(errs...)
}

// closeTensors frees tensors and makes them nil. Some may be nil before.
func closeTensors(ts ...**tensor.Tensor) error {
	var errs []error
	for _, t := range ts {
		if *t != nil {
			errs = append(errs, (*t).Close())
			*t = nil
		}
	}
	return errors.Join(errs...)
}
