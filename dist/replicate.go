// The 1.5D algorithm (Koanantakool et al., "Communication-avoiding parallel sparse-dense matrix-matrix multiplication", IPDPS
// 2016): ranks in groups of c share the group's rows of A, each with the entries of some columns. A rank receives rows of B for
// these alone; sums are added over the group as integers, and rounded once.

package dist

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
)

// replicated is what a rank has of its group's rows. Member m of a group has the columns that are numbers of rows of B held by
// ranks with number m modulo c, and so those of its own rows of B.
type replicated[T formats.Value] struct {
	group  comm.Comm
	rows   Bounds          // of the group's members, counted from the group's first
	a      *formats.CSR[T] // the group's rows, with this rank's columns, numbered as rows of the local B, which has one more
	ranges []rfx.Range     // of the group's rows, with all columns
	most   int64           // entries of the longest row of all
	dev    *spmm.Device
	plans  map[rfx.P]*spmm.Sums[T] // at the precisions that were needed so far

	// Of the last product:
	b          *formats.Dense[T] // the local B, where something is not finite; else nil
	c          *formats.Dense[float32]
	sums       []rfx.Sum // of the group's rows
	send, recv wire
}

// wire is memory that sums are sent from or received in.
type wire struct {
	data []byte
	free func()
}

func (w *wire) atLeast(c comm.Comm, bytes int) (err error) {
	if len(w.data) >= bytes {
		return nil
	}
	w.release()
	w.data, w.free, err = comm.Alloc(c, bytes)
	return err
}

func (w *wire) release() {
	if w.free != nil {
		w.free()
	}
	w.data, w.free = nil, nil
}

// checkReplicate refuses to replicate where it cannot be done.
func (o Options) checkReplicate(ranks int, elements dtype.Type) error {
	m, c := o.Multiply, o.Replicate
	switch {
	case c < 0 || c > 0 && ranks%c != 0:
		return fmt.Errorf("dist: rows are to be shared by groups of %d ranks, and there are %d: want a divisor", c, ranks)
	case c <= 1:
		return nil
	case m.Mode != spmm.Reproducible:
		return fmt.Errorf("dist: rows shared by groups of %d ranks in fast mode: sums would depend on c; want reproducible mode, whose sums are integers until they are rounded", c)
	case elements == dtype.F64 || m.Precision == dtype.F64:
		return errors.New("dist: f64 in reproducible mode, which takes f16, bf16 and f32")
	case m.Format != "" && m.Format != "auto" && m.Format != "csr" || m.Variant != "":
		return fmt.Errorf("dist: format %q, variant %q for rows shared by groups of %d ranks: they are multiplied as csr", m.Format, m.Variant, c)
	case o.Exchange == Gather:
		return errors.New("dist: all rows of B are to be gathered, and a rank of a group that shares rows needs only those of its columns")
	}
	return nil
}

// replicas decides how many ranks share rows, and says why. Besides what is requested it considers divisors of the ranks up to
// their square root, beyond which sums outweigh rows of B.
//
// It predicts the bytes that a rank receives for each column of B, at most of all ranks; computing takes as long whichever
// it is. Sums count twice, as they are written and added besides, and a fifth must be saved: the exchange of a rank by itself may
// be hidden behind computing, that of sums is not.
func replicas[T formats.Value](c comm.Comm, dev *spmm.Device, a *formats.CSR[T], rows, held Bounds, o Options) (int, string, error) {
	if o.Replicate != 0 {
		return o.Replicate, "it was requested", nil
	}
	tried := o
	tried.Replicate = c.Size() // which divides them
	impossible := []int64{0}   // on some rank, whose device may be another than this one's
	if tried.checkReplicate(c.Size(), formats.TypeOf[T]()) != nil || o.Exchange != Auto {
		impossible[0] = 2
	} else if dev.Info().Backend != "cpu" {
		impossible[0] = 1
	}
	if err := c.AllReduce(impossible, comm.Max); err != nil {
		return 0, "", err
	}
	switch impossible[0] {
	case 1:
		return 1, "sums of GPUs' kernels go through the host's memory, so that groups are taken there only if they are requested", nil
	case 2:
		return 1, "these options leave no sums to be added over ranks", nil
	}
	width := int64(16)
	longest, err := longestRow(c, a)
	if err != nil {
		return 0, "", err
	}
	if p := o.precision(); p != spmm.AutoP && rfx.P(p).Narrow(longest) {
		width = 8
	}
	lo, hi := rows.Range(c.Rank())
	met := newColumns(a.Cols)
	for _, j := range a.ColIdx {
		met.add(int(j))
	}
	met.counted()
	element := int64(sizeOf[T]())
	bytes := []int64{lacking(met, held, c.Rank()) * element}
	var sizes []int
	for m := 2; m*m <= c.Size(); m++ {
		if c.Size()%m != 0 {
			continue
		}
		n, err := lackingShared(c, met, held, m)
		if err != nil {
			return 0, "", err
		}
		sizes, bytes = append(sizes, m), append(bytes, n*element+2*int64(hi-lo)*int64(m-1)*width)
	}
	if len(sizes) == 0 {
		return 1, "of so few ranks none share rows", nil
	}
	if err := c.AllReduce(bytes, comm.Max); err != nil {
		return 0, "", err
	}
	best := 0
	for i, n := range bytes[1:] {
		if n < bytes[best] {
			best = i + 1
		}
	}
	if best == 0 || bytes[best] > bytes[0]/5*4 {
		return 1, fmt.Sprintf("a rank by itself receives at most %d bytes for each column of B, and groups are predicted to save less than a fifth", bytes[0]), nil
	}
	return sizes[best-1], fmt.Sprintf("a rank of a group is predicted to receive at most %d bytes for each column of B, sums counted twice, and by itself %d", bytes[best], bytes[0]), nil
}

