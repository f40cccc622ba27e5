// Packing the matrix for a kernel.

package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Packed is a matrix packed for a variant of a kernel.
type Packed struct {
	Kernel    *spec.Format // its Runs decides which variant multiplies: predictions, launches and reports go by it
	Variant   *spec.Variant
	Format    string     // the name of the format
	Name      string     // the variant's, for people
	Precision dtype.Type // of products
	Matrix    *Matrix    // with elements of the variant's storage type
	Data      *spec.Packed
	Block     int           // if not 0, Data has this many rows only, and the others are packed in blocks of as many
	Adopted   bool          // Data shares memory with the matrix as it came
	Took      time.Duration // packing
}

// CannotHold is the error of a format that cannot hold a matrix.
type CannotHold struct{ error }

// NotHeld returns the error of a format that cannot hold a matrix, and why.
func NotHeld(format string, err error) error {
	return CannotHold{fmt.Errorf("format %s: %w", format, err)}
}

func (e CannotHold) Unwrap() error { return e.error }

// Refusal tells whether an error is about one way to multiply, so that another may do.
func Refusal(err error) bool {
	return errors.As(err, new(CannotHold)) || errors.Is(err, backend.ErrUnsupported) || errors.Is(err,
		backend.ErrCompile) ||
		errors.Is(err, backend.ErrOutOfMemory)
}

// MostAtOnce is how many entries a packed matrix may have: as many as a buffer can. (A test sets it.)
var MostAtOnce = int64(1) << 31

// Pack packs the matrix for a variant, with elements of its type: whole, or the first block of rows of one that is too
// large. A format that cannot hold it is CannotHold.
func (m *Matrix) Pack(k *spec.Format, v *spec.Variant) (*Packed, error) {
	m.CSR()
	start := time.Now()
	of := &Matrix{Encoded: formats.ConvertTo(m.CSR(), v.In), quantised: m.quantised, of: m.of}
	var data *spec.Packed
	var err error
	block := 0
	switch {
	case m.quantised != nil:
		data, err = k.EncodeQuantised(m.quantised, v)
	case k.EncodeShare != nil && m.NNZ() > MostAtOnce:
		rows, _ := m.Dims()
		if of.of == (Extent{}) {
			of.of = m.Extent()
		}
		block = of.block()
		data, err = of.part(0, min(block, rows), k, v, nil)
	case m.of != (Extent{}) && k.EncodeShare != nil:
		data, err = k.EncodeShare(of.CSR(), v, m.of)
	default:
		data, err = k.Encode(of.CSR(), v)
	}
	if err != nil {
		return nil, NotHeld(k.Name, err)
	}
	p := of.packed(k, v, data, start)
	p.Block = block
	return p, nil
}

// Adopt takes the matrix as it comes, where a variant can.
func (m *Matrix) Adopt(k *spec.Format, v *spec.Variant) (*Packed, error) {
	start := time.Now()
	data, err := k.Adopt(m.Encoded, v)
	if err != nil {
		return nil, err
	}
	p := m.packed(k, v, data, start)
	p.Adopted = true
	return p, nil
}

// packed describes the matrix, which was packed for a variant.
func (m *Matrix) packed(k *spec.Format, v *spec.Variant, data *spec.Packed, start time.Time) *Packed {
	return &Packed{
		Kernel: k, Variant: v, Format: k.Name, Name: v.Name, Precision: v.In, Matrix: m, Data: data, Took: time.Since(start),
	}
}

// block returns how many rows of the matrix are packed at once, where all are too many.
func (m *Matrix) block() int {
	rows, _ := m.Dims()
	ptr, _ := m.CSR().Pattern()
	block, least := rows, PartRows(1, 1)
	for longest := m.NNZ(); longest > MostAtOnce && block > 1; {
		block = max(1, PartRows(block/2, 1))
		longest = 0
		for lo := 0; lo < rows; lo += block {
			longest = max(longest, ptr[min(lo+block, rows)]-ptr[lo])
		}
		if block <= least {
			break // a refusal of the kernel's says why this is too much
		}
	}
	return block
}

// part packs a range of the matrix's rows as the whole matrix was packed.
func (m *Matrix) part(lo, hi int, k *spec.Format, v *spec.Variant, whole *spec.Packed) (*spec.Packed, error) {
	if m.quantised != nil {
		return k.EncodeQuantised(m.quantised.RowRange(lo, hi), v)
	}
	if m.of != (Extent{}) {
		of := m.of
		ptr, _ := m.CSR().Pattern()
		of.Offset += ptr[lo]
		return k.EncodeShare(m.CSR().RowRange(lo, hi), v, of)
	}
	return k.Part(m.CSR().RowRange(lo, hi), v, whole)
}

// First returns the matrix as it is packed: whole, or in blocks of rowBlock rows.
func (p *Packed) First(ctx context.Context) (parts []*spec.Packed, rowBlock int, err error) {
	if p.Block > 0 {
		parts, err = p.Ranges(ctx, p.Block)
		return parts, p.Block, err
	}
	rows, _ := p.Matrix.Dims()
	return []*spec.Packed{p.Data}, max(1, rows), nil
}

// Ranges packs the matrix in ranges of rowBlock rows.
func (p *Packed) Ranges(ctx context.Context, rowBlock int) ([]*spec.Packed, error) {
	var parts []*spec.Packed
	rows, _ := p.Matrix.Dims()
	for lo := 0; lo == 0 || lo < rows; lo += rowBlock {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e, err := p.Matrix.part(lo, min(lo+rowBlock, rows), p.Kernel, p.Variant, p.Data)
		if err != nil {
			return nil, err
		}
		parts = append(parts, e)
	}
	return parts, nil
}

// Rows packs a range of rows as the whole matrix is packed, for a variant of the same packing.
func (p *Packed) Rows(lo, hi int, v *spec.Variant) (*Packed, error) {
	start := time.Now()
	rows := NewMatrix(formats.ConvertTo(p.Matrix.CSR().RowRange(lo, hi), v.In))
	if q := p.Matrix.quantised; q != nil {
		rows.quantised = q.RowRange(lo, hi)
	}
	data, err := p.Matrix.part(lo, hi, p.Kernel, v, p.Data)
	if err != nil {
		return nil, err
	}
	return rows.packed(p.Kernel, v, data, start), nil
}

// PartRows rounds the rows of a part up so that no panel is cut: to a multiple of the rows that the format keeps
// together, and of rowAlign; in small parts of leastAlign, which panels of all formats divide.
func PartRows(rows, panel int) int {
	const rowAlign, leastAlign = 128, 32
	to := leastAlign
	if rows > rowAlign {
		to = rowAlign
	}
	to = LCM(to, max(1, panel))
	return spec.Ceil(rows, to) * to
}

// LCM returns the least common multiple of two numbers.
func LCM(a, b int) int {
	x, y := a, b
	for y > 0 {
		x, y = y, x%y
	}
	return a / x * b
}
