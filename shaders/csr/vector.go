// The variants for vectors, a B of few columns, and rows of many entries in f16 and bf16 on compute capability 9.0:
// vector.cu, which reads columns of 16 bits and keeps B in shared memory.

package csr

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	vectorWarps = 32      // of a workgroup; a multiprocessor runs one workgroup
	vectorGroup = 8       // entries that a lane loads together
	vectorLeast = 32      // the least average of a row's entries for which columns of 16 bits are packed
	shortBytes  = 2       // of a column of 16 bits
	shortCols   = 1 << 16 // the most columns of A with numbers of 16 bits; the last stands for none in vector.cu
)

// vectors take the packing of rows90 in 16-bit types, the narrowest first.
var vectors = []*spec.Variant{
	vectorVariant(dtype.F16, 1), vectorVariant(dtype.F16, 2), vectorVariant(dtype.F16, 4),
	vectorVariant(dtype.BF16, 1), vectorVariant(dtype.BF16, 2), vectorVariant(dtype.BF16, 4),
}

// vectorVariant returns the variant whose lanes have this number of columns.
func vectorVariant(t dtype.Type, columns uint32) *spec.Variant {
	shared := min(224, 64*columns) << 10
	return rows90Packing(t).sized(spec.PTX(fmt.Sprintf("cuda90_vector_%v_n%d", t, columns), spec.Variant{
		In: t, Entry: "csr", Need: spec.Need{Arch: 90, Shared: shared}, Local: spec.Line(32 * vectorWarps), Shared: shared,
		Overlaps: true, AnyOrder: true, HoldsB: true, Unread: 4 - shortBytes,
		Out:  []dtype.Type{dtype.F16, dtype.BF16},
		Unit: spec.Unit{Source: "vector.cu", Defines: map[string]string{"ELEM": include.Define(t)}},
		Consts: []spec.Const{
			spec.Define("COLS", columns), spec.Define("UNROLL", 2), spec.Define("WARPS", vectorWarps),
		},
	}), vectorKind, int(columns))
}

// hasShort reports whether a variant packs a matrix of this extent for vector.cu. A warp computes a row, so that none
// should be much longer than the others. If a quarter of the places has an entry, of four bytes, dense reads twice as
// much, but at a higher rate.
func hasShort(v *spec.Variant, of spec.Extent) bool {
	const unequal, dense = 8, 4
	average := int64(of.Average())
	return packingOf(v).short && of.Cols < shortCols && (v.Kind == vectorKind ||
		average >= vectorLeast && of.Longest <= unequal*average && average <= int64(of.Cols/dense))
}

// addShort appends the columns of entries in 16 bits to the words of `heavy`, in groups of 16 bytes. The whole matrix
// has `cols` columns.
func addShort(split *spec.Split, heavy []uint32, colidx []int32, cols int) []uint32 {
	const words = vectorGroup / 2
	for len(heavy)%words != 0 {
		heavy = append(heavy, 0)
	}
	split.Short = spec.Short{First: uint32(len(heavy) / words), Cols: cols}
	short := make([]uint32, spec.Ceil(len(colidx), vectorGroup)*words)
	for i, c := range colidx {
		short[i/2] |= uint32(c) << (16 * (i % 2))
	}
	return append(heavy, short...)
}

// takesVector reports whether a variant of vector.cu takes a matrix: all of B fits its shared memory, and would for the
// whole matrix.
func takesVector(v *spec.Variant, e *spec.Packed) bool {
	cols := e.Format.(spec.Split).Short.Cols
	return cols > 0 && (cols+1)*v.Tile.Cols*v.In.Size() <= int(v.Shared)
}

// suitedVector returns the one of vectors that suits n columns, nil if there is none. One that was asked for takes any
// number of columns.
func suitedVector(v *spec.Variant, e *spec.Packed, n int) *spec.Variant {
	if !packingOf(v).short {
		return nil
	}
	for _, x := range vectors {
		if x.In == v.In && n <= x.Tile.Cols && takesVector(x, e) {
			return x
		}
	}
	if v.Kind == vectorKind && takesVector(v, e) {
		return v
	}
	return nil
}

// launchVector launches a workgroup for each multiprocessor; their warps take one row after another.
func launchVector(v *spec.Variant, e *spec.Packed, p spec.Problem) (spec.Launch, error) {
	if !takesVector(v, e) {
		return spec.Launch{}, fmt.Errorf("kernel csr/%s: rows of few entries, or B of %d×%d exceeds shared memory: %w", v.Name,
			p.K, v.Tile.Cols, backend.ErrUnsupported)
	}
	g, err := spec.Fold(int64(min(spec.Ceil(p.M, vectorWarps), max(1, p.Caps.Units))), spec.Ceil(p.N, v.Tile.Cols))
	if err != nil {
		return spec.Launch{}, fmt.Errorf("kernel csr/%s: %w", v.Name, err)
	}
	first := e.Format.(spec.Split).Short.First
	return spec.Launch{Workspace: spec.NoWorkspace, Passes: []spec.Pass{{Variant: v.For(p), Groups: g,
		Params: spec.BlockFor(v, params{n: uint32(p.N), ldb: uint32(p.LDB), ldc: uint32(p.LDC), segments: first,
			items: uint32(p.M), width: g[0], longest: uint32(p.K), store: p.StoreWord() | p.OrderWord(),
			alpha: float32(p.Alpha), beta: float32(p.Beta)}, p.Alpha, p.Beta)}}}, nil
}