// lacking returns how many rows of B of a set a rank does not hold.
func lacking(met *columns, held Bounds, rank int) int64 {
	return int64(met.count - met.position(held[rank+1]) + met.position(held[rank]))
}

// lackingShared returns how many rows of B this rank would receive if groups of so many ranks shared rows, met being what it
// meets by itself: members tell each other which columns they meet.
func lackingShared(c comm.Comm, met *columns, held Bounds, members int) (int64, error) {
	group, err := c.Split(c.Rank()/members, c.Rank())
	if err != nil {
		return 0, err
	}
	own := met.list(0, len(met.words)*64)
	to := make([]int32, len(own))
	counts, received := make([]int64, members), []comm.Part(nil)
	for i, j := range own {
		to[i] = int32(held.Owner(int(j)) % members)
		counts[to[i]]++
	}
	if received, err = incoming(group, counts); err != nil {
		return 0, errors.Join(err, group.Close())
	}
	all, err := toOwners(group, own, to, follow(counts), received)
	if err != nil {
		return 0, errors.Join(err, group.Close())
	}
	union := newColumns(held.Rows())
	for _, j := range all {
		union.add(int(j))
	}
	return lacking(union.counted(), held, c.Rank()), group.Close()
}

// precision is that of products in reproducible mode.
func (o Options) precision() int {
	if o.Multiply.P == 0 {
		return int(rfx.P23)
	}
	return o.Multiply.P
}

// longestRow returns the entries of the longest row of all ranks.
func longestRow[T formats.Value](c comm.Comm, a *formats.CSR[T]) (int64, error) {
	longest := []int64{0}
	for i := range a.Rows {
		longest[0] = max(longest[0], a.RowPtr[i+1]-a.RowPtr[i])
	}
	err := c.AllReduce(longest, comm.Max)
	return longest[0], err
}

// replicate shares out the entries of each group of c ranks, and plans the exchange of the rows of B that this rank then needs.
func (p *Plan[T]) replicate(a *formats.CSR[T], c int) error {
	first := p.c.Rank() / c * c
	group, err := p.c.Split(first, p.c.Rank())
	if err != nil {
		return err
	}
	r := &replicated[T]{group: group, dev: p.dev, plans: map[rfx.P]*spmm.Sums[T]{}}
	p.shared = r
	for _, x := range p.rows[first : first+c+1] {
		r.rows = append(r.rows, x-p.rows[first])
	}
	if r.most, err = longestRow(p.c, a); err != nil {
		return err
	}
	if err := r.gatherRanges(a); err != nil {
		return err
	}
	if err := r.gatherEntries(p.c, a, p.held); err != nil {
		return err
	}
	met := newColumns(a.Cols)
	for _, j := range r.a.ColIdx {
		met.add(int(j))
	}
	if p.x, err = newExchange(p.c, p.held, met.counted(), Rows); err != nil {
		return err
	}
	for e, j := range r.a.ColIdx {
		r.a.ColIdx[e] = int32(met.position(int(j)))
	}
	lo, hi := p.held.Range(p.c.Rank())
	r.a.Cols, p.local = met.count+1, met.count+1
	p.own, p.at = met.list(lo, hi), met.position(lo)
	return nil
}

