// Quantised matrices: values of 8 bits, with scales.

package formats

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// ScaleCols is the number of columns that share a scale in each row of a quantised matrix.
const ScaleCols = 128

// MinScale and MaxScale bound the magnitude of scales other than 0: no product of a scale and a value of 8 bits leaves
// the range of float32's normal numbers.
const (
	MinScale = 0x1p-100
	MaxScale = 0x1p100
)

// Quantised is a sparse matrix whose values have 8 bits. The pattern is that of a CSR. Entry p of row i stands for
//
//	Scales[i·Groups() + ColIdx[p]/ScaleCols] · q
//
// where q is Q[p] as a signed integer (Kind dtype.S8) or as a half.E4M3 (Kind dtype.E4M3) that is not NaN. That number
// is exact: it may have more bits than float32, and products are verified against it. Scales are finite, and 0 or of a
// magnitude from MinScale to MaxScale.
type Quantised struct {
	Rows, Cols int
	Kind       dtype.Type // S8 or E4M3
	RowPtr     []int64    // as in CSR
	ColIdx     []int32
	Q          []uint8   // len(ColIdx) values
	Scales     []float32 // Rows·Groups(), row after row
}

const quantisedName = "quantised"

// QuantisedFormat describes format "quantised", as *Quantised holds it, for files. Pack quantises to dtype.S8. Kernels
// read quantised matrices in their own formats.
var QuantisedFormat = Format{
	Name: quantisedName,
	Pack: func(a Encoded, _ map[string]int) (Encoded, error) {
		q, _, err := Quantise(a.Sparse(), dtype.S8)
		if err != nil {
			return nil, err
		}
		return q, nil
	},
	New: func(t dtype.Type) Encoded { return &Quantised{Kind: t} },
}

// Level returns the number that an 8-bit value q stands for, without its scale.
func Level(kind dtype.Type, q uint8) float32 {
	if kind == dtype.E4M3 {
		return half.E4M3(q).Float32()
	}
	return float32(int8(q))
}

// Levels returns the levels of all 256 values of 8 bits.
func Levels(kind dtype.Type) *[256]float32 {
	var all [256]float32
	for q := range all {
		all[q] = Level(kind, uint8(q))
	}
	return &all
}

// Groups returns the number of scales of a row.
func (m *Quantised) Groups() int { return (m.Cols-1)/ScaleCols + min(1, m.Cols) }

// Scale returns the scale of the element at a row and column.
func (m *Quantised) Scale(row, col int) float32 { return m.Scales[row*m.Groups()+col/ScaleCols] }

// Levels returns the matrix without its scales, sharing its pattern. The values are exact.
func (m *Quantised) Levels() *CSR[half.F16] {
	var table [256]half.F16
	for q, x := range Levels(m.Kind) {
		table[q] = half.F16From(x)
	}
	a := &CSR[half.F16]{Rows: m.Rows, Cols: m.Cols, RowPtr: m.RowPtr, ColIdx: m.ColIdx, Val: make([]half.F16, len(m.Q))}
	par.Range(len(m.Q), grain, func(lo, hi int) {
		for p, q := range m.Q[lo:hi] {
			a.Val[lo+p] = table[q]
		}
	})
	return a
}

// Float32 returns the matrix with its scales multiplied in, rounded to float32, sharing its pattern.
func (m *Quantised) Float32() *CSR[float32] {
	a := &CSR[float32]{Rows: m.Rows, Cols: m.Cols, RowPtr: m.RowPtr, ColIdx: m.ColIdx, Val: make([]float32, len(m.Q))}
	par.Each(m.Rows, 64, func(i int) {
		for p := m.RowPtr[i]; p < m.RowPtr[i+1]; p++ {
			a.Val[p] = m.Scale(i, int(m.ColIdx[p])) * Level(m.Kind, m.Q[p])
		}
	})
	return a
}

