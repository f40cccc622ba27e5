// Options, and which are refused.

package work

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Options say how to bring a matrix onto a device.
type Options struct {
	Format string // a format's name; "" or "auto" picks one
	// Variant asks for a kernel, KERNEL or KERNEL/TILE as spec.Variant.KernelName has it: no other multiplies. A
	// variant's own name has the matrix packed for it, and leaves the kernel to the problem. "" leaves both.
	Variant   string
	Precision dtype.Type // of A's values and of B; Invalid: the matrix's own type
	Quantise  dtype.Type // S8 or E4M3: the type that A's values are rounded to; Invalid: none
	Cols      int        // columns of B to choose for; 0: 128
	Transpose bool       // multiply with the matrix's transpose
	Right     bool       // the matrix stands on the right: C = alpha·B·A + beta·C
	// Whole, if it has rows, is a larger matrix that the one to multiply with is some rows of. Rows are summed as within
	// it.
	Whole Extent
	// Tune measures the packings that are predicted to be near the best, and remembers the fastest in the cache folder.
	Tune bool
	// Reproducible, unless 0, requests the product RFX-p of this p, or AutoP. Format then decides between rows
	// (csr), panels shuffled as in tiledcsr, and panels (any other), where the device has a kernel for them.
	Reproducible rfx.P
}

// Extent is the size of a matrix.
type Extent = spec.Extent

// DefaultCols is the number of columns of B that formats are chosen for when none is given.
const DefaultCols = 128

// AutoP, as Options.Reproducible, is the least precision that loses nothing, found for each multiplication.
const AutoP rfx.P = -1

// anyFormat tells whether the options leave the format open.
func (o Options) anyFormat() bool { return o.Format == "" || o.Format == "auto" }

// Formats returns the names of the formats there are.
func Formats() []string {
	var names []string
	for _, k := range shaders.Formats() {
		names = append(names, k.Name)
	}
	return names
}

// validateWhole refuses a matrix that is not some rows of Options.Whole.
func (o Options) validateWhole(a formats.Encoded) error {
	if o.Whole == (Extent{}) {
		return nil
	}
	if _, ok := a.(*formats.Quantised); ok {
		return errors.New("Options.Whole is for matrices that are not quantised")
	}
	if rows, _ := a.Dims(); rows > o.Whole.Rows || a.NNZ() > o.Whole.NNZ {
		return fmt.Errorf("Options.Whole: A has %d rows and %d entries, more than the %d and %d of the matrix that it is part of",
			rows, a.NNZ(), o.Whole.Rows, o.Whole.NNZ)
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

// validateForHost is Validate for a call that packs on the host and multiplies nothing.
func (o Options) validateForHost(call string) error {
	switch {
	case o.Reproducible != 0:
		return fmt.Errorf("Options.Mode: %s packs for fast mode: reproducible mode packs with each Prepare", call)
	case o.Tune:
		return fmt.Errorf("Options.Tune: %s does not tune: Prepare does", call)
	}
	return o.Validate()
}