// gatherRanges finds the ranges of the group's rows.
func (r *replicated[T]) gatherRanges(a *formats.CSR[T]) error {
	own := rfx.Rows(a)
	mine, all := make([]int64, len(own)), make([]int64, r.rows.Rows())
	for i, x := range own {
		mine[i] = int64(x)
	}
	if err := r.group.AllGatherV(sizeOf[int64](), bytesOf(mine), bytesOf(all), r.rows.parts()); err != nil {
		return err
	}
	for _, x := range all {
		r.ranges = append(r.ranges, rfx.Range(x))
	}
	return nil
}

// gatherEntries sends each member of the group the entries of its columns. The rows of one member follow those of the one before.
func (r *replicated[T]) gatherEntries(c comm.Comm, a *formats.CSR[T], held Bounds) error {
	members := r.group.Size()
	counts := make([]int64, members)
	lengths := make([]int64, members*a.Rows) // of each row, for each member
	to := make([]int32, len(a.ColIdx))
	for i := range a.Rows {
		for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
			m := held.Owner(int(a.ColIdx[e])) % members
			to[e] = int32(m)
			lengths[m*a.Rows+i]++
			counts[m]++
		}
	}
	received := make([]int64, members)
	one := make([]int, members)
	same := make([]int, members)
	for m := range one {
		one[m], same[m] = 1, a.Rows
	}
	if err := exchangeSlices(r.group, counts, comm.Follow(one...), received, comm.Follow(one...)); err != nil {
		return err
	}
	nnz := int64(0)
	for _, n := range received {
		nnz += n
	}
	var many error
	if nnz > math.MaxInt32 {
		many = fmt.Errorf("dist: rank %d has %d entries of its group's, at most %d are possible: use more ranks", c.Rank(), nnz, math.MaxInt32)
	}
	if err := comm.Agree(c, many, nil); err != nil {
		return err
	}
	out := &formats.CSR[T]{Rows: r.rows.Rows(), Cols: a.Cols, RowPtr: make([]int64, r.rows.Rows()+1)}
	if err := exchangeSlices(r.group, lengths, comm.Follow(same...), out.RowPtr[1:], r.rows.parts()); err != nil {
		return err
	}
	for i := range out.Rows {
		out.RowPtr[i+1] += out.RowPtr[i]
	}
	var err error
	if out.ColIdx, err = toOwners(r.group, a.ColIdx, to, follow(counts), follow(received)); err != nil {
		return err
	}
	out.Val, err = toOwners(r.group, a.Val, to, follow(counts), follow(received))
	r.a = out
	return err
}

// at returns the rank's entries on its device, at a precision.
func (r *replicated[T]) at(ctx context.Context, p rfx.P) (*spmm.Sums[T], error) {
	if s := r.plans[p]; s != nil {
		return s, nil
	}
	s, err := spmm.NewSums(ctx, r.dev, r.a, r.ranges, int(p))
	if err == nil {
		r.plans[p] = s
	}
	return s, err
}

// reserve allocates what products with n columns take on the host.
func (r *replicated[T]) reserve(n int) {
	if r.c != nil && r.c.Cols == n {
		return
	}
	lo, hi := r.rows.Range(r.group.Rank())
	r.b, r.c, r.sums = nil, formats.NewDense[float32](hi-lo, n), make([]rfx.Sum, r.a.Rows*n)
}

// multiply leaves the sums of products with the local B.
func (r *replicated[T]) multiply(ctx context.Context, p rfx.P, local *spmm.Tensor[T], cols []rfx.Range) error {
	s, err := r.at(ctx, p)
	if err != nil {
		return err
	}
	if err := s.Multiply(ctx, local, r.sums); err != nil {
		return err
	}
	if !slices.ContainsFunc(cols, rfx.Range.NonFinite) && !slices.ContainsFunc(r.ranges, rfx.Range.NonFinite) {
		return nil
	}
	if r.b == nil {
		r.b = formats.NewDense[T](r.a.Cols, len(cols))
	}
	if err := local.Download(ctx, r.b); err != nil {
		return err
	}
	rfx.Classify(r.sums, r.a, r.ranges, r.b, cols)
	return nil
}

