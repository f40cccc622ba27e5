// Rows of a larger matrix: summed as within it.

package plan_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	_ "github.com/spmmrun/spmm/backend/all"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/values"
	"github.com/spmmrun/spmm/internal/work"
)

// product multiplies a by b, in format csr, a being some rows of whole unless that is zero. With again the plan is of
// zeros at first and gets a's values later.
func product(t *testing.T, dev *device.Device, a *formats.CSR[float32], w work.Work, whole work.Extent,
	b *formats.Dense[float32], again bool) *formats.Dense[float32] {
	t.Helper()
	first := *a
	if again {
		first.Val = make([]float32, len(a.Val))
	}
	p, err := plan.New(t.Context(), dev, &first, w, work.Form{Whole: whole})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Format != "csr" {
		t.Fatalf("format %s", p.Format)
	}
	if again {
		err = p.SetHostValues(t.Context(), values.Host{Type: dtype.F32, Data: backend.Bytes(a.Val)})
	}
	c := formats.NewDense[float32](a.Rows, b.Cols)
	if err == nil {
		_, err = p.Multiply(t.Context(), 1, hostOf(b), 0, hostOf(c), launch.Epilogue{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func hostOf(d *formats.Dense[float32]) tensor.Dense {
	return tensor.Dense{Rows: d.Rows, Cols: d.Cols, Type: dtype.F32,
		Host: tensor.Host{Data: backend.Bytes(d.Data), LD: d.LD}}
}

// Row 700 is so long that it is summed in segments; how long these are depends on the whole matrix, where
// that has more than a million entries. Multiplied in
// shares, one of them with that row almost alone, all rows have the bits that they have within the whole.
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
	want := product(t, dev, a, work.Work{Format: "csr"}, work.Extent{}, b, false)
	differ := 0
	for _, cut := range [][2]int{{0, 1}, {1, 699}, {699, 702}, {702, 702}, {702, m}} {
		part, of := a.Range(cut[0], cut[1]), &formats.Dense[float32]{Rows: cut[1] - cut[0], Cols: n, LD: n,
			Data: want.Data[cut[0]*n : cut[1]*n]}
		if !product(t, dev, part, work.Work{}, work.Extent{Rows: m, NNZ: a.NNZ()}, b, false).Equal(of) {
			t.Errorf("rows %d to %d have other bits than within the whole", cut[0], cut[1])
		}
		if !product(t, dev, part, work.Work{Format: "csr"}, work.Extent{}, b, false).Equal(of) {
			differ++
		}
	}
	if differ == 0 {
		t.Error("rows have the same bits by themselves: the test shows nothing")
	}
	one := work.Extent{Rows: m, NNZ: 1}
	for _, x := range []struct {
		work work.Work
		form work.Form
	}{
		{work.Work{}, work.Form{Whole: work.Extent{Rows: 1, NNZ: -1}}},
		{work.Work{P: rfx.P23}, work.Form{Whole: one}},
		{work.Work{}, work.Form{Whole: one, Transpose: true}},
		{work.Work{Tune: true}, work.Form{Whole: one}},
		{work.Work{}, work.Form{Whole: one, Quantise: dtype.S8}},
	} {
		if err := x.work.Validate(x.form); err == nil {
			t.Errorf("%+v is not refused", x)
		}
	}
	if _, err := plan.New(t.Context(), dev, a, work.Work{Format: "dense"},
		work.Form{Whole: work.Extent{Rows: m, NNZ: a.NNZ()}}); !errors.Is(err, backend.ErrUnsupported) {
		t.Errorf("format dense: %v", err)
	}
	q, _, err := formats.Quantise(a, dtype.S8)
	if err != nil {
		t.Fatal(err)
	}
	for want, x := range map[string]formats.Encoded{"not quantised": q, "more than the 3999 and": a} {
		f := work.Form{Whole: work.Extent{Rows: m - 1, NNZ: a.NNZ()}}
		if _, err := plan.New(t.Context(), dev, x, work.Work{}, f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

// On every device, rows have the bits that they have within the whole, whatever the number of the first entry; new
// values find their places.
func TestWholeOffset(t *testing.T) {
	a, err := gen.CSR("gen:powerlaw,rows=900,cols=500,nnz-per-row=23")
	if err != nil {
		t.Fatal(err)
	}
	all := work.Extent{Rows: a.Rows, NNZ: a.NNZ()}
	all.Pieces = all.CountPieces(a.RowPtr)
	onDrivers(t, func(t *testing.T, dev *device.Device) {
		for _, n := range []int{3, 64} {
			b := gen.Dense(a.Cols, n, 1, gen.Values{})
			want := product(t, dev, a, work.Work{Format: "csr", Cols: n}, work.Extent{}, b, false)
			for lo := 0; lo < a.Rows; lo += 61 {
				hi := min(lo+61, a.Rows)
				w, within := work.Work{Format: "csr", Cols: n}, all
				within.Offset = a.RowPtr[lo]
				of := &formats.Dense[float32]{Rows: hi - lo, Cols: n, LD: n, Data: want.Data[lo*n : hi*n]}
				if !product(t, dev, a.Range(lo, hi), w, within, b, lo%2 == 1).Equal(of) {
					t.Errorf("rows %d to %d, n = %d: other bits than within the whole", lo, hi, n)
				}
			}
		}
	})
}

// onDrivers calls f with an opened device of each driver that has one.
func onDrivers(t *testing.T, f func(t *testing.T, dev *device.Device)) {
	for _, driver := range backend.Drivers() {
		infos, err := driver.Devices(t.Context())
		if err != nil {
			t.Logf("%s: %v", driver.Name(), err)
			continue
		}
		t.Run(driver.Name(), func(t *testing.T) {
			t.Attr("device", infos[0].String())
			dev, err := driver.Open(t.Context(), infos[0])
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			f(t, device.New(dev))
		})
	}
}
