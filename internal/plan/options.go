// Options, and what is refused of them.

package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Options say how to bring a matrix onto a device.
type Options struct {
	Format string // a format's name; "" or "auto" picks one
	// Variant asks for a kernel, KERNEL or KERNEL/TILE as spec.Variant.KernelName has it: no other multiplies. A variant's own
	// name has the matrix packed for it, and leaves the kernel to the problem. "" leaves both.
	Variant   string
	Precision dtype.Type // of A's values and of B; Invalid: the matrix's own type
	Quantise  dtype.Type // S8 or E4M3: what A's values are rounded to; Invalid: A is multiplied with as it is
	Cols      int        // columns of B to choose for; 0: 128
	Transpose bool       // multiply with the matrix's transpose
	Right     bool       // the matrix stands on the right: C = alpha·B·A + beta·C
	// Whole, if it has rows, is the matrix of which the one to multiply with is some rows: rows are summed as they would be there.
	Whole Extent

	within *allowance   // nil: all of the device's memory may be used
	limits []*allowance // the same for each device of a group
	// Tune measures the packings that are predicted to be near the best, and remembers the fastest in the
	// cache folder, for others to take.
	Tune bool
	// Reproducible, unless 0, requests the product RFX-p of this p, or AutoP. Format then decides between rows
	// (csr), panels shuffled as in tiledcsr, and panels (any other), where the device has a kernel for these.
	Reproducible rfx.P
}

// Extent is the size of a matrix.
type Extent = spec.Extent

// DefaultCols is the number of columns of B that formats are chosen for when none is given.
const DefaultCols = 128

// cols is Cols with its default.
func (o Options) cols() int {
	if o.Cols == 0 {
		return DefaultCols
	}
	return o.Cols
}

// asksFor tells whether the options ask for a variant's kernel, and for its tile if they name one.
func (o Options) asksFor(v *spec.Variant) bool {
	return !v.Any && v.Kind != nil && (o.Variant == v.Kind.Name || o.Variant == v.KernelName())
}

// precision is Precision with its default.
func (o Options) precision(a formats.Encoded) dtype.Type {
	if o.Precision == dtype.Invalid {
		return a.Type()
	}
	return o.Precision
}

// quantised returns the matrix to multiply with where that is quantised, by the caller or by Quantise; else nil. o is then
// for the precision of B.
func (o *Options) quantised(a formats.Encoded) (*formats.Quantised, error) {
	q, is := a.(*formats.Quantised)
	if !is && o.Quantise == dtype.Invalid {
		return nil, nil
	}
	if err := o.validateQuantised(); err != nil {
		return nil, err
	}
	switch {
	case is && o.Quantise != dtype.Invalid && o.Quantise != q.Kind:
		return nil, fmt.Errorf("Options.Quantise: %v, but the matrix has values of %v", o.Quantise, q.Kind)
	case is && o.Transpose != o.Right:
		return nil, fmt.Errorf("Options.%s: a matrix that is quantised has its scales along rows: transpose it before that", pick(o.Right, "Right", "Transpose"))
	}
	if o.Precision == dtype.Invalid {
		o.Precision = dtype.F16
		if a.Type() == dtype.BF16 {
			o.Precision = dtype.BF16
		}
	}
	if is {
		return q, nil
	}
	if o.Transpose != o.Right {
		a = formats.Transpose(a)
	}
	q, _, err := formats.Quantise(a.Sparse(), o.Quantise)
	if err != nil {
		err = fmt.Errorf("Options.Quantise: %w", err)
	}
	return q, err
}

// operand returns the matrix to multiply with, on the left, and whether its entries are in another order than a's: then what Sparse
// returns of it shares no memory with a, and its entries were given column by column. A dense matrix has the precision's type.
func (o Options) operand(a formats.Encoded) (m formats.Encoded, turned bool) {
	switch {
	case o.Transpose != o.Right: // on the right, the transpose of what is multiplied by
		m, turned = formats.Transpose(a), !formats.ByColumns(a)
	case formats.ByColumns(a):
		m, turned = a.Sparse(), true
	default:
		m = a
	}
	return formats.DenseTo(m, o.precision(a)), turned
}

