// Matrices that stay in the host's memory: the bits of a matrix on the device, and never more of the device than was
// allowed.

package many_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/many"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/work"
)

// counting is a device that counts the bytes that are allocated.
type counting struct {
	backend.Device
	mu        sync.Mutex
	now, most int64
}

func (d *counting) Alloc(bytes int64) (backend.Buffer, error) {
	b, err := d.Device.Alloc(bytes)
	if err != nil {
		return nil, err
	}
	d.add(bytes)
	return &counted{LineCopier: b.(backend.LineCopier), d: d}, nil
}

func (d *counting) add(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now += n
	d.most = max(d.most, d.now)
}

// counted is a buffer of such a device.
type counted struct {
	backend.LineCopier
	d    *counting
	once sync.Once
}

func (b *counted) Close() error {
	b.once.Do(func() { b.d.add(-b.Size()) })
	return b.LineCopier.Close()
}

// unwrapped returns launches with the buffers of the device itself.
func unwrapped(launches []backend.Launch) []backend.Launch {
	out := backend.CloneLaunches(launches)
	for i := range out {
		for k, a := range out[i].Args {
			out[i].Args[k] = a.(*counted).LineCopier
		}
	}
	return out
}

func (d *counting) Run(ctx context.Context, l ...backend.Launch) (backend.Timing, error) {
	return d.Device.Run(ctx, unwrapped(l)...)
}

func (d *counting) Start(ctx context.Context, l ...backend.Launch) (backend.Pending, error) {
	return d.Device.Start(ctx, unwrapped(l)...)
}

func TestStream(t *testing.T) {
	const m, k, n = 1500, 700, 48
	ctx := t.Context()
	for _, format := range append(work.Formats(), "auto") {
		for _, o := range []work.Work{
			{}, {Right: true}, {Precision: dtype.F16}, {P: 15}, {P: 47}, {P: work.AutoP},
		} {
			if o.P != 0 && format != "csr" && format != "cvse" {
				continue
			}
			o.Format, o.Cols = format, n
			t.Run(fmt.Sprintf("%s %+v", format, o), func(t *testing.T) {
				a := streamedMatrix(t, format, m, k)
				rows, cols := a.Dims()
				b, c := host(gen.Dense(cols, n, 1, gen.Values{}), cols, n), host(gen.Dense(rows, n, 2, gen.Values{}), rows, n)
				if o.Right {
					b, c = host(gen.Dense(n, rows, 1, gen.Values{}), n, rows), host(gen.Dense(n, cols, 2, gen.Values{}), n, cols)
				}
				want := append([]byte(nil), c.Data...)
				one := &counting{Device: openCPU(t).Device}
				p, err := plan.New(ctx, device.New(one), a, o, work.Form{})
				if errors.Is(err, backend.ErrUnsupported) {
					t.Skip(err)
				}
				if err != nil {
					t.Fatal(err)
				}
				stored := p.Stats.StoredBytes
				w := c
				w.Data = want
				if _, err := p.Multiply(ctx, 1.5, b, -0.5, w, launch.Epilogue{}); err != nil {
					t.Fatal(err)
				}
				p.Close()

				limit := one.most - stored*3/4
				d := &counting{Device: openCPU(t).Device}
				g, err := many.New(ctx, []*device.Device{device.New(d)}, resolve(t, a, o), many.Sharing{Memory: limit})
				if err != nil {
					t.Fatalf("%d bytes: %v", limit, err)
				}
				defer g.Close()
				whole := g.Describe()
				if whole.Columns != n { // other blocks of columns, other sums
					t.Fatalf("%d columns at a time", whole.Columns)
				}
				if whole.Panels < 3 {
					t.Errorf("%d panels of a matrix of %d bytes in %d: %+v", whole.Panels, stored, limit, whole)
				}
				for range 2 {
					got := append([]byte(nil), c.Data...)
					w.Data = got
					tm, err := g.Multiply(ctx, 1.5, b, -0.5, w, launch.Epilogue{})
					if err != nil {
						t.Fatal(err)
					}
					if string(got) != string(want) {
						t.Errorf("other bits than in one piece (%s)", whole.Variant)
					}
					if tm.Streamed.Panels != whole.Panels || tm.Streamed.Bytes < stored/3 || tm.Device != 0 || tm.Host <= 0 {
						t.Errorf("timing %+v", tm)
					}
				}
				if d.most > limit {
					t.Errorf("%d bytes were allocated, of %d", d.most, limit)
				}
			})
		}
	}
}

