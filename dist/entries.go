// A matrix whose entries lie anywhere: ranks that read a file together.

package dist

import (
	"errors"

	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/formats"
)

// FromEntries sends entries to the ranks that hold their rows, and returns each rank's share. All have about the same
// number of rows; Balance makes them have about the same number of entries. On each rank e has the size of the whole
// matrix and any of its entries. Entries at the same place are added as with formats.SumDuplicates, in the order of
// rank 0's list, rank 1's and so on; merged is the number of this rank's entries that were added to others. e must not
// be used afterwards.
func FromEntries[T formats.Value](c comm.Comm, e *formats.COO[T]) (s Share[T], merged int64, err error) {
	size := []int64{int64(e.Rows), int64(e.Cols), -int64(e.Rows), -int64(e.Cols)}
	if err := c.AllReduce(size, comm.Max); err != nil {
		return s, 0, err
	}
	err = e.Validate()
	if size[0] != -size[2] || size[1] != -size[3] {
		err = errors.New("dist: ranks have entries of matrices of several sizes")
	}
	if err := comm.Agree(c, err, nil); err != nil {
		return s, 0, err
	}
	rows := Even(e.Rows, c.Size())
	counts := make([]int64, c.Size())
	owner := make([]int32, len(e.Row))
	for p, i := range e.Row {
		owner[p] = int32(rows.Owner(int(i)))
		counts[owner[p]]++
	}
	sent := follow(counts)
	received, err := incoming(c, counts)
	if err != nil {
		return s, 0, err
	}
	lo, hi := rows.Range(c.Rank())
	mine := &formats.COO[T]{Rows: hi - lo, Cols: e.Cols}
	if mine.Row, err = toOwners(c, e.Row, owner, sent, received); err != nil {
		return s, 0, err
	}
	if mine.Col, err = toOwners(c, e.Col, owner, sent, received); err != nil {
		return s, 0, err
	}
	if mine.Val, err = toOwners(c, e.Val, owner, sent, received); err != nil {
		return s, 0, err
	}
	for p := range mine.Row {
		mine.Row[p] -= int32(lo)
	}
	a, err := mine.ToCSR(formats.SumDuplicates)
	if err = comm.Agree(c, err, nil); err != nil {
		return s, 0, err
	}
	return Share[T]{First: lo, A: a}, int64(len(mine.Val)) - a.NNZ(), nil
}

// incoming returns where what each rank sends to this one comes, by how many items this one sends to each.
func incoming(c comm.Comm, counts []int64) ([]comm.Part, error) {
	one := make([]int, c.Size())
	for r := range one {
		one[r] = 1
	}
	from := make([]int64, c.Size())
	err := exchangeSlices(c, counts, comm.Follow(one...), from, comm.Follow(one...))
	return follow(from), err
}

// toOwners sends each element to its owner, those of one rank to another in order.
func toOwners[T plain](c comm.Comm, s []T, owner []int32, sent, received []comm.Part) ([]T, error) {
	next := make([]int, len(sent))
	for r, p := range sent {
		next[r] = p.Start
	}
	ordered := make([]T, len(s))
	for p, x := range s {
		ordered[next[owner[p]]] = x
		next[owner[p]]++
	}
	out := make([]T, comm.End(received))
	return out, exchangeSlices(c, ordered, sent, out, received)
}

// Transpose returns the ranks' shares of the transpose of a matrix. All have about the same number of rows; Balance
// makes them have about the same number of entries. s must not be used afterwards.
func Transpose[T formats.Value](c comm.Comm, s Share[T]) (Share[T], error) {
	rows, err := s.bounds(c)
	if err != nil {
		return s, err
	}
	if err := comm.Agree(c, s.A.Validate(), nil); err != nil {
		return s, err
	}
	e := s.A.ToCOO()
	e.Rows, e.Cols, e.Row, e.Col = s.A.Cols, rows.Rows(), e.Col, e.Row
	for p := range e.Col {
		e.Col[p] += int32(s.First)
	}
	t, _, err := FromEntries(c, e)
	return t, err
}
