// Package work is the task that a plan is made for: a matrix, and how it is to be multiplied with.
//
// Resolve decides which matrix is multiplied with (transposed, quantised or as it is) and fills in the defaults of
// Options, once. All else takes a Work and sees no Options. A Work keeps the matrix as it came, and as CSR once that
// is needed; it packs the matrix for a kernel, whole or in ranges of rows.
package work

import (
	"cmp"
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Work is a matrix to multiply with, and how.
type Work struct {
	A         *Matrix    // stands on the left, whatever side the caller has it on
	Right     bool       // A is the transpose of the matrix that the caller has on the right
	Reordered bool       // A's entries are in another order than the caller's; A shares no memory with those
	Precision dtype.Type // of A's values and of B
	Format    string     // the format that is asked for; "": any
	Variant   string     // the kernel that is asked for, or the variant that A is to be packed for; "": any
	Cols      int        // columns of B to choose for
	Tune      bool
	P         rfx.P   // of reproducible mode, or AutoP; 0: fast mode
	Budget    *Budget // nil: all of the device's memory
}

// Budget is how much memory of a device may be used.
type Budget struct {
	Bytes int64 // for A, B, C and workspaces
	Cols  int   // of B and C
}

// Resolve validates options and returns the work that they ask for.
func Resolve(a formats.Encoded, o Options) (*Work, error) {
	if err := cmp.Or(o.Validate(), o.validateWhole(a)); err != nil {
		return nil, err
	}
	w := &Work{
		Right: o.Right, Precision: o.Precision, Format: o.Format, Variant: o.Variant, Cols: cmp.Or(o.Cols, DefaultCols),
		Tune: o.Tune, P: o.Reproducible,
	}
	if o.anyFormat() {
		w.Format = ""
	}
	if q, ok := a.(*formats.Quantised); ok || o.Quantise != dtype.Invalid {
		return w, w.quantised(a, q, o)
	}
	w.Precision = cmp.Or(o.Precision, a.Type())
	switch {
	case o.Transpose != o.Right: // on the right, A is the transpose
		a, w.Reordered = formats.Transpose(a), !formats.ByColumns(a)
	case formats.ByColumns(a):
		a, w.Reordered = a.Sparse(), true
	}
	w.A = &Matrix{Encoded: formats.DenseTo(a, w.Precision), of: o.Whole}
	return w, nil
}

// ResolveForHost is Resolve for a call that packs on the host and multiplies nothing. It takes no account of
// Options.Whole.
func ResolveForHost(call string, a formats.Encoded, o Options) (*Work, error) {
	if err := o.validateForHost(call); err != nil {
		return nil, err
	}
	o.Whole = Extent{}
	return Resolve(a, o)
}

// quantised makes A the quantised matrix: q, or, where that is nil, a with its values rounded.
func (w *Work) quantised(a formats.Encoded, q *formats.Quantised, o Options) error {
	if err := o.validateQuantised(); err != nil {
		return err
	}
	switch {
	case q != nil && o.Quantise != dtype.Invalid && o.Quantise != q.Kind:
		return fmt.Errorf("Options.Quantise: %v, but the matrix has values of %v", o.Quantise, q.Kind)
	case q != nil && o.Transpose != o.Right:
		name := "Transpose"
		if o.Right {
			name = "Right"
		}
		return fmt.Errorf("Options.%s: a matrix that is quantised has its scales along rows: transpose it before that", name)
	}
	if o.Precision == dtype.Invalid {
		w.Precision = dtype.F16
		if a.Type() == dtype.BF16 {
			w.Precision = dtype.BF16
		}
	}
	if q == nil {
		if o.Transpose != o.Right {
			a = formats.Transpose(a)
		}
		var err error
		if q, _, err = formats.Quantise(a.Sparse(), o.Quantise); err != nil {
			return fmt.Errorf("Options.Quantise: %w", err)
		}
	}
	w.A = NewQuantised(q)
	return nil
}

// Of returns the same work with another matrix: some rows of A, or A in another form.
func (w *Work) Of(a *Matrix) *Work {
	x := *w
	x.A = a
	return &x
}

// Decoded returns the work with A as CSR.
func (w *Work) Decoded() *Work { return w.Of(NewMatrix(w.A.CSR())) }

// AsksFor tells whether a variant's kernel is asked for, and its tile if one is named.
func (w *Work) AsksFor(v *spec.Variant) bool {
	return !v.Any && v.Kind != nil && (w.Variant == v.Kind.Name || w.Variant == v.KernelName())
}

// FormatName returns the format that is asked for, as people write it.
func (w *Work) FormatName() string { return cmp.Or(w.Format, "auto") }
