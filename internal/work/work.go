// Package work is the task that a plan is made for: a matrix, and how it is to be multiplied with.
//
// Resolve decides which matrix is multiplied with (transposed, quantised or as it is) and fills in defaults, once. A
// Work keeps the matrix as it came, and as CSR once that is needed; it packs the matrix for a kernel, whole or in
// ranges of rows.
package work

import (
	"cmp"
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Work is a matrix to multiply with, and how. Before Resolve it has no matrix, and says what is asked for.
type Work struct {
	A         *Matrix    // stands on the left, whatever side the caller has it on
	Right     bool       // A is the transpose of the matrix that the caller has on the right: C = alpha·B·A + beta·C
	Reordered bool       // A's entries are in another order than the caller's; A shares no memory with those
	Precision dtype.Type // of A's values and of B; Invalid: the matrix's own type
	Format    string     // the format that is asked for; "" or "auto": any
	// Variant asks for a kernel, KERNEL or KERNEL/TILE as spec.Variant.KernelName has it: no other multiplies. A
	// variant's own name has the matrix packed for it, and leaves the kernel to the problem. "" leaves both.
	Variant string
	Cols    int  // columns of B to choose for; 0: 128
	Uses    int  // about how often the plan is multiplied; 0: unknown
	Tune    bool // measure the packings that are predicted to be near the best, and remember the fastest
	// P, unless 0, requests the product RFX-p of this p, or AutoP. Format then decides between rows (csr), panels
	// shuffled as in tiledcsr, and panels (any other), where the device has a kernel for them.
	P      rfx.P
	Budget *Budget // nil: all of the device's memory
}

// Form says which matrix is made of the one that is given.
type Form struct {
	Transpose bool       // its transpose
	Quantise  dtype.Type // S8 or E4M3: the type that its values are rounded to; Invalid: none
	// Whole, if it has rows, is a larger matrix that the one to multiply with is some rows of. Rows are summed as within
	// it.
	Whole Extent
}

// Budget is how much memory of a device may be used.
type Budget struct {
	Bytes int64 // for A, B, C and workspaces
	Cols  int   // of B and C
}

// Resolve validates what is asked for, fills in defaults, and makes the matrix of a.
func (w Work) Resolve(a formats.Encoded, f Form) (*Work, error) {
	if err := w.Validate(f); err != nil {
		return nil, err
	}
	w.Cols = cmp.Or(w.Cols, DefaultCols)
	if w.Format == "auto" {
		w.Format = ""
	}
	if q, ok := a.(*formats.Quantised); ok || f.Quantise != dtype.Invalid {
		return &w, w.quantised(a, q, f)
	}
	if f.Whole != (Extent{}) {
		if err := f.validateWhole(a); err != nil {
			return nil, err
		}
	}
	w.Precision = cmp.Or(w.Precision, a.Type())
	switch {
	case f.Transpose != w.Right: // on the right, A is the transpose
		a, w.Reordered = formats.Transpose(a), !formats.ByColumns(a)
	case formats.ByColumns(a):
		a, w.Reordered = a.Sparse(), true
	}
	w.A = &Matrix{Encoded: formats.DenseTo(a, w.Precision), of: f.Whole}
	return &w, nil
}

// quantised makes A the quantised matrix: q, or, where that is nil, a with its values rounded.
func (w *Work) quantised(a formats.Encoded, q *formats.Quantised, f Form) error {
	if err := w.validateQuantised(f); err != nil {
		return err
	}
	switch {
	case q != nil && f.Quantise != dtype.Invalid && f.Quantise != q.Kind:
		return fmt.Errorf("Options.Quantise: %v, but the matrix has values of %v", f.Quantise, q.Kind)
	case q != nil && f.Transpose != w.Right:
		name := "Transpose"
		if w.Right {
			name = "Right"
		}
		return fmt.Errorf("Options.%s: a matrix that is quantised has its scales along rows: transpose it before that", name)
	}
	if w.Precision == dtype.Invalid {
		w.Precision = dtype.F16
		if a.Type() == dtype.BF16 {
			w.Precision = dtype.BF16
		}
	}
	if q == nil {
		if f.Transpose != w.Right {
			a = formats.Transpose(a)
		}
		var err error
		if q, _, err = formats.Quantise(a.Sparse(), f.Quantise); err != nil {
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
