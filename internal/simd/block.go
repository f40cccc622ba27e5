// Blocks of a product: sixteen rows of the left operand as vectors, a column's sixteen values side by side.

package simd

import "github.com/spmmrun/spmm/formats/half"

// VectorRows is the number of rows that a vector has values of.
const VectorRows = 16

// InLines returns how many of n columns, a multiple of Width, are best summed up by PanelF32, whose sums lie row by
// row. The others, fewer than 32, are for TurnedF32.
func InLines(n int) int { return inLines(n) }

// TurnedF32 adds to sixteen rows of a product whose sums lie column by column: acc[j·16+r] += Σ_k
// a[k·16+r]·b[cols[k]·ldb+j] for r < 16 and j < n. n is a multiple of Width; sums are taken in the order of k. Every
// cols[k]·ldb+n ≤ len(b), which is not checked for each k.
func TurnedF32(acc, a []float32, cols []uint32, b []float32, ldb, n int) {
	if len(cols) == 0 || n == 0 {
		return
	}
	if n%Width != 0 || len(acc) < VectorRows*n || len(a) < VectorRows*len(cols) || len(b) < n {
		panic("simd: slices of a block do not fit together")
	}
	turnedF32(acc, a, cols, b, ldb, n)
}

func goTurnedF32(acc, a []float32, cols []uint32, b []float32, ldb, n int) {
	for k, col := range cols {
		v := (*[VectorRows]float32)(a[VectorRows*k:])
		for j, x := range b[int(col)*ldb:][:n] {
			sums := (*[VectorRows]float32)(acc[VectorRows*j:])
			for r, y := range v {
				sums[r] += y * x
			}
		}
	}
}

// Turn transposes lines of n numbers: dst[k·ldd+i] = src[i·lds+k] for i < lines and k < n. It is fastest where lines is
// a multiple of 8.
func Turn(dst []float32, ldd int, src []float32, lds, lines, n int) {
	if lines == 0 || n == 0 {
		return
	}
	if lds < n || ldd < lines || len(src) < (lines-1)*lds+n || len(dst) < (n-1)*ldd+lines {
		panic("simd: lines to be transposed do not fit")
	}
	i := 0
	if all := n &^ 3; all > 0 && turns() {
		for ; i+8 <= lines; i += 8 {
			turn8(dst[i:], ldd, src[i*lds:], lds, all)
		}
		if all < n && i > 0 {
			goTurn(dst[all*ldd:], ldd, src[all:], lds, i, n-all)
		}
	}
	if i < lines {
		goTurn(dst[i:], ldd, src[i*lds:], lds, lines-i, n)
	}
}

func goTurn(dst []float32, ldd int, src []float32, lds, lines, n int) {
	for i := range lines {
		for k, x := range src[i*lds:][:n] {
			dst[k*ldd+i] = x
		}
	}
}

// WidenLinesF32 copies lines of n numbers: dst[i·ldd+j] = src[i·lds+j] for i < lines and j < n.
func WidenLinesF32(dst []float32, ldd int, src []float32, lds, lines, n int) {
	widenLines(dst, ldd, src, lds, lines, n, linesF32, func(dst, src []float32) { copy(dst, src) })
}

// WidenLinesF16 is WidenLinesF32 for binary16 elements, which become float32.
func WidenLinesF16(dst []float32, ldd int, src []half.F16, lds, lines, n int) {
	widenLines(dst, ldd, src, lds, lines, n, linesF16, WidenF16)
}

// WidenLinesBF16 is WidenLinesF32 for bfloat16 elements, which become float32.
func WidenLinesBF16(dst []float32, ldd int, src []half.BF16, lds, lines, n int) {
	widenLines(dst, ldd, src, lds, lines, n, linesBF16, WidenBF16)
}

// widenLines has the multiple of eight numbers of each line done by fast, which does nothing and returns false where
// there is no assembly, and the others by one.
func widenLines[T any](dst []float32, ldd int, src []T, lds, lines, n int, fast func(dst []float32, ldd int, src []T,
	lds, lines, n int) bool, one func([]float32, []T)) {
	if lines == 0 || n == 0 {
		return
	}
	if lds < n || ldd < n || len(src) < (lines-1)*lds+n || len(dst) < (lines-1)*ldd+n {
		panic("simd: lines to be widened do not fit")
	}
	from := n &^ 7
	if from > 0 && !fast(dst, ldd, src, lds, lines, from) {
		from = 0
	}
	if from == n {
		return
	}
	for i := range lines {
		one(dst[i*ldd:][from:n], src[i*lds:][from:n])
	}
}