// streamedMatrix returns a matrix that a format can hold, whose sums depend on their order.
func streamedMatrix(t *testing.T, format string, m, k int) formats.Encoded {
	spec := fmt.Sprintf("gen:uniform,rows=%d,cols=%d,density=0.3", m, k)
	if format == "nm" || format == "sparse24r" {
		spec = fmt.Sprintf("gen:nm,rows=%d,cols=%d,n=2,m=4", m, k)
	}
	s, err := gen.Parse(spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Generate(t.Context(), formats.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func host(d *formats.Dense[float32], rows, cols int) tensor.Dense {
	return tensor.Dense{Rows: rows, Cols: cols, Type: dtype.F32, Host: tensor.Host{Data: backend.Bytes(d.Data), LD: d.LD}}
}

// Where B and C do not fit, columns are multiplied some at a time; where nothing fits, the error says so.
func TestStreamColumns(t *testing.T) {
	const m, k, n = 500, 400, 200
	ctx, a := t.Context(), streamedMatrix(t, "csr", m, k)
	b := host(gen.Dense(k, n, 1, gen.Values{}), k, n)
	c, want := formats.NewDense[float32](m, n), formats.NewDense[float32](m, n)
	one, err := plan.New(ctx, openCPU(t), a, work.Work{Format: "csr"}, work.Form{})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	if _, err := one.Multiply(ctx, 1, b, 0, host(want, m, n), launch.Epilogue{}); err != nil {
		t.Fatal(err)
	}
	const limit = 200 << 10 // B and C of all columns take 720 kB
	d := &counting{Device: openCPU(t).Device}
	dev := device.New(d)
	w := resolve(t, a, work.Work{Format: "csr", Cols: n})
	g, err := many.New(ctx, []*device.Device{dev}, w, many.Sharing{Memory: limit})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if most := g.Describe().Columns; most < 8 || most >= n {
		t.Errorf("%d columns at a time", most)
	}
	if _, err := g.Multiply(ctx, 1, b, 0, host(c, m, n), launch.Epilogue{}); err != nil {
		t.Fatal(err)
	}
	for i := range c.Data {
		if diff := math.Abs(float64(c.Data[i] - want.Data[i])); diff > 1e-4 {
			t.Fatalf("element %d is %g, in one piece %g", i, c.Data[i], want.Data[i])
		}
	}
	if d.most > limit {
		t.Errorf("%d bytes were allocated, of %d", d.most, limit)
	}
	if _, _, err := g.TensorsFor(n, dtype.F32, dtype.F32); !errors.Is(err, backend.ErrOutOfMemory) {
		t.Errorf("tensors of all columns: %v", err)
	}
	for _, limit := range []int64{100, 30 << 10} {
		_, err = many.New(ctx, []*device.Device{dev}, w, many.Sharing{Memory: limit})
		if !errors.Is(err, backend.ErrOutOfMemory) || !strings.Contains(err.Error(), "fewer columns") {
			t.Errorf("%d bytes: %v", limit, err)
		}
	}
	if _, err := many.New(ctx, []*device.Device{dev}, resolve(t, a, work.Work{Format: "csr"}),
		many.Sharing{Memory: limit, Split: api.ByColumns}); !errors.Is(err, backend.ErrOutOfMemory) {
		t.Errorf("by columns: %v", err)
	}
}
