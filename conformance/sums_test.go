// Sums of reproducible mode, which devices that have some of the columns each leave to be added up and rounded.

package conformance

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/comm/local"
	"github.com/spmmrun/spmm/dist"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/rfx"
)

// wildElement is of any magnitude, and now and then not finite, or 0.
func wildElement(r *rand.Rand) float32 {
	switch r.IntN(40) {
	case 0:
		return []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32, 1e-45}[r.IntN(5)]
	case 1, 2:
		return 0
	}
	return float32(math.Ldexp(r.Float64()-0.5, r.IntN(30)))
}

// Entries are dealt out to slices, each with columns of its own. Their sums, in 64 bits too where they fit, add up and
// are rounded to what rfx.Dot defines.
func TestSums(t *testing.T) {
	devices(t, func(t *testing.T, dev backend.Device) {
		d := spmm.NewDevice(dev)
		for trial := range 6 {
			for _, p := range rfx.All {
				r := rand.New(rand.NewPCG(uint64(trial), uint64(p)))
				m, k, n, slices := r.IntN(40), 1+r.IntN(300), 1+r.IntN(13), 1+r.IntN(3)
				a := &formats.CSR[float32]{Rows: m, Cols: k, RowPtr: []int64{0}}
				for i := range m {
					for j := range k {
						if r.IntN(1+i%5) == 0 { // long and short rows
							a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, wildElement(r))
						}
					}
					a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
				}
				b := formats.NewDense[float32](k, n)
				for i := range b.Data {
					b.Data[i] = wildElement(r)
				}
				checkSums(t, d, p, a, b, slices)
			}
		}
		// Fewer segments than goroutines that add them up.
		for m := range 3 {
			wide := &formats.CSR[float32]{Rows: m, Cols: 1, RowPtr: []int64{0}}
			for range m {
				wide.ColIdx, wide.Val = append(wide.ColIdx, 0), append(wide.Val, 3)
				wide.RowPtr = append(wide.RowPtr, int64(len(wide.Val)))
			}
			b := formats.NewDense[float32](1, 40_000)
			for j := range b.Data {
				b.Data[j] = float32(j)
			}
			checkSums(t, d, rfx.P23, wide, b, 1)
		}
		// A row that is cut, with the largest integers.
		const k = 70_001
		long := &formats.CSR[float32]{Rows: 1, Cols: k, RowPtr: []int64{0, k}}
		b := gen.Dense(k, 2, 1, gen.Values{})
		for j := range k {
			long.ColIdx, long.Val = append(long.ColIdx, int32(j)), append(long.Val, 1.99)
			b.Set(j, 0, -1.99)
		}
		for _, p := range rfx.All {
			checkSums(t, d, p, long, b, 2)
		}
	})
}

func checkSums(t *testing.T, dev *spmm.Device, p rfx.P, a *formats.CSR[float32], b *formats.Dense[float32],
	slices int) {
	t.Helper()
	rows, cols, n := rfx.Rows(a), rfx.Cols(b), b.Cols
	total := make([]rfx.Sum, a.Rows*n)
	for s := range slices { // with columns s, s + slices, ...
		width := (a.Cols - s + slices - 1) / slices
		part, of := &formats.CSR[float32]{Rows: a.Rows, Cols: width + 1, RowPtr: []int64{0}},
			formats.NewDense[float32](width+1, n)
		for i := range a.Rows {
			for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
				if j := int(a.ColIdx[e]); j%slices == s {
					part.ColIdx, part.Val = append(part.ColIdx, int32(j/slices)), append(part.Val, a.Val[e])
				}
			}
			part.RowPtr = append(part.RowPtr, int64(len(part.Val)))
		}
		for j := range a.Cols {
			if j%slices == s {
				copy(of.Line(j/slices), b.Line(j))
			}
			for c := range n { // the largest elements of the columns
				if x := b.At(j, c); rfx.IsFinite(x) && math.Abs(float64(x)) > math.Abs(float64(of.At(width, c))) {
					of.Set(width, c, x)
				}
			}
		}
		sums := make([]rfx.Sum, a.Rows*n)
		if err := sumsOn(t.Context(), dev, part, rows, p, of, sums); err != nil {
			t.Fatal(err)
		}
		rfx.Classify(sums, part, rows, of, cols)
		for i, x := range sums {
			if p.Narrow(int64(a.Cols)) {
				x = rfx.Unpack64(x.Pack64())
			}
			total[i] = x.Add(total[i])
		}
	}
	rfx.RoundSums(rows, cols, p, func(i, j int) rfx.Sum { return total[i*n+j] }, func(i, j int, y float32) {
		var x, z []float32
		for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
			x, z = append(x, a.Val[e]), append(z, b.At(int(a.ColIdx[e]), j))
		}
		if want := rfx.Dot(p, rows[i], cols[j], x, z); math.Float32bits(y) != math.Float32bits(want) {
			t.Errorf("p = %d, %d slices, output (%d, %d) is %g, want %g", p, slices, i, j, y, want)
		}
	})
}

