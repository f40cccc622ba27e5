// Shares of a matrix by rows, and how they are cut.

package dist

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/formats"
)

// Share is the consecutive rows of a matrix that one rank holds.
type Share[T formats.Value] struct {
	First int             // number of the first row within the matrix
	A     *formats.CSR[T] // the rows; columns are the whole matrix's
}

// Bounds says which rows of a matrix each rank holds: rank r has rows Bounds[r] to Bounds[r+1]-1.
type Bounds []int

// Even cuts n rows into ranges of about equal length, one for each rank.
func Even(n, ranks int) Bounds {
	b := make(Bounds, ranks+1)
	for r := range b {
		b[r] = int(int64(n) * int64(r) / int64(ranks))
	}
	return b
}

// Range returns the rows of a rank: lo to hi-1.
func (b Bounds) Range(rank int) (lo, hi int) { return b[rank], b[rank+1] }

// Rows returns the number of rows of all ranks.
func (b Bounds) Rows() int { return b[len(b)-1] }

// Owner returns the rank that holds row i.
func (b Bounds) Owner(i int) int { return sort.SearchInts(b, i+1) - 1 }

// parts are the ranks' rows within the whole.
func (b Bounds) parts() []comm.Part {
	ps := make([]comm.Part, len(b)-1)
	for r := range ps {
		ps[r] = comm.Part{Start: b[r], Count: b[r+1] - b[r]}
	}
	return ps
}

// check refuses bounds that are not for n rows and that number of ranks.
func (b Bounds) check(n, ranks int) error {
	if len(b) != ranks+1 || b[0] != 0 || b[ranks] != n || !slices.IsSorted(b) {
		return fmt.Errorf("dist: bounds %v are not those of %d rows on %d ranks", b, n, ranks)
	}
	return nil
}

// bounds collects where all shares begin. It refuses, on all ranks, shares that do not follow each other.
func (s Share[T]) bounds(c comm.Comm) (Bounds, error) {
	var missing error
	if s.A == nil {
		missing = errors.New("dist: a share has no matrix")
	}
	if err := comm.Agree(c, missing, nil); err != nil {
		return nil, err
	}
	// Row counts of all ranks, and the largest and the least number of columns.
	state := make([]int64, c.Size()+2)
	state[c.Rank()], state[c.Size()], state[c.Size()+1] = int64(s.A.Rows), int64(s.A.Cols), -int64(s.A.Cols)
	if err := c.AllReduce(state, comm.Max); err != nil {
		return nil, err
	}
	b := make(Bounds, c.Size()+1)
	for r := range c.Size() {
		b[r+1] = b[r] + int(state[r])
	}
	var wrong error
	switch {
	case b[c.Rank()] != s.First:
		wrong = fmt.Errorf("dist: a share begins with row %d, and those before it have %d rows", s.First, b[c.Rank()])
	case state[c.Size()] != -state[c.Size()+1]:
		wrong = fmt.Errorf("dist: shares have from %d to %d columns", -state[c.Size()+1], state[c.Size()])
	case b.Rows() > math.MaxInt32:
		wrong = fmt.Errorf("dist: shares have %d rows together, at most %d are possible", b.Rows(), math.MaxInt32)
	}
	return b, comm.Agree(c, wrong, nil)
}

// FromRoot returns the shares of a matrix that one rank has; a is nil on all others. That rank's share is the whole
// matrix, the others have no rows; Balance moves the rows.
func FromRoot[T formats.Value](c comm.Comm, a *formats.CSR[T]) (Share[T], error) {
	size := []int64{0, 0, 0} // ranks with a matrix, and its size
	if a != nil {
		size = []int64{1, int64(a.Rows), int64(a.Cols)}
	}
	if err := c.AllReduce(size, comm.Sum); err != nil {
		return Share[T]{}, err
	}
	if size[0] != 1 {
		return Share[T]{}, fmt.Errorf("dist: %d ranks have the matrix, want one", size[0])
	}
	root := []int64{0}
	if a != nil {
		root[0] = int64(c.Rank())
	}
	if err := c.AllReduce(root, comm.Max); err != nil {
		return Share[T]{}, err
	}
	if a != nil {
		return Share[T]{A: a}, nil
	}
	s := Share[T]{A: &formats.CSR[T]{Cols: int(size[2]), RowPtr: []int64{0}}}
	if c.Rank() > int(root[0]) {
		s.First = int(size[1])
	}
	return s, nil
}

// Balance moves rows between ranks so that each has consecutive rows with about the same number of entries. For this,
// each row counts as one more entry. s must not be used afterwards.
func Balance[T formats.Value](ctx context.Context, c comm.Comm, s Share[T]) (Share[T], error) {
	return BalanceBySpeed(ctx, c, s, 1)
}

// BalanceBySpeed is Balance for ranks with different devices: the number of entries is in proportion to speed. That is
// a positive number of each rank, for example the entries that its device is predicted to multiply in a second. So all
// ranks are predicted to take equally long.
func BalanceBySpeed[T formats.Value](ctx context.Context, c comm.Comm, s Share[T], speed float64) (Share[T], error) {
	from, err := s.bounds(c)
	if err != nil {
		return Share[T]{}, err
	}
	if !(speed > 0 && speed <= math.MaxFloat64) {
		err = fmt.Errorf("dist: a speed of %g: want a positive number", speed)
	}
	if err := comm.Agree(c, err, nil); err != nil || c.Size() == 1 {
		return s, err
	}
	to, err := s.cut(c, speed)
	if err != nil {
		return Share[T]{}, err
	}
	if err := comm.Agree(c, ctx.Err(), nil); err != nil || slices.Equal(from, to) {
		return s, err
	}
	return s.move(c, from, to)
}

