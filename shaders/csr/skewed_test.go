// Matrices with many entries in long rows: the order of their segments, the variant that takes them, and its products.

package csr_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/csr"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// A matrix with at least this number of segments and rows is packed as one with many entries in long rows.
const manySegments, manyRows = 3 << 10, 1 << 17

// asShare packs a matrix as rows of a larger one.
func asShare(rows int, nnz, segments int64) *spec.Format {
	f := *csr.Format
	f.Encode = func(a formats.Sparse, v *spec.Variant) (*spec.Packed, error) {
		return csr.Format.EncodeShare(a, v, spec.Extent{Rows: rows, NNZ: nnz, Segments: segments})
	}
	return &f
}

// TestSkewedProducts: products with a row whose segments a workgroup adds, rows whose segments a warp adds, listed rows
// and short rows.
func TestSkewedProducts(t *testing.T) {
	const k = 9000
	lens := ragged(90, 700)
	lens[7], lens[60], lens[89] = k, 600, 1000
	format := asShare(manyRows, manyRows, manySegments)
	for _, n := range []int{9, 32, 70, 200} {
		q := shadertest.Case{Name: fmt.Sprintf("skewed, %d columns", n), Pattern: shadertest.Spread(k, lens...), K: k, N: n,
			Alpha: 2, Beta: 1}
		suite.Each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
			q.RunTwice(t, dev, format, v, out)
			folded := q
			folded.Fold = true
			folded.Run(t, dev, format, v, out)
		})
	}
}

// TestSkewed: from a number of segments on they are listed by their first columns, rows that are one segment behind the
// others, and a variant of its own multiplies by more than 16 columns.
func TestSkewed(t *testing.T) {
	v := csr.Format.Variants[slices.IndexFunc(csr.Format.Variants, named("cuda90_f32"))]
	lens := ragged(90, 700)
	lens[60], lens[89] = 9000, 1000
	a := shadertest.Ones[float32](shadertest.Spread(9000, lens...), 9000)
	plain, err := asShare(manyRows, manyRows, manySegments-1).Encode(a, v)
	if err != nil {
		t.Fatal(err)
	}
	skewed, err := asShare(manyRows, manyRows, manySegments).Encode(a, v)
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]*spec.Format{
		"few rows":  asShare(manyRows-1, manyRows, manySegments),
		"long rows": asShare(manyRows, 32*manyRows+1, manySegments),
	} {
		if e, err := of.Encode(a, v); err != nil || e.Format.(spec.Split).Skewed {
			t.Errorf("%s: packed as a matrix with short rows too (%v)", name, err)
		}
	}
	split := skewed.Format.(spec.Split)
	if split.Wide != 1 || plain.Format.(spec.Split).Wide != 0 {
		t.Errorf("%d rows are added by a workgroup, want 1", split.Wide)
	}
	list := func(e *spec.Packed) [][]uint32 {
		return slices.Collect(slices.Chunk(backend.View[uint32](e.Arrays[3].Data)[:4*split.Segments], 4))
	}
	segments, last := list(skewed), int32(-1)
	for _, s := range segments {
		first := a.ColIdx[s[0]]
		if s[3] == spec.NoSlot {
			first = 1 << 30
		}
		if first < last {
			t.Fatalf("segment %v begins at column %d, one before it at %d", s, first, last)
		}
		last = first
	}
	all := list(plain)
	slices.SortFunc(all, slices.Compare)
	slices.SortFunc(segments, slices.Compare)
	if !slices.EqualFunc(all, segments, slices.Equal) {
		t.Error("other segments than in the order of rows")
	}
	for n, want := range map[int]string{16: "cuda90_f32", 17: "cuda90_skewed_f32", 512: "cuda90_skewed_f32"} {
		p := spec.Problem{M: 90, K: 9000, N: n, LDB: 512, LDC: 512, Out: dtype.F32, Caps: backend.Caps{Units: 132}}
		if got := csr.Format.Suited(v, skewed, p); got.Name != want {
			t.Errorf("%d columns: %s, want %s", n, got.Name, want)
		}
		if got := csr.Format.Suited(v, plain, p); got.Name == "cuda90_skewed_f32" {
			t.Errorf("%d columns of a matrix with few segments: %s", n, got.Name)
		}
	}
}