// sumsOn multiplies on a device.
func sumsOn(ctx context.Context, dev *spmm.Device, a *formats.CSR[float32], rows []rfx.Range, p rfx.P,
	b *formats.Dense[float32], sums []rfx.Sum) error {
	s, err := spmm.NewSums(ctx, dev, a, rows, int(p))
	if err != nil {
		return err
	}
	defer s.Close()
	x, err := spmm.NewTensor[float32](dev, b.Rows, b.Cols, false)
	if err != nil {
		return err
	}
	defer x.Close()
	if err := x.Upload(ctx, b); err != nil {
		return err
	}
	return s.Multiply(ctx, x, sums)
}

// Rows that ranks share, each with sums of its own device: the bits of a product on one.
func TestSharedRows(t *testing.T) {
	devices(t, func(t *testing.T, dev backend.Device) {
		d := spmm.NewDevice(dev)
		a, err := gen.CSR("gen:rmat,scale=8")
		if err != nil {
			t.Fatal(err)
		}
		b := formats.NewDense[float32](a.Cols, 9)
		r := rand.New(rand.NewPCG(1, 2))
		for i := range b.Data {
			b.Data[i] = wildElement(r)
		}
		for _, p := range []int{23, 47, spmm.AutoP} {
			o := spmm.Options{Mode: spmm.Reproducible, P: p}
			want := onRanks(t, d, a, b, 1, dist.Options{Multiply: o})
			for _, members := range []int{2, 4} {
				if got := onRanks(t, d, a, b, 4, dist.Options{Multiply: o, Replicate: members}); !got.Equal(want) {
					t.Errorf("p = %d, %d of 4 ranks share rows: other bits than in one process", p, members)
				}
			}
		}
	})
}

func onRanks(t *testing.T, dev *spmm.Device, a *formats.CSR[float32], b *formats.Dense[float32], ranks int,
	o dist.Options) *formats.Dense[float32] {
	t.Helper()
	out := formats.NewDense[float32](a.Rows, b.Cols)
	err := local.Run(ranks, func(c comm.Comm) error {
		lo, hi := dist.Even(a.Rows, ranks).Range(c.Rank())
		p, err := dist.Prepare(t.Context(), c, dev, dist.Share[float32]{First: lo, A: a.Range(lo, hi)}, o)
		if err != nil {
			return err
		}
		defer p.Close()
		if got := p.Info().Replicate; got != max(1, o.Replicate) {
			return fmt.Errorf("%d ranks share rows", got)
		}
		mine, of := formats.NewDense[float32](hi-lo, b.Cols), formats.NewDense[float32](hi-lo, b.Cols)
		for i := range of.Rows {
			copy(of.Line(i), b.Line(lo+i))
		}
		if _, err := p.Run(t.Context(), 1, of, 0, mine); err != nil {
			return err
		}
		for i := range mine.Rows {
			copy(out.Line(lo+i), mine.Line(i))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