// RowRange returns rows lo to hi-1 as a matrix, which shares all arrays but the row pointers.
func (m *Quantised) RowRange(lo, hi int) *Quantised {
	first, last := m.RowPtr[lo], m.RowPtr[hi]
	out := &Quantised{
		Rows: hi - lo, Cols: m.Cols, Kind: m.Kind, RowPtr: make([]int64, hi-lo+1),
		ColIdx: m.ColIdx[first:last:last], Q: m.Q[first:last:last], Scales: m.Scales[lo*m.Groups() : hi*m.Groups()],
	}
	for i := range out.RowPtr {
		out.RowPtr[i] = m.RowPtr[lo+i] - first
	}
	return out
}

// Format returns "quantised".
func (m *Quantised) Format() string { return quantisedName }

// Dims returns the matrix's numbers of rows and columns.
func (m *Quantised) Dims() (rows, cols int) { return m.Rows, m.Cols }

// NNZ returns the number of stored entries.
func (m *Quantised) NNZ() int64 { return int64(len(m.Q)) }

// Type returns Kind.
func (m *Quantised) Type() dtype.Type { return m.Kind }

// Sparse returns the result of Float32. It is exact if scales are powers of two or have at most 17 significant bits.
func (m *Quantised) Sparse() Sparse { return m.Float32() }

// Fields names the arrays: "rowptr", "colidx", "values" and "scales".
func (m *Quantised) Fields() Fields {
	return Fields{
		Version: 1, Rows: &m.Rows, Cols: &m.Cols,
		Arrays: []Field{NewField("rowptr", &m.RowPtr), NewField("colidx", &m.ColIdx), NewField("values", &m.Q),
			NewField("scales", &m.Scales)},
	}
}

// PanelRows returns 1: each row fetches its own rows of B.
func (m *Quantised) PanelRows() int { return 1 }

// PanelCols appends the columns of row p to dst.
func (m *Quantised) PanelCols(dst []uint32, p int) []uint32 {
	for _, c := range m.ColIdx[m.RowPtr[p]:m.RowPtr[p+1]] {
		dst = append(dst, uint32(c))
	}
	return dst
}

// Stats returns the size of the arrays.
func (m *Quantised) Stats() Stats {
	n := int64(len(m.Q))
	s := Stats{StoredBytes: 8*int64(len(m.RowPtr)) + 5*n + 4*int64(len(m.Scales)), Slots: n, MACs: n, Gathers: n}
	if n > 0 {
		s.Fill = 1
	}
	return s
}

// Validate reports the first thing wrong with the matrix.
func (m *Quantised) Validate() error {
	if m.Kind != dtype.S8 && m.Kind != dtype.E4M3 {
		return fmt.Errorf("quantised: values of %v: want s8 or e4m3", m.Kind)
	}
	pattern := &CSR[half.F16]{Rows: m.Rows, Cols: m.Cols, RowPtr: m.RowPtr, ColIdx: m.ColIdx,
		Val: make([]half.F16, len(m.ColIdx))}
	if err := pattern.Validate(); err != nil {
		return fmt.Errorf("quantised: %w", err)
	}
	if len(m.Q) != len(m.ColIdx) {
		return fmt.Errorf("quantised: %d values for %d column indices", len(m.Q), len(m.ColIdx))
	}
	groups := m.Groups()
	if int64(len(m.Scales)) != int64(m.Rows)*int64(groups) {
		return fmt.Errorf("quantised: %d scales for %d rows of %d groups", len(m.Scales), m.Rows, groups)
	}
	for i, s := range m.Scales {
		if !validScale(s) {
			return fmt.Errorf("quantised: row %d, columns from %d on: a scale of %g: want 0, or a magnitude from 2⁻¹⁰⁰ to 2¹⁰⁰", i/groups, i%groups*ScaleCols, s)
		}
	}
	if m.Kind == dtype.E4M3 {
		if p := slices.IndexFunc(m.Q, func(q uint8) bool { return half.E4M3(q).NaN() }); p >= 0 {
			return fmt.Errorf("quantised: entry %d is NaN", p)
		}
	}
	return nil
}