// reduce sends every member the sums of its rows; what is received is, for each member, sums of this rank's rows. It returns
// what reads their total, and the bytes that were sent and received.
//
// Every sum crosses once, as in a reduction that scatters its result, but is added here: a class has no place among sums that
// an implementation adds modulo 2⁶⁴, and a carry goes from the lower to the higher half of 128 bits.
func (r *replicated[T]) reduce(p rfx.P) (at func(i, j int) rfx.Sum, sent, received int64, err error) {
	n, members := r.c.Cols, r.group.Size()
	lo, hi := r.rows.Range(r.group.Rank())
	mine := hi - lo
	size := 16
	if p.Narrow(r.most) {
		size = 8
	}
	item := size * n
	parts := make([]int, members)
	for m := range parts {
		parts[m] = mine
	}
	at = func(i, j int) (total rfx.Sum) { return total }
	if n == 0 {
		return at, 0, 0, nil
	}
	if err := errors.Join(r.send.atLeast(r.group, item*r.a.Rows), r.recv.atLeast(r.group, item*mine*members)); err != nil {
		return nil, 0, 0, err
	}
	out, in := r.send.data[:item*r.a.Rows], r.recv.data[:item*mine*members]
	if size == 8 {
		to := sliceOf[int64](out)
		inParallel(len(r.sums), func(lo, hi int) {
			for i, s := range r.sums[lo:hi] {
				to[lo+i] = s.Pack64()
			}
		})
	} else {
		to := sliceOf[rfx.Sum](out)
		inParallel(len(r.sums), func(lo, hi int) { copy(to[lo:hi], r.sums[lo:hi]) })
	}
	if err := r.group.AllToAllV(item, out, r.rows.parts(), in, comm.Follow(parts...)); err != nil {
		return nil, 0, 0, err
	}
	at = func(i, j int) (total rfx.Sum) {
		for m := range members {
			k := (m*mine+i)*n + j
			if size == 8 {
				total = total.Add(rfx.Unpack64(sliceOf[int64](in)[k]))
			} else {
				total = total.Add(sliceOf[rfx.Sum](in)[k])
			}
		}
		return total
	}
	return at, int64(item) * int64(r.a.Rows-mine), int64(item) * int64(mine) * int64(members-1), nil
}

// inParallel calls f for parts of 0 to n−1, on as many goroutines as there are processors if that is worth it.
func inParallel(n int, f func(lo, hi int)) {
	var wg sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), 1+n>>16)
	for w := range workers {
		wg.Go(func() { f(w*n/workers, (w+1)*n/workers) })
	}
	wg.Wait()
}

// info describes the rank's entries as a plan.
func (r *replicated[T]) info() spmm.PlanInfo {
	i := spmm.PlanInfo{Rows: r.a.Rows, Cols: r.a.Cols, NNZ: r.a.NNZ(), Format: "csr", Precision: formats.TypeOf[T]()}
	for _, s := range r.plans {
		i = s.Info()
	}
	i.Why = "rows that ranks share are multiplied so"
	return i
}

// stored is the bytes of the rank's entries, at every precision that was needed so far.
func (r *replicated[T]) stored() (n int64) {
	for _, s := range r.plans {
		n += s.Info().Stats.StoredBytes
	}
	return n
}

// memory is what products by n columns take besides B and C: sums as they come from the device, as they are summed, as they are sent and
// as they are received.
func (r *replicated[T]) memory(n int) (device, host int64) {
	lo, hi := r.rows.Range(r.group.Rank())
	mine := int64(hi - lo)
	sums := int64(r.a.Rows) * int64(n) * sumBytes
	device = min(sums, 64<<20)
	return device, device + 2*sums + mine*int64(n)*(sumBytes*int64(r.group.Size())+sizeOfF32)
}

const sumBytes = 16

func (r *replicated[T]) close() error {
	if r == nil {
		return nil
	}
	r.send.release()
	r.recv.release()
	errs := []error{r.group.Close()}
	for _, s := range r.plans {
		errs = append(errs, s.Close())
	}
	r.plans = nil
	return errors.Join(errs...)
}