// weight returns how much row i counts.
func (s Share[T]) weight(i int) int64 { return s.A.RowPtr[i+1] - s.A.RowPtr[i] + 1 }

// cut returns bounds between which rows weigh as the ranks' speeds.
func (s Share[T]) cut(c comm.Comm, speed float64) (Bounds, error) {
	weights := make([]int64, c.Size())
	weights[c.Rank()] = s.A.NNZ() + int64(s.A.Rows)
	if err := c.AllReduce(weights, comm.Sum); err != nil {
		return nil, err
	}
	before, total := int64(0), int64(0)
	for r, w := range weights {
		if r < c.Rank() {
			before += w
		}
		total += w
	}
	target, err := targets(c, total, speed)
	if err != nil {
		return nil, err
	}
	// Rank k's rows begin with the first before which there is the part of the total that is the ranks' below it. The rank
	// that holds the row before finds it.
	state := make([]int64, c.Size()+1)
	k := 1
	for k < c.Size() && before >= target[k] {
		k++
	}
	for i := range s.A.Rows {
		before += s.weight(i)
		for ; k < c.Size() && before >= target[k]; k++ {
			state[k] = int64(s.First + i + 1)
		}
	}
	state[c.Size()] = int64(s.First + s.A.Rows)
	if err := c.AllReduce(state, comm.Max); err != nil {
		return nil, err
	}
	b := make(Bounds, len(state))
	for i, x := range state {
		b[i] = int(x)
		if i > 0 {
			b[i] = max(b[i], b[i-1])
		}
	}
	return b, nil
}

// targets returns how much of a total is the ranks' below each, in proportion to their speeds.
func targets(c comm.Comm, total int64, speed float64) ([]int64, error) {
	bits := make([]int64, c.Size())
	bits[c.Rank()] = int64(math.Float64bits(speed))
	if err := c.AllReduce(bits, comm.Sum); err != nil {
		return nil, err
	}
	all, sum, alike := make([]float64, len(bits)), 0.0, true
	for r, b := range bits {
		all[r] = math.Float64frombits(uint64(b))
		sum += all[r] / float64(len(all))
		alike = alike && all[r] == all[0]
	}
	target, before := make([]int64, len(bits)), 0.0
	for r := range target {
		if target[r] = share(total, r, len(all)); !alike {
			target[r] = int64(float64(total) / float64(len(all)) * (before / sum))
		}
		before += all[r]
	}
	return target, nil
}

// share is k of n parts of a total.
func share(total int64, k, n int) int64 {
	return total/int64(n)*int64(k) + total%int64(n)*int64(k)/int64(n)
}

// move sends rows that are cut in one way to the ranks that have them when they are cut in another.
func (s Share[T]) move(c comm.Comm, from, to Bounds) (Share[T], error) {
	lo, hi := to.Range(c.Rank())
	a := &formats.CSR[T]{Rows: hi - lo, Cols: s.A.Cols, RowPtr: make([]int64, hi-lo+1)}
	sent, received := make([]comm.Part, c.Size()), make([]comm.Part, c.Size())
	for r := range c.Size() {
		sent[r] = overlap(from[c.Rank()], from[c.Rank()+1], to[r], to[r+1])
		received[r] = overlap(lo, hi, from[r], from[r+1])
	}
	lengths := make([]int64, s.A.Rows)
	for i := range lengths {
		lengths[i] = s.A.RowPtr[i+1] - s.A.RowPtr[i]
	}
	if err := exchangeSlices(c, lengths, sent, a.RowPtr[1:], received); err != nil {
		return Share[T]{}, err
	}
	for i := range a.Rows {
		a.RowPtr[i+1] += a.RowPtr[i]
	}
	nnz := a.RowPtr[a.Rows]
	most := []int64{max(nnz, s.A.NNZ())}
	if err := c.AllReduce(most, comm.Max); err != nil {
		return Share[T]{}, err
	}
	if most[0] > math.MaxInt32 {
		return Share[T]{}, fmt.Errorf("dist: a rank has %d entries, at most %d are possible: use more ranks", most[0],
			math.MaxInt32)
	}
	for r := range c.Size() {
		sent[r] = entries(s.A.RowPtr, sent[r])
		received[r] = entries(a.RowPtr, received[r])
	}
	a.ColIdx, a.Val = make([]int32, nnz), make([]T, nnz)
	err := exchangeSlices(c, s.A.ColIdx, sent, a.ColIdx, received)
	if err == nil {
		err = exchangeSlices(c, s.A.Val, sent, a.Val, received)
	}
	return Share[T]{First: lo, A: a}, err
}

// overlap is the part of rows lo to hi, counted from lo, that lies in other rows.
func overlap(lo, hi, otherLo, otherHi int) comm.Part {
	first, last := max(lo, otherLo), min(hi, otherHi)
	if first >= last {
		return comm.Part{}
	}
	return comm.Part{Start: first - lo, Count: last - first}
}

// entries are those of a part of the rows.
func entries(rowPtr []int64, p comm.Part) comm.Part {
	lo, hi := rowPtr[p.Start], rowPtr[p.Start+p.Count]
	return comm.Part{Start: int(lo), Count: int(hi - lo)}
}
