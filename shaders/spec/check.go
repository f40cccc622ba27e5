// Checks of problems. Errors name the limit.

package spec

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/spmmrun/spmm/backend"
)

// MaxLD bounds leading dimensions: a row's bytes fit 32 bits.
const MaxLD = 1 << 29

// TightCols is the most columns of a B whose rows need no padding: see TightLD.
const TightCols = 4

// TightLD is the leading dimension of such a B of n columns: the power of two that holds them.
func TightLD(n int) int { return 1 << bits.Len(uint(max(1, n)-1)) }

// Check checks that a variant may multiply e in p. The error wraps ErrUnsupported if the device cannot.
func (p Problem) Check(v *Variant, e *Packed) error {
	bLines, bWidth := linesOf(p.BCol, p.K, p.N)
	cLines, cWidth := linesOf(p.CCol, p.M, p.N)
	switch {
	case p.M != e.Rows || p.K != e.Cols:
		return fmt.Errorf("a problem of %d×%d with a matrix of %d×%d", p.M, p.K, e.Rows, e.Cols)
	case !v.TakesOrders(p.N, p.BCol, p.CCol):
		return fmt.Errorf("a column-major B or C: %w", backend.ErrUnsupported)
	case p.N < 0 || p.LDB < bWidth || p.LDC < cWidth || p.LDB%8 != 0 &&
		!(v.Tight && p.N <= TightCols && p.LDB == TightLD(p.N)):
		return fmt.Errorf("%d columns with leading dimensions %d of B (a multiple of 8) and %d of C", p.N, p.LDB, p.LDC)
	case p.LDB > MaxLD || p.LDC > MaxLD:
		return fmt.Errorf("leading dimensions %d and %d exceed %d: %w", p.LDB, p.LDC, MaxLD, backend.ErrUnsupported)
	case p.Out != v.Sums() && !slices.Contains(v.Out, p.Out):
		return fmt.Errorf("cannot write C as %v: %w", p.Out, backend.ErrUnsupported)
	}
	for _, a := range e.Arrays {
		if err := p.CheckBinding(v, a.Name, int64(len(a.Data))); err != nil {
			return err
		}
	}
	if err := p.CheckBinding(v, "B", int64(bLines)*int64(p.LDB)*int64(v.In.Size())); err != nil {
		return err
	}
	return p.CheckBinding(v, "C", int64(cLines)*int64(p.LDC)*int64(p.Out.Size()))
}

// linesOf returns the lines of a matrix and how long they are: rows, or columns if it is column-major.
func linesOf(colMajor bool, rows, cols int) (lines, width int) {
	if colMajor {
		return cols, rows
	}
	return rows, cols
}

// CheckBinding checks the bytes of an argument against the largest binding, for code that has bindings.
func (p Problem) CheckBinding(v *Variant, name string, bytes int64) error {
	limit := int64(math.MaxUint32)
	if l := p.Caps.MaxBinding; l > 0 {
		limit = min(limit, l)
	}
	if v.Code == backend.CodeWGSL && bytes > limit {
		return fmt.Errorf("%s takes %d bytes, a binding of this device covers %d: %w", name, bytes, limit,
			backend.ErrUnsupported)
	}
	return nil
}