// runShared is run for a plan whose rows groups of ranks share.
func (p *Plan[T]) runShared(ctx context.Context, bits int, cols []rfx.Range, alpha float32, b *spmm.Tensor[T], beta float32, c *spmm.Tensor[float32], prepare func() (*spmm.Pending, error), t *Timing, e ...spmm.Epilogue) error {
	r := p.shared
	_, n := b.Dims()
	finish, err := epilogueOf(ctx, c, e)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := p.pack(ctx, b); err != nil {
		return err
	}
	t.Pack = time.Since(start)
	start = time.Now()
	transfer, err := begin(ctx, p.x, p.buffers, b)
	if err != nil {
		return err
	}
	var s started
	if prepare != nil {
		err = s.and(prepare())
	}
	if err == nil {
		err = s.and(spmm.CopyRows(ctx, p.buffers.local, b, spmm.RowCopy{From: p.ownList, Dst: p.at}))
	}
	err = errors.Join(err, s.wait(ctx))
	if transfer != nil {
		err = errors.Join(err, transfer.Wait(ctx))
		t.Exchange = time.Since(start)
	}
	if err != nil {
		return err
	}
	start = time.Now()
	r.reserve(n)
	if beta != 0 {
		if err := c.Download(ctx, r.c); err != nil {
			return err
		}
	}
	at := rfx.P(bits)
	if err := r.multiply(ctx, at, p.buffers.local, cols); err != nil {
		return err
	}
	t.Compute = time.Since(start)
	start = time.Now()
	total, sent, received, err := r.reduce(at)
	if err != nil {
		return err
	}
	t.Reduce = time.Since(start)
	row := int64(n) * int64(sizeOf[T]())
	t.Sent, t.Received = int64(p.x.sending)*row+sent, int64(p.x.ghosts)*row+received
	start = time.Now()
	lo, hi := r.rows.Range(r.group.Rank())
	rfx.RoundSums(r.ranges[lo:hi], cols, at, total, func(i, j int, y float32) {
		if alpha != 1 || beta != 0 {
			y = rfx.Scale(alpha, y, beta, r.c.At(i, j))
		}
		r.c.Set(i, j, finish(i, j, y))
	})
	err = c.Upload(ctx, r.c)
	t.Compute += time.Since(start)
	return err
}

// epilogueOf returns what becomes of element (i, j) of C.
func epilogueOf(ctx context.Context, c *spmm.Tensor[float32], es []spmm.Epilogue) (func(i, j int, y float32) float32, error) {
	if len(es) == 0 {
		return func(_, _ int, y float32) float32 { return y }, nil
	}
	e := es[0]
	if len(es) > 1 || e.RowBias != nil && e.ColBias != nil || e.Activation != 0 && e.Activation != spmm.ReLU {
		return nil, errors.New("dist: at most one epilogue is possible, with one bias, and in reproducible mode with ReLU alone")
	}
	m, n := c.Dims()
	row, err := biasOf(ctx, e.RowBias, m, 1)
	if err != nil {
		return nil, err
	}
	col, err := biasOf(ctx, e.ColBias, 1, n)
	return func(i, j int, y float32) float32 {
		if row != nil {
			y = rfx.Biased(y, row[i])
		}
		if col != nil {
			y = rfx.Biased(y, col[j])
		}
		if e.Activation == spmm.ReLU {
			y = rfx.ReLU(y)
		}
		return y
	}, err
}

// biasOf reads a bias of so many rows and columns, nil if there is none.
func biasOf(ctx context.Context, o spmm.Operand, rows, cols int) ([]float32, error) {
	switch t := o.(type) {
	case nil:
		return nil, nil
	case *spmm.Tensor[float32]:
		return elementsOf(ctx, t, rows, cols)
	case *spmm.Tensor[half.F16]:
		return elementsOf(ctx, t, rows, cols)
	case *spmm.Tensor[half.BF16]:
		return elementsOf(ctx, t, rows, cols)
	}
	return nil, errors.New("dist: a bias in reproducible mode is of f16, bf16 or f32")
}

func elementsOf[E formats.Value](ctx context.Context, t *spmm.Tensor[E], rows, cols int) ([]float32, error) {
	if m, n := t.Dims(); m != rows || n != cols {
		return nil, fmt.Errorf("dist: a bias of %d×%d, want %d×%d", m, n, rows, cols)
	}
	d := formats.NewDense[E](rows, cols)
	if err := t.Download(ctx, d); err != nil {
		return nil, err
	}
	out := make([]float32, rows*cols)
	formats.ConvertSlice(out, d.Data)
	return out, nil
}
