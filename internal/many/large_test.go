// Matrices of more entries than are packed at once.

package many_test

import (
	"math"
	"testing"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/many"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/work"
	_ "github.com/spmmrun/spmm/portable/cpu"
)

func TestPackedInBlocks(t *testing.T) {
	const m, k, n = 700, 900, 20
	ctx := t.Context()
	s, err := gen.Parse("gen:onedense,rows=700,cols=900,density=0.02", 1)
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Generate(ctx, formats.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	drv, err := backend.Find("cpu")
	if err != nil {
		t.Fatal(err)
	}
	open := func() *device.Device {
		dev, err := drv.Open(ctx, backend.Info{Backend: "cpu"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { dev.Close() })
		return device.New(dev)
	}
	b := gen.Dense(k, n, 1, gen.Values{})
	multiply := func(memory int64) (*formats.Dense[float32], api.PlanInfo) {
		c := formats.NewDense[float32](m, n)
		g, err := many.New(ctx, []*device.Device{open()}, resolve(t, a, work.Work{Format: "csr", Cols: n}),
			many.Sharing{Split: api.ByRows, Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		dense := func(d *formats.Dense[float32]) tensor.Dense {
			return tensor.Dense{Rows: d.Rows, Cols: d.Cols, Type: dtype.F32,
				Host: tensor.Host{Data: backend.Bytes(d.Data), LD: d.LD}}
		}
		if _, err := g.Multiply(ctx, 1, dense(b), 0, dense(c), launch.Epilogue{}); err != nil {
			t.Fatal(err)
		}
		return c, g.Describe()
	}
	defer func(n int64) { work.MostAtOnce = n }(work.MostAtOnce)
	check := func(memories ...int64) {
		work.MostAtOnce = math.MaxInt64
		want, one := multiply(0)
		for _, work.MostAtOnce = range []int64{a.NNZ() - 1, 3000, 1, 0} {
			for _, memory := range memories {
				got, i := multiply(memory)
				if !got.Equal(want) {
					t.Errorf("at most %d entries at once, %d bytes: other bits", work.MostAtOnce, memory)
				}
				if i.NNZ != one.NNZ || memory == 0 && i.Stats.MACs != one.Stats.MACs {
					t.Errorf("%+v, packed at once %+v", i, one)
				}
			}
		}
	}
	check(0, 1<<30)
	// Little memory has fewer columns multiplied at once, and the order of a row's sums may depend on how many: these are
	// exact in any order.
	for _, values := range [][]float32{a.Val, b.Data} {
		for i := range values {
			values[i] = float32(i%15 - 7)
		}
	}
	check(0, 300<<10)
}