func validScale(s float32) bool {
	a := math.Abs(float64(s))
	return a == 0 || a >= MinScale && a <= MaxScale
}

// Quantise rounds a matrix to 8-bit values, of kind dtype.S8 or dtype.E4M3, and reports the loss. For each row and
// ScaleCols columns it chooses the scale so that the largest magnitude becomes the largest value, 127 or 448. If a
// power of two as scale keeps all values exactly, it is used instead. Values are rounded to nearest, ties to even. The
// result shares a's pattern. Infinities, NaN, and magnitudes beyond MaxScale times the largest value are errors. The
// error wraps ErrTooLarge if there are more than MaxSlots scales, or if the matrix is MostlyEmpty compared with them.
func Quantise(a Sparse, kind dtype.Type) (*Quantised, Loss, error) {
	if kind != dtype.S8 && kind != dtype.E4M3 {
		return nil, Loss{}, fmt.Errorf("quantised: values of %v: want s8 or e4m3", kind)
	}
	if err := a.Validate(); err != nil {
		return nil, Loss{}, err
	}
	return quantise(Convert[float32](a), kind)
}

func quantise(a *CSR[float32], kind dtype.Type) (*Quantised, Loss, error) {
	m := &Quantised{Rows: a.Rows, Cols: a.Cols, Kind: kind, RowPtr: a.RowPtr, ColIdx: a.ColIdx,
		Q: make([]uint8, len(a.Val))}
	if int64(m.Rows)*int64(m.Groups()) > MaxSlots {
		return nil, Loss{}, fmt.Errorf("quantised: %d×%d: %w", m.Rows, m.Cols, ErrTooLarge)
	}
	if scales := int64(m.Rows) * int64(m.Groups()); MostlyEmpty(scales, a.NNZ()) {
		return nil, Loss{}, fmt.Errorf("quantised: %d×%d: %w: %d scales for %d entries", m.Rows, m.Cols, ErrTooLarge, scales,
			a.NNZ())
	}
	m.Scales = make([]float32, m.Rows*m.Groups())
	var mu sync.Mutex
	var loss Loss
	var first error
	at := m.Rows
	par.Range(m.Rows, 16, func(lo, hi int) {
		var l Loss
		for i := lo; i < hi; i++ {
			if err := m.quantiseRow(i, a.Val, &l); err != nil {
				mu.Lock()
				if i < at {
					first, at = err, i
				}
				mu.Unlock()
				break
			}
		}
		mu.Lock()
		loss.Add(l)
		mu.Unlock()
	})
	if first != nil {
		return nil, Loss{}, first
	}
	return m, loss, nil
}

// quantiseRow does row i, group by group.
func (m *Quantised) quantiseRow(i int, val []float32, l *Loss) error {
	for p, end := m.RowPtr[i], m.RowPtr[i+1]; p < end; {
		group, from := m.ColIdx[p]/ScaleCols, p
		for p < end && m.ColIdx[p]/ScaleCols == group {
			p++
		}
		scale, err := scaleOf(val[from:p], m.Kind)
		if err != nil {
			return fmt.Errorf("row %d, columns from %d on: %w", i, group*ScaleCols, err)
		}
		m.Scales[i*m.Groups()+int(group)] = scale
		for e, x := range val[from:p] {
			q := nearest(float64(x)/float64(scale), m.Kind)
			m.Q[from+int64(e)] = q
			l.Values++
			if y := float64(scale) * float64(Level(m.Kind, q)); y != float64(x) {
				l.count(float64(x), y, 0)
			}
		}
	}
	return nil
}

// largest returns the largest value of a kind.
func largest(kind dtype.Type) float64 {
	if kind == dtype.E4M3 {
		return half.MaxE4M3
	}
	return 127
}