// anyFormat tells whether the options leave the format open.
func (o Options) anyFormat() bool { return o.Format == "" || o.Format == "auto" }

// validateWhole refuses a matrix that is not some rows of Options.Whole.
func (o Options) validateWhole(a formats.Encoded) error {
	if o.Whole == (Extent{}) {
		return nil
	}
	if _, ok := a.(*formats.Quantised); ok {
		return errors.New("Options.Whole is for matrices that are not quantised")
	}
	if rows, _ := a.Dims(); rows > o.Whole.Rows || a.NNZ() > o.Whole.NNZ {
		return fmt.Errorf("Options.Whole: A has %d rows and %d entries, more than the %d and %d of the matrix that it is part of", rows, a.NNZ(), o.Whole.Rows, o.Whole.NNZ)
	}
	return nil
}

// Validate refuses options that no matrix and no device can make right, and those that exclude each other.
func (o Options) Validate() error {
	precisions := []dtype.Type{dtype.Invalid, dtype.F16, dtype.BF16, dtype.TF32, dtype.F32, dtype.F64}
	switch {
	case !o.anyFormat() && !slices.Contains(Formats(), o.Format):
		return fmt.Errorf("Options.Format: unknown format %q (auto, %s)", o.Format, strings.Join(Formats(), ", "))
	case !slices.Contains(precisions, o.Precision):
		return fmt.Errorf("Options.Precision: %v: want f16, bf16, tf32, f32 or f64", o.Precision)
	case o.Quantise != dtype.Invalid && o.Quantise != dtype.S8 && o.Quantise != dtype.E4M3:
		return fmt.Errorf("Options.Quantise: %v: want s8 or e4m3", o.Quantise)
	case o.Cols < 0 || o.Cols > math.MaxInt32:
		return fmt.Errorf("Options.Cols: %d: want 1 to %d, or 0, which means %d", o.Cols, math.MaxInt32, DefaultCols)
	case o.Quantise != dtype.Invalid && o.validateQuantised() != nil:
		return o.validateQuantised()
	case o.Whole != (Extent{}) && (o.Whole.Rows < 0 || o.Whole.NNZ < 0 || o.Whole.Pieces < 0 || o.Whole.Offset < 0):
		return fmt.Errorf("Options.Whole: %d rows and %d entries", o.Whole.Rows, o.Whole.NNZ)
	case o.Whole != (Extent{}) && (o.Reproducible != 0 || o.Tune || o.Transpose || o.Right || o.Quantise != dtype.Invalid):
		return errors.New("Options.Whole is for fast mode, and for Tune, Transpose, Right and Quantise not set")
	case o.Reproducible != 0 && o.Precision == dtype.F64:
		return errors.New("Options.Precision: f64 is for fast mode: reproducible mode takes f16, bf16 and f32")
	case o.Reproducible != 0 && o.Tune:
		return errors.New("Options.Tune: tuning is for fast mode: reproducible mode chooses by prediction alone")
	case o.Reproducible == 0 || o.Reproducible == AutoP:
		return nil
	}
	if err := o.Reproducible.Check(); err != nil {
		return fmt.Errorf("Options.P: %w", err)
	}
	return nil
}

// validateQuantised refuses what a quantised matrix cannot be multiplied with.
func (o Options) validateQuantised() error {
	switch {
	case o.Reproducible != 0:
		return errors.New("Options.Mode: a quantised matrix is multiplied with in fast mode only")
	case o.Precision == dtype.F32 || o.Precision == dtype.TF32 || o.Precision == dtype.F64:
		return fmt.Errorf("Options.Precision: %v: a quantised matrix is multiplied with in f16 or bf16", o.Precision)
	}
	return nil
}

// validateForHost is Validate for calls that pack on the host and multiply nothing.
func (o Options) validateForHost(call string) error {
	switch {
	case o.Reproducible != 0:
		return fmt.Errorf("Options.Mode: %s packs for fast mode: reproducible mode packs with each Prepare", call)
	case o.Tune:
		return fmt.Errorf("Options.Tune: %s does not tune: Prepare does", call)
	}
	return o.Validate()
}
