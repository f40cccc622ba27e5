// Which rows of B cross from whom to whom.

package dist

import (
	"fmt"
	"sync"

	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/formats"
)

// exchange brings the rows of B that a rank lacks to where its local B has them.
type exchange struct {
	c        comm.Comm
	gather   bool        // every rank receives all rows
	send     []int32     // own rows that others need, by receiver
	sent     []comm.Part // of send
	received []comm.Part // rows of the local B; this rank's own are left out unless gather is set
	ghosts   int         // rows that are received from others
	sending  int         // rows that are sent to others
}

// newExchange plans how ranks that hold B in these bounds exchange it, met being the rows that this rank needs for its local B.
// It asks every owner once for those that it lacks. The local B has the rows of met in order, or where all are gathered all.
func newExchange(c comm.Comm, held Bounds, met *columns, how Exchange) (*exchange, error) {
	lo, hi := held.Range(c.Rank())
	counts := make([]int64, c.Size())
	ghosts := int64(0)
	for r := range counts {
		if r != c.Rank() {
			counts[r] = int64(met.position(held[r+1]) - met.position(held[r]))
			ghosts += counts[r]
		}
	}
	all := []int64{ghosts}
	if err := c.AllReduce(all, comm.Sum); err != nil {
		return nil, err
	}
	x := &exchange{c: c, gather: how.gathers(all[0], int64(c.Size()-1)*int64(held.Rows()))}
	if x.gather {
		x.received = held.parts()
		x.ghosts, x.sending = held.Rows()-(hi-lo), (hi-lo)*(c.Size()-1)
		return x, nil
	}
	asked, err := incoming(c, counts)
	if err != nil {
		return nil, err
	}
	x.sent = asked
	x.ghosts, x.sending = int(ghosts), comm.End(x.sent)
	x.send = make([]int32, x.sending)
	var wanted []int32
	for r := range counts {
		if r != c.Rank() {
			wanted = append(wanted, met.list(held[r], held[r+1])...)
		}
	}
	if err := exchangeSlices(c, wanted, follow(counts), x.send, x.sent); err != nil {
		return nil, err
	}
	var wrong error
	for _, i := range x.send {
		if i < 0 || int(i) >= hi-lo {
			wrong = fmt.Errorf("dist: rank %d is asked for row %d of its %d", c.Rank(), i, hi-lo)
		}
	}
	// Rows of the local B lie in the order of the whole's: those of lower ranks, its own that are met, those of higher ones.
	places := make([]int64, len(counts))
	copy(places, counts)
	places[c.Rank()] = int64(met.position(hi) - met.position(lo))
	x.received = follow(places)
	x.received[c.Rank()].Count = 0
	return x, comm.Agree(c, wrong, nil)
}

func follow(counts []int64) []comm.Part {
	ns := make([]int, len(counts))
	for i, n := range counts {
		ns[i] = int(n)
	}
	return comm.Follow(ns...)
}

// Exchange is how rows of B are brought to the ranks that need them.
type Exchange int

// The ways to exchange.
const (
	Auto   Exchange = iota // Gather where nearly all rows are needed, else Rows
	Rows                   // each rank receives the rows that its share of A meets
	Gather                 // each rank receives all rows
)

func (e Exchange) String() string { return [...]string{"auto", "rows", "gather"}[e] }

// gathers decides whether all rows are gathered, of which so many are needed. Gathering needs no packing, and libraries do it
// in fewer messages.
func (e Exchange) gathers(needed, all int64) bool {
	return e == Gather || e == Auto && all > 0 && needed > all/10*9
}

// buffers hold one exchange's data, for a B of so many columns.
type buffers[T formats.Value] struct {
	cols  int
	out   []T // packed rows for others
	local *formats.Dense[T]
	free  []func()
}

// newBuffers allocates what is sent, and a local B of so many rows.
func newBuffers[T formats.Value](x *exchange, rows, cols int) (*buffers[T], error) {
	b := &buffers[T]{cols: cols}
	alloc := func(rows int) ([]T, error) {
		m, free, err := comm.Alloc(x.c, rows*cols*sizeOf[T]())
		if err != nil {
			return nil, err
		}
		b.free = append(b.free, free)
		return viewOf[T](m), nil
	}
	var err error
	if b.out, err = alloc(len(x.send)); err != nil {
		return nil, err
	}
	data, err := alloc(rows)
	if err != nil {
		b.close()
		return nil, err
	}
	b.local = &formats.Dense[T]{Rows: rows, Cols: cols, LD: cols, Data: data}
	return b, nil
}

func (b *buffers[T]) close() {
	if b == nil {
		return
	}
	for _, free := range b.free {
		free()
	}
	b.free, b.out, b.local = nil, nil, nil
}

// copyRows calls f for each of the rows, on several goroutines.
func copyRows(rows []int32, f func(at int, row int32)) {
	parallel(len(rows), func(lo, hi int) {
		for k := lo; k < hi; k++ {
			f(k, rows[k])
		}
	})
}

// run exchanges the rows that were packed; own is the rank's B, without padding, which gathering sends as it lies.
func run[T formats.Value](x *exchange, b *buffers[T], own *formats.Dense[T]) error {
	item := b.cols * sizeOf[T]()
	if item == 0 {
		return nil
	}
	local := bytesOf(b.local.Data[:b.local.Rows*b.cols])
	if x.gather {
		return x.c.AllGatherV(item, bytesOf(own.Data[:own.Rows*b.cols]), local, x.received)
	}
	return x.c.AllToAllV(item, bytesOf(b.out), x.sent, local, x.received)
}

// parallel calls f for pieces of 0 to n on several goroutines.
func parallel(n int, f func(lo, hi int)) {
	const least = 1 << 12
	pieces := max(1, min(workers(), n/least))
	var wg sync.WaitGroup
	for p := range pieces {
		wg.Go(func() { f(n*p/pieces, n*(p+1)/pieces) })
	}
	wg.Wait()
}
