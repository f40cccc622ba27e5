// Bringing rows of all ranks to one, and of one to all.

package dist

import (
	"errors"

	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/formats"
)

// chunk is about how many bytes Collect brings at a time.
const chunk = 16 << 20

// Collect sends the rows of all ranks to rank 0, which calls f with them in order, as many rows at a time as fit a
// small buffer. The buffer is overwritten by the next rows. An error of f is an error on all ranks. mine has this
// rank's rows, as bounds says, row-major without padding; all ranks have the same number of columns.
func Collect[T formats.Value](c comm.Comm, bounds Bounds, mine *formats.Dense[T],
	f func(rows *formats.Dense[T]) error) error {
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
	var buffer []T
	err := inChunks(c, bounds, item, func(r, at, n int) error {
		var sent, received comm.Part
		var send, recv []T
		if c.Rank() == r {
			sent.Count = n
			send = mine.Data[at*mine.Cols : (at+n)*mine.Cols]
		}
		if c.Rank() == 0 {
			if received.Count = n; len(buffer) < n*mine.Cols {
				buffer = make([]T, n*mine.Cols)
			}
			recv = buffer[:n*mine.Cols]
		}
		if err := c.AllToAllV(item, bytesOf(send), only(c, 0, sent), bytesOf(recv), only(c, r, received)); err != nil {
			return err
		}
		give(&formats.Dense[T]{Rows: len(recv) / mine.Cols, Cols: mine.Cols, LD: mine.Cols, Data: recv})
		return nil
	})
	if err != nil {
		return err
	}
	return comm.Agree(c, failed, nil)
}

// Scatter sends every rank its rows of a matrix, as bounds says. On rank 0, all is the whole matrix; on the others it
// is nil. The result is row-major and has cols columns.
func Scatter[T formats.Value](c comm.Comm, bounds Bounds, all *formats.Dense[T], cols int) (*formats.Dense[T], error) {
	lo, hi := bounds.Range(c.Rank())
	mine := formats.NewDense[T](hi-lo, cols)
	var wrong error
	if c.Rank() == 0 && (all == nil || all.Rows != bounds.Rows() || all.Cols != cols || all.ColMajor) {
		wrong = errors.New("dist: the matrix to scatter is missing, of another size or column-major")
	}
	if err := comm.Agree(c, wrong, nil); err != nil {
		return nil, err
	}
	item := cols * sizeOf[T]()
	if c.Rank() == 0 {
		for i := range mine.Rows {
			copy(mine.Line(i), all.Line(i))
		}
	}
	if item == 0 {
		return mine, nil
	}
	var buffer []T
	err := inChunks(c, bounds, item, func(r, at, n int) error {
		var sent, received comm.Part
		var send, recv []T
		if c.Rank() == 0 {
			if sent.Count = n; len(buffer) < n*cols {
				buffer = make([]T, n*cols)
			}
			send = buffer[:n*cols]
			for i := range n {
				copy(send[i*cols:], all.Line(bounds[r]+at+i))
			}
		}
		if c.Rank() == r {
			received.Count = n
			recv = mine.Data[at*cols : (at+n)*cols]
		}
		return c.AllToAllV(item, bytesOf(send), only(c, r, sent), bytesOf(recv), only(c, 0, received))
	})
	return mine, err
}

// inChunks calls f on all ranks for runs of rows of every rank but 0: rank r's from row at on, n of them.
func inChunks(c comm.Comm, bounds Bounds, item int, f func(r, at, n int) error) error {
	step := max(1, chunk/item)
	for r := 1; r < c.Size(); r++ {
		lo, hi := bounds.Range(r)
		for at := 0; at < hi-lo; at += step {
			if err := f(r, at, min(step, hi-lo-at)); err != nil {
				return err
			}
		}
	}
	return nil
}

// only returns parts for all ranks; those of other ranks than one are empty.
func only(c comm.Comm, rank int, p comm.Part) []comm.Part {
	parts := make([]comm.Part, c.Size())
	parts[rank] = p
	return parts
}
