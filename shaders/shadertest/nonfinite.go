// What structural zeros must not do.

package shadertest

import (
	"math"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Specials is a product by a B that is not finite: what a row of A does not store does not touch B, whatever B holds
// there; what it stores does, zeros included. A beta that is NaN is not 0: all of C is NaN then.
type Specials struct {
	Name string
	B    []float32 // the rows of B, in its special columns: all, or every third; the others are all 1
	N    int       // columns of B
	A    []Special // the first rows of A
	Rows int       // of A; those after the first are empty; at least len(A)
	Col  bool      // C is column-major, and B where the variant takes both
}

// Special is a row of A.
type Special struct {
	Cols []int32
	Vals []float32
	Want float32 // of C in special columns; in the others it is the sum of Vals
}

var (
	inf = float32(math.Inf(1))
	nan = float32(math.NaN())
)

// NonFinite is a product by 37 columns with infinities and NaN that all formats take, whose rows of A have entries in
// the first columns.
func NonFinite() Specials {
	return Specials{
		Name: "specials", B: []float32{0: 1, 1: inf, 2: -inf, 3: nan, 4: 2}, N: 37,
		A: []Special{
			{[]int32{0, 4}, []float32{3, -1}, 1},
			{[]int32{0, 1}, []float32{3, 2}, inf},
			{[]int32{0, 1}, []float32{3, -2}, -inf},
			{[]int32{1, 2}, []float32{1, 1}, nan},
			{[]int32{1, 2}, []float32{1, -1}, inf},
			{[]int32{0, 1}, []float32{3, 0}, nan}, // a stored zero is an entry
			{[]int32{2, 4}, []float32{2, -5}, -inf},
			{[]int32{3}, []float32{1}, nan},
			{nil, nil, 0},
			{[]int32{4}, []float32{1}, 2},
		},
	}
}

// Apart returns the product with `apart` columns between those of A, where B holds NaN and infinities.
func (q Specials) Apart(columns int) Specials {
	between := []float32{nan, inf, -inf}
	b := make([]float32, columns*len(q.B))
	for i := range b {
		if b[i] = between[i%3]; i%columns == 0 {
			b[i] = q.B[i/columns]
		}
	}
	q.B, q.A = b, slices.Clone(q.A)
	for i := range q.A {
		q.A[i].Cols = slices.Clone(q.A[i].Cols)
		for j := range q.A[i].Cols {
			q.A[i].Cols[j] *= int32(columns)
		}
	}
	return q
}

func (s *Suite) nonFinite(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
	specials := []Specials{NonFinite()}
	if s.Specials != nil {
		specials = s.Specials(v)
	}
	for _, q := range specials {
		q.Run(t, dev, s.Format, v, out)
		if v.Tile.Cols > 0 { // wider products may be those of another variant, which does not take the order
			q.N = min(q.N, v.Tile.Cols)
		}
		if v.TakesOrders(q.N, false, true) {
			q.Col = true
			q.Run(t, dev, s.Format, v, out)
		}
	}
}

// Run multiplies with a variant whose output type is out, and holds every element of C against what is wanted.
func (q Specials) Run(t *testing.T, dev backend.Device, k *spec.Format, v *spec.Variant, out dtype.Type) {
	t.Helper()
	for _, every := range []int{3, 1} {
		q.run(t, dev, k, v, out, every)
	}
}

// run is Run with `apart` columns of B from one special one to the next.
func (q Specials) run(t *testing.T, dev backend.Device, k *spec.Format, v *spec.Variant, out dtype.Type, every int) {
	t.Helper()
	a := &formats.CSR[float32]{Rows: max(len(q.A), q.Rows), Cols: len(q.B), RowPtr: []int64{0}}
	want := make([]Special, a.Rows)
	copy(want, q.A)
	for _, row := range want {
		a.ColIdx, a.Val = append(a.ColIdx, row.Cols...), append(a.Val, row.Vals...)
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	p := spec.Problem{M: a.Rows, K: a.Cols, N: q.N, LDB: (q.N + 7) &^ 7, LDC: q.N, Out: out, Alpha: 1}
	b := NewArray(v.In, q.b(p.LDB, every)).Data
	at := func(i, j int) int { return i*p.N + j }
	if q.Col {
		p.CCol, p.LDC = true, p.M
		if v.TakesOrders(q.N, true, true) {
			rows := p.LDB
			p.BCol, p.LDB = true, (p.K+7)&^7
			b = columns(b, v.In.Size(), p.K, p.N, rows, p.LDB)
		}
		at = func(i, j int) int { return j*p.M + i }
	}
	c := Array{out, make([]byte, p.M*p.N*out.Size())}
	Multiply(t, dev, k, v, formats.ConvertTo(a, v.In), b, nil, c.Data, p)
	for i, row := range want {
		var sum float64
		for _, x := range row.Vals {
			sum += float64(x)
		}
		for j := range p.N {
			want := round(out, sum)
			if j%every == 0 {
				want = float64(row.Want)
			}
			if got := c.At(at(i, j)); got != want && (got == got || want == want) {
				t.Fatalf("%s, %d columns, each %d special: C[%d,%d] is %v, want %v", q.Name, p.N, every, i, j, got,
					want)
			}
		}
	}

	clear(c.Data)
	p.Beta = math.NaN()
	Multiply(t, dev, k, v, formats.ConvertTo(a, v.In), b, nil, c.Data, p)
	for i := range p.M * p.N {
		if got := c.At(i); got == got {
			t.Fatalf("%s: with a beta of NaN C[%d,%d] is %v", q.Name, i/p.N, i%p.N, got)
		}
	}
}

// b returns B's rows, ld elements apart, with NaN in the padding.
func (q Specials) b(ld, every int) []float64 {
	b := make([]float64, len(q.B)*ld)
	for i, x := range q.B {
		for j := range ld {
			switch {
			case j >= q.N:
				b[i*ld+j] = math.NaN()
			case j%every == 0:
				b[i*ld+j] = float64(x)
			default:
				b[i*ld+j] = 1
			}
		}
	}
	return b
}
