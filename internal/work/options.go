// Which work is refused.

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

// Extent is the size of a matrix.
type Extent = spec.Extent

// NewExtent returns the extent of a matrix with row pointers.
func NewExtent(rows, cols int, rowptr []int64) Extent { return spec.NewExtent(rows, cols, rowptr) }

// DefaultCols is the number of columns of B that formats are chosen for when none is given.
const DefaultCols = 128

// AutoP, as Work.P, is the least precision that loses nothing, found for each multiplication.
const AutoP rfx.P = -1

// Formats returns the names of the formats there are.
func Formats() []string {
	var names []string
	for _, k := range shaders.Formats() {
		names = append(names, k.Name)
	}
	return names
}

// validateWhole refuses a matrix that is not some rows of Whole.
func (f Form) validateWhole(a formats.Encoded) error {
	if rows, _ := a.Dims(); rows > f.Whole.Rows || a.NNZ() > f.Whole.NNZ {
		return fmt.Errorf("Form.Whole: A has %d rows and %d entries, more than the %d and %d of the matrix that it is part of",
			rows, a.NNZ(), f.Whole.Rows, f.Whole.NNZ)
	}
	return nil
}

// Validate refuses work that no matrix and no device can make right. Errors name the fields of spmm.Options.
func (w *Work) Validate(f Form) error {
	precisions := []dtype.Type{dtype.Invalid, dtype.F16, dtype.BF16, dtype.TF32, dtype.F32, dtype.F64}
	whole, quantised := f.Whole != (Extent{}), f.Quantise != dtype.Invalid
	switch {
	case w.Format != "" && w.Format != "auto" && !slices.Contains(Formats(), w.Format):
		return fmt.Errorf("Options.Format: unknown format %q (auto, %s)", w.Format, strings.Join(Formats(), ", "))
	case !slices.Contains(precisions, w.Precision):
		return fmt.Errorf("Options.Precision: %v: want f16, bf16, tf32, f32 or f64", w.Precision)
	case quantised && f.Quantise != dtype.S8 && f.Quantise != dtype.E4M3:
		return fmt.Errorf("Options.Quantise: %v: want s8 or e4m3", f.Quantise)
	case w.Cols < 0 || w.Cols > math.MaxInt32:
		return fmt.Errorf("Options.Cols: %d: want 1 to %d, or 0, which means %d", w.Cols, math.MaxInt32, DefaultCols)
	case w.Uses < 0:
		return fmt.Errorf("Options.Uses: %d: want the number of products, or 0 if it is unknown", w.Uses)
	case w.Uses > 0 && (w.P != 0 || w.Tune):
		return errors.New("Options.Uses: it chooses the format in fast mode without Tune")
	case quantised && w.validateQuantised(f) != nil:
		return w.validateQuantised(f)
	case whole && (f.Whole.Rows < 0 || f.Whole.NNZ < 0 || f.Whole.Segments < 0 || f.Whole.Offset < 0):
		return fmt.Errorf("Form.Whole: %d rows and %d entries", f.Whole.Rows, f.Whole.NNZ)
	case whole && (w.P != 0 || w.Tune || f.Transpose || w.Right || quantised):
		return errors.New("Form.Whole is for fast mode, and for Tune, Transpose, Right and Quantise not set")
	case w.P != 0 && w.Precision == dtype.F64:
		return errors.New("Options.Precision: f64 is for fast mode: reproducible mode takes f16, bf16 and f32")
	case w.P != 0 && w.Tune:
		return errors.New("Options.Tune: tuning is for fast mode: reproducible mode chooses by prediction alone")
	case w.P == 0 || w.P == AutoP:
		return nil
	}
	if err := w.P.Check(); err != nil {
		return fmt.Errorf("Options.P: %w", err)
	}
	return nil
}

// validateQuantised refuses what a quantised matrix cannot be multiplied with.
func (w *Work) validateQuantised(f Form) error {
	switch {
	case f.Whole != (Extent{}):
		return errors.New("Form.Whole is for matrices that are not quantised")
	case w.P != 0:
		return errors.New("Options.Mode: a quantised matrix is multiplied with in fast mode only")
	case w.Precision == dtype.F32 || w.Precision == dtype.TF32 || w.Precision == dtype.F64:
		return fmt.Errorf("Options.Precision: %v: a quantised matrix is multiplied with in f16 or bf16", w.Precision)
	}
	return nil
}
