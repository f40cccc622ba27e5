// What all formats have in common: a matrix in one of them, and what describes a format.

package formats

import (
	"errors"
	"fmt"
	"math"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/half"
)

// Encoded is a sparse matrix in some format, whose element type is known at run time only: a *CSR[T], or a
// *Matrix[T] of a package below this one.
type Encoded interface {
	Format() string // the format's name
	Dims() (rows, cols int)
	NNZ() int64
	Type() dtype.Type
	// Validate checks the arrays.
	Validate() error
	// Sparse decodes: it returns exactly the matrix that was encoded. The arrays must be valid.
	Sparse() Sparse
	// Fields returns the matrix's numbers and arrays by the names they have in files.
	Fields() Fields
	// PanelRows returns the number of rows of a panel: neighbouring rows (in a format that reorders rows: rows that are
	// multiplied together) that fetch a row of B once for all of them. It is 1 for CSR.
	PanelRows() int
	// PanelCols appends to dst the columns stored for panel p, which are the rows of B that it fetches.
	// Padding may repeat some. The arrays must be valid.
	PanelCols(dst []uint32, p int) []uint32
}

// Format describes a format: how a matrix is encoded in it, and read from arrays that a file holds. The
// format's package has one, called Format.
type Format struct {
	Name    string
	Options []Option // parameters of Pack, which files keep
	// Pack encodes a matrix; options has a number for each of Options. Callers use Encode.
	Pack func(a Encoded, options map[string]int) (Encoded, error)
	// New returns an empty matrix of an element type, whose Fields can be set: NewOf.
	New func(t dtype.Type) Encoded
}

// Option is a parameter of a format.
type Option struct {
	Name    string
	Default int
	Usage   string
}

// Detail is a figure that a format reports of a matrix, under the name that its paper uses.
type Detail struct {
	Name  string
	Value float64
}

// MaxSlots is the most value slots, or column indices, of an encoded matrix: indices on devices have 32 bits, and
// machines with 32-bit addresses have memory for fewer.
const MaxSlots = min(math.MaxUint32, math.MaxInt>>3)

// ErrTooLarge is wrapped by the errors of formats in which a matrix would exceed MaxSlots.
var ErrTooLarge = errors.New("matrix too large")

// MostlyEmpty reports whether a large matrix has hardly any entries compared with the slots (values, words of a mask)
// that a format would store because of its size. Formats refuse such a matrix with ErrTooLarge, because a file of a few
// bytes must not take all memory.
func MostlyEmpty(slots, nnz int64) bool {
	const many, most = 1 << 28, 256 // slots of a matrix; slots for an entry
	return slots > many && slots/most > nnz
}

// Encode encodes a matrix in the format. Options that are not given take their defaults; one that the
// format does not have is an error.
func (f Format) Encode(a Sparse, options map[string]int) (Encoded, error) {
	all := map[string]int{}
	for _, o := range f.Options {
		all[o.Name] = o.Default
	}
	for name, n := range options {
		if _, ok := all[name]; !ok {
			return nil, fmt.Errorf("format %s has no option %q", f.Name, name)
		}
		all[name] = n
	}
	e, err := f.Pack(a, all)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// CSRFormat describes format "csr": compressed sparse rows, as *CSR[T] holds them.
var CSRFormat = Format{
	Name: csrName,
	Pack: func(a Encoded, _ map[string]int) (Encoded, error) { return a.Sparse(), nil },
	New:  NewOf64[CSR[half.F16], CSR[half.BF16], CSR[float32], CSR[float64]],
}

// ByType joins three functions into one, which calls the one for the element type of its argument: F16, BF16 or
// float32. They are usually instances of one generic function. The result is an error for a matrix in another format
// and for one of float64; see ByType64.
func ByType[R, O any, A, B, C Encoded](f16 func(A, O) (R, error), bf16 func(B, O) (R, error),
	f32 func(C, O) (R, error)) func(Encoded, O) (R, error) {
	return func(m Encoded, o O) (R, error) {
		switch m := m.(type) {
		case A:
			return f16(m, o)
		case B:
			return bf16(m, o)
		case C:
			return f32(m, o)
		}
		return *new(R), notOf(m, (*new(A)).Format())
	}
}

// ByType64 is ByType for a format that holds float64 too.
func ByType64[R, O any, A, B, C, D Encoded](f16 func(A, O) (R, error), bf16 func(B, O) (R, error),
	f32 func(C, O) (R, error), f64 func(D, O) (R, error)) func(Encoded, O) (R, error) {
	rest := ByType(f16, bf16, f32)
	return func(m Encoded, o O) (R, error) {
		if m, ok := m.(D); ok {
			return f64(m, o)
		}
		return rest(m, o)
	}
}

// notOf is the error for a matrix that is not what a function of format want takes.
func notOf(m Encoded, want string) error {
	if m.Type() == dtype.F64 {
		return fmt.Errorf("a matrix in format %s of f64, which the format that it is for does not hold: csr, hrpb and dense do", m.Format())
	}
	return fmt.Errorf("a matrix in format %s (%T), want one in format %s", m.Format(), m, want)
}

// empty is a pointer to a matrix type.
type empty[M any] interface {
	*M
	Encoded
}

// NewOf returns an empty matrix for elements of type t: an A for F16, a B for BF16, else a C.
func NewOf[A, B, C any, PA empty[A], PB empty[B], PC empty[C]](t dtype.Type) Encoded {
	switch t {
	case dtype.F16:
		return PA(new(A))
	case dtype.BF16:
		return PB(new(B))
	}
	return PC(new(C))
}

// NewOf64 is NewOf for a format that holds float64 too: a D for F64.
func NewOf64[A, B, C, D any, PA empty[A], PB empty[B], PC empty[C], PD empty[D]](t dtype.Type) Encoded {
	if t == dtype.F64 {
		return PD(new(D))
	}
	return NewOf[A, B, C, PA, PB, PC](t)
}
