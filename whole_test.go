// Rows of a larger matrix: summed as within it.

package spmm_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
)

// Row 700 has so many entries that it is summed in pieces; how long these are depends on the whole matrix, where
// that has more than a million entries. Multiplied in
// shares, of which one has that row almost alone, all rows have the bits that they have within the whole.
func TestWhole(t *testing.T) {
	const m, k, n = 4000, 20000, 8
	r := rand.New(rand.NewPCG(1, 2))
	a := &formats.CSR[float32]{Rows: m, Cols: k, RowPtr: make([]int64, m+1)}
	for i := range m {
		for j := range k {
			if i == 700 || i%7 != 0 && r.IntN(40) == 0 {
				a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, r.Float32()-0.5)
			}
		}
		a.RowPtr[i+1] = a.NNZ()
	}
	b := gen.Dense(k, n, 1, gen.Values{})
	dev := openCPU(t)
	multiply := func(a *formats.CSR[float32], o spmm.Options) *formats.Dense[float32] {
		t.Helper()
		p := prepare(t, dev, a, o)
		defer p.Close()
		if p.Info().Format != "csr" {
			t.Fatalf("format %s", p.Info().Format)
		}
		c := formats.NewDense[float32](a.Rows, n)
		must(t, second(spmm.Multiply(ctx, p, 1, b, 0, c)))
		return c
	}
	want := multiply(a, spmm.Options{Format: "csr"})
	differ := 0
	for _, cut := range [][2]int{{0, 1}, {1, 699}, {699, 702}, {702, 702}, {702, m}} {
		part, of := a.Range(cut[0], cut[1]), &formats.Dense[float32]{Rows: cut[1] - cut[0], Cols: n, LD: n, Data: want.Data[cut[0]*n : cut[1]*n]}
		if !multiply(part, spmm.Options{Whole: spmm.Extent{Rows: m, NNZ: a.NNZ()}}).Equal(of) {
			t.Errorf("rows %d to %d have other bits than within the whole", cut[0], cut[1])
		}
		if !multiply(part, spmm.Options{Format: "csr"}).Equal(of) {
			differ++
		}
	}
	if differ == 0 {
		t.Error("rows have the same bits by themselves: the test shows nothing")
	}
	for _, o := range []spmm.Options{
		{Whole: spmm.Extent{Rows: 1, NNZ: -1}},
		{Whole: spmm.Extent{Rows: m, NNZ: 1}, Mode: spmm.Reproducible},
		{Whole: spmm.Extent{Rows: m, NNZ: 1}, Transpose: true},
		{Whole: spmm.Extent{Rows: m, NNZ: 1}, Tune: true},
		{Whole: spmm.Extent{Rows: m, NNZ: 1}, Quantise: dtype.S8},
	} {
		if err := o.Validate(); err == nil {
			t.Errorf("%+v is not refused", o)
		}
	}
	if _, err := spmm.Prepare(ctx, dev, a, spmm.Options{Format: "dense", Whole: spmm.Extent{Rows: m, NNZ: a.NNZ()}}); !errors.Is(err, spmm.ErrUnsupported) {
		t.Errorf("format dense: %v", err)
	}
	q, _, err := formats.Quantise(a, dtype.S8)
	if err != nil {
		t.Fatal(err)
	}
	for want, x := range map[string]formats.Encoded{"not quantised": q, "more than the 3999 and": a} {
		o := spmm.Options{Whole: spmm.Extent{Rows: m - 1, NNZ: a.NNZ()}}
		if _, err := spmm.Prepare(ctx, dev, x, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

// On every device, rows have the bits that they have within the whole, whatever the number of the first entry; new values
// find their places.
func TestWholeOffset(t *testing.T) {
	a, err := gen.CSR("gen:powerlaw,rows=900,cols=500,nnz-per-row=23")
	if err != nil {
		t.Fatal(err)
	}
	all := spmm.Extent{Rows: a.Rows, NNZ: a.NNZ()}
	all.Pieces = all.CountPieces(a.RowPtr)
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		for _, n := range []int{3, 64} {
			b := gen.Dense(a.Cols, n, 1, gen.Values{})
			multiply := func(a *formats.CSR[float32], o spmm.Options, again bool) *formats.Dense[float32] {
				t.Helper()
				first := *a
				if again {
					first.Val = make([]float32, len(a.Val))
				}
				p := prepare(t, dev, &first, o)
				defer p.Close()
				if again {
					must(t, spmm.SetValues(ctx, p, a.Val))
				}
				c := formats.NewDense[float32](a.Rows, n)
				must(t, second(spmm.Multiply(ctx, p, 1, b, 0, c)))
				return c
			}
			want := multiply(a, spmm.Options{Format: "csr", Cols: n}, false)
			for lo := 0; lo < a.Rows; lo += 61 {
				hi := min(lo+61, a.Rows)
				o := spmm.Options{Format: "csr", Cols: n, Whole: all}
				o.Whole.Offset = a.RowPtr[lo]
				of := &formats.Dense[float32]{Rows: hi - lo, Cols: n, LD: n, Data: want.Data[lo*n : hi*n]}
				if !multiply(a.Range(lo, hi), o, lo%2 == 1).Equal(of) {
					t.Errorf("rows %d to %d, n = %d: other bits than within the whole", lo, hi, n)
				}
			}
		}
	})
}