// scaleOf returns the scale for the values of a group.
func scaleOf(val []float32, kind dtype.Type) (float32, error) {
	most := 0.0
	for _, x := range val {
		if x-x != 0 {
			return 0, fmt.Errorf("%v cannot be quantised", x)
		}
		most = max(most, math.Abs(float64(x)))
	}
	if most > largest(kind)*MaxScale {
		return 0, fmt.Errorf("%g is too large to be quantised", most)
	}
	if most == 0 {
		return 1, nil
	}
	// The least power of two that keeps the largest in range leaves most bits to the others.
	_, exp := math.Frexp(most / largest(kind))
	if s := math.Ldexp(1, exp); exactly(val, s, kind) {
		return float32(s), nil
	}
	if s := math.Ldexp(1, exp-1); most <= s*largest(kind) && exactly(val, s, kind) {
		return float32(s), nil
	}
	return max(float32(most/largest(kind)), MinScale), nil
}

// exactly reports whether all values are kept by a scale.
func exactly(val []float32, scale float64, kind dtype.Type) bool {
	if scale < MinScale || scale > MaxScale {
		return false
	}
	for _, x := range val {
		y := float64(x) / scale
		if float64(Level(kind, nearest(y, kind))) != y {
			return false
		}
	}
	return true
}

// nearest rounds to a value of 8 bits.
func nearest(x float64, kind dtype.Type) uint8 {
	if kind == dtype.E4M3 {
		return uint8(half.E4M3From(x))
	}
	return uint8(int8(math.RoundToEven(max(-127, min(127, x)))))
}

// NewQuantised makes a matrix from the elements q of a dense one, row by row, and scaleRows×scaleCols scales of its
// blocks: 1×1 (one scale for all), rows×1 (one for each row), rows×⌈cols/128⌉, or ⌈rows/128⌉×⌈cols/128⌉ (blocks of
// 128×128). Zeros are no entries, unless all is set. Checkpoints hold quantised weights in this way.
func NewQuantised(kind dtype.Type, rows, cols int, q []uint8, scales []float32, scaleRows, scaleCols int,
	all bool) (*Quantised, error) {
	if err := checkDims(rows, cols); err != nil {
		return nil, err
	}
	if int64(len(q)) != int64(rows)*int64(cols) || int64(len(scales)) != int64(scaleRows)*int64(scaleCols) {
		return nil, fmt.Errorf("%d values and %d scales for %d×%d and %d×%d", len(q), len(scales), rows, cols, scaleRows,
			scaleCols)
	}
	m := &Quantised{Rows: rows, Cols: cols, Kind: kind, RowPtr: make([]int64, rows+1)}
	groups := m.Groups()
	blocks := (rows-1)/ScaleCols + min(1, rows)
	rowOf := map[int]func(int) int{blocks: func(i int) int { return i / ScaleCols }, 1: func(int) int { return 0 },
		rows: func(i int) int { return i }}[scaleRows]
	colOf := map[int]func(int) int{1: func(int) int { return 0 }, groups: func(g int) int { return g }}[scaleCols]
	if rows > 0 && cols > 0 && (rowOf == nil || colOf == nil) {
		return nil, fmt.Errorf("%d×%d scales for %d×%d values: want 1 or %d, or 1 for each 128 rows, by 1 or %d", scaleRows, scaleCols, rows, cols, rows, groups)
	}
	m.Scales = make([]float32, rows*groups)
	for i := range rows {
		for g := range groups {
			m.Scales[i*groups+g] = scales[rowOf(i)*scaleCols+colOf(g)]
		}
		for j, x := range q[i*cols:][:cols] {
			if all || Level(kind, x) != 0 {
				m.ColIdx, m.Q = append(m.ColIdx, int32(j)), append(m.Q, x)
			}
		}
		m.RowPtr[i+1] = int64(len(m.Q))
	}
	return m, m.Validate()
}
