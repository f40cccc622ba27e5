// Which rows of B cross from whom to whom.

package dist

import (
	"context"
	"errors"
	"fmt"

	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/tensor"
)

// exchange brings the rows of B that a rank lacks to where its local B has them.
type exchange struct {
	c        comm.Comm
	via      comm.DeviceComm
	gather   bool        // every rank receives all rows
	send     []int32     // own rows that others need, by receiver
	sent     []comm.Part // of send
	received []comm.Part // rows of the local B; this rank's own are left out unless gather is set
	halo     int         // rows that are received from others
	sending  int         // rows that are sent to others
}

// newExchange plans how ranks that hold B in these bounds exchange it, met being the rows that this rank needs for its
// local B. It asks every owner once for those that it lacks. The local B has the rows of met in order, or where all are
// gathered all.
func newExchange(c comm.Comm, held Bounds, met *columns, how Exchange) (*exchange, error) {
	lo, hi := held.Range(c.Rank())
	counts := make([]int64, c.Size())
	halo := int64(0)
	for r := range counts {
		if r != c.Rank() {
			counts[r] = int64(met.position(held[r+1]) - met.position(held[r]))
			halo += counts[r]
		}
	}
	all := []int64{halo}
	if err := c.AllReduce(all, comm.Sum); err != nil {
		return nil, err
	}
	x := &exchange{c: c, gather: how.gathers(all[0], int64(c.Size()-1)*int64(held.Rows()))}
	if x.gather {
		x.received = held.parts()
		x.halo, x.sending = held.Rows()-(hi-lo), (hi-lo)*(c.Size()-1)
		return x, nil
	}
	asked, err := incoming(c, counts)
	if err != nil {
		return nil, err
	}
	x.sent = asked
	x.halo, x.sending = int(halo), comm.End(x.sent)
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
	// Rows of the local B lie in the order of the whole's: those of lower ranks, its own that are met, those of higher
	// ones.
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

// Exchange is the way in which rows of B are sent to the ranks that need them.
type Exchange int

// The ways to exchange.
const (
	Auto   Exchange = iota // Gather where nearly all rows are needed, else Rows
	Rows                   // each rank receives the rows that its share of A meets
	Gather                 // each rank receives all rows
)

func (e Exchange) String() string { return [...]string{"auto", "rows", "gather"}[e] }

// gathers decides whether all rows are gathered where some are needed. Gathering needs no packing, and libraries do it
// in fewer messages.
func (e Exchange) gathers(needed, all int64) bool {
	return e == Gather || e == Auto && all > 0 && needed > all/10*9
}

// buffers hold one exchange's data on the device, for a B of cols columns.
type buffers struct {
	cols  int
	out   *tensor.Tensor // packed rows for others
	local *tensor.Tensor // the local B
}

// newBuffers allocates the memory for sent rows, and a local B of some rows.
func newBuffers(x *exchange, dev *device.Device, t dtype.Type, rows, cols int) (*buffers, error) {
	b := &buffers{cols: cols}
	var err error
	if b.out, err = newTensor(dev, len(x.send), cols, t); err != nil {
		return nil, err
	}
	if b.local, err = newTensor(dev, rows, cols, t); err != nil {
		return nil, errors.Join(err, b.out.Close())
	}
	return b, nil
}

func (b *buffers) close() error {
	if b == nil {
		return nil
	}
	return closeTensors(&b.out, &b.local)
}

// begin begins to exchange the rows that were packed; own is the rank's B, which gathering sends as it lies. The result
// is nil where there is nothing to exchange.
func (x *exchange) begin(ctx context.Context, b *buffers, own *tensor.Tensor) (comm.Transfer, error) {
	local, item, err := b.local.Memory()
	if err != nil || item == 0 {
		return nil, err
	}
	if x.gather {
		mine, pitch, err := own.Memory()
		if err == nil && pitch != item {
			err = fmt.Errorf("dist: rows of B are %d bytes apart, want %d, as NewTensor makes them", pitch, item)
		}
		if err != nil {
			return nil, err
		}
		return x.via.AllGatherV(ctx, item, mine, local, x.received)
	}
	out, _, err := b.out.Memory()
	if err != nil {
		return nil, err
	}
	return x.via.AllToAllV(ctx, item, out, x.sent, local, x.received)
}
