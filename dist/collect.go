// Bringing rows of all ranks to one.

package dist

import (
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/formats"
)

// chunk is about how many bytes Collect brings at a time.
const chunk = 16 << 20

// Collect brings a matrix, of which every rank holds the rows that bounds say, to rank 0, which calls f with its rows in order, as
// many at a time as fit a small buffer: what f is given is overwritten later. An error of f's is an error on all ranks. mine
// is row-major without padding, with as many columns on all ranks.
func Collect[T formats.Value](c comm.Comm, bounds Bounds, mine *formats.Dense[T], f func(rows *formats.Dense[T]) error) error {
	item := mine.Cols * sizeOf[T]()
	var failed error
	give := func(d *formats.Dense[T]) {
		if failed == nil && d.Rows > 0 && c.Rank() == 0 {
			failed = f(d)
		}
	}
	give(mine)
	if item == 0 {
		return comm.Agree(c, failed, nil)
	}
	step := max(1, chunk/item)
	var buffer []T
	for r := 1; r < c.Size(); r++ {
		lo, hi := bounds.Range(r)
		for at := 0; at < hi-lo; at += step {
			n := min(step, hi-lo-at)
			sent, received := make([]comm.Part, c.Size()), make([]comm.Part, c.Size())
			var send, recv []T
			if c.Rank() == r {
				sent[0].Count = n
				send = mine.Data[at*mine.Cols : (at+n)*mine.Cols]
			}
			if c.Rank() == 0 {
				if received[r].Count = n; len(buffer) < n*mine.Cols {
					buffer = make([]T, n*mine.Cols)
				}
				recv = buffer[:n*mine.Cols]
			}
			if err := c.AllToAllV(item, bytesOf(send), sent, bytesOf(recv), received); err != nil {
				return err
			}
			give(&formats.Dense[T]{Rows: len(recv) / mine.Cols, Cols: mine.Cols, LD: mine.Cols, Data: recv})
		}
	}
	return comm.Agree(c, failed, nil)
}
