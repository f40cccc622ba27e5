// Groups of devices: the bits of one device, whichever way a product is split.

package spmm_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"golang.org/x/sync/errgroup"
)

func openSeveral(t testing.TB, list string) *spmm.Device {
	t.Helper()
	g, err := spmm.Open(ctx, list)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// uneven is a matrix with empty rows, one row that is summed in segments, and values of many magnitudes, whose sums
// depend on their order.
func uneven[T formats.Value](rows, cols int) *formats.CSR[T] {
	r := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	a := &formats.CSR[T]{Rows: rows, Cols: cols, RowPtr: make([]int64, rows+1)}
	for i := range rows {
		for j := range cols {
			if i == rows/3 || i%4 != 0 && r.IntN(12) == 0 {
				a.ColIdx = append(a.ColIdx, int32(j))
				a.Val = append(a.Val, value[T]((r.Float32()-0.5)*float32(int(1)<<r.IntN(12))))
			}
		}
		a.RowPtr[i+1] = a.NNZ()
	}
	return a
}

// splitBy returns options with a split.
func splitBy(o spmm.Options, split spmm.Split) spmm.Options {
	o.Split = split
	return o
}

var splits = []spmm.Split{spmm.ByColumns, spmm.ByRows}

// whole makes the values small integers, whose sums are exact in any order.
func whole(a *formats.CSR[float32]) *formats.CSR[float32] {
	a = a.Clone().(*formats.CSR[float32])
	for i := range a.Val {
		a.Val[i] = float32(i%7 - 3)
	}
	return a
}

// sameAsOne multiplies on one device and on groups, by columns and by rows, and compares bits.
func sameAsOne[T formats.Value](t *testing.T, dev *spmm.Device, groups []*spmm.Device, a formats.Encoded, n int,
	o spmm.Options, colMajor, exact bool) {
	t.Helper()
	rows, cols := a.Dims()
	if o.Transpose {
		rows, cols = cols, rows
	}
	bRows, bCols, cRows, cCols := cols, n, rows, n
	if o.Right {
		bRows, bCols, cRows, cCols = n, rows, n, cols
	}
	values := gen.Values{}
	if exact {
		values = gen.Values{Kind: gen.Int, Lo: -8, Hi: 8}
	}
	b := formats.ConvertDense[T](gen.Dense(bRows, bCols, 3, values)).Layout(colMajor, 0)
	before := gen.Dense(cRows, cCols, 4, values).Layout(colMajor, 0)
	one, err := spmm.Prepare(ctx, dev, a, o)
	if err != nil {
		t.Fatalf("one device: %v", err)
	}
	defer one.Close()
	want := before.Layout(colMajor, 0)
	must(t, second(spmm.Multiply(ctx, one, 1.5, b, -0.5, want, spmm.Epilogue{Activation: spmm.ReLU})))
	for _, g := range groups {
		for _, split := range splits {
			what := fmt.Sprintf("%d devices by %v", len(g.Devices()), split)
			p, err := spmm.Prepare(ctx, g, a, splitBy(o, split))
			if err != nil {
				t.Errorf("%s: %v", what, err)
				continue
			}
			for range 2 {
				got := before.Layout(colMajor, 0)
				tm, err := spmm.Multiply(ctx, p, 1.5, b, -0.5, got, spmm.Epilogue{Activation: spmm.ReLU})
				if err != nil {
					t.Errorf("%s: %v", what, err)
				} else if !got.Equal(want) {
					t.Errorf("%s: other bits than on one device (format %s, one device %s)", what, p.Info().Format, one.Info().Format)
				}
				if len(tm.Each) != len(g.Devices()) || tm.Host <= 0 {
					t.Errorf("%s: timing %+v", what, tm)
				}
			}
			tensorsSameAsOne(t, what, p, n, b, before, want)
			i, j := p.Info(), one.Info()
			if i.Rows != j.Rows || i.Cols != j.Cols || i.NNZ != j.NNZ || i.Format != j.Format || i.Split != split {
				t.Errorf("%s: %+v, one device has %+v", what, i, j)
			}
			if pb, pl := p.Reproduced(); o.P != spmm.AutoP {
				if ob, ol := one.Reproduced(); pb != ob || pl != ol {
					t.Errorf("%s: reproduced %d %t, one device %d %t", what, pb, pl, ob, ol)
				}
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// tensorsSameAsOne multiplies tensors that lie on the group's devices in all ways.
func tensorsSameAsOne[T formats.Value](t *testing.T, what string, p *spmm.Plan, n int, b *formats.Dense[T], before,
	want *formats.Dense[float32]) {
	t.Helper()
	last := spmm.On(len(p.Parts()) - 1)
	for _, at := range [][2]spmm.Placement{
		{spmm.On(0), last}, {last, spmm.On(0)}, {spmm.Replicated, spmm.Replicated}, {spmm.InColumns, spmm.InRows},
		{spmm.InRows, spmm.InColumns},
	} {
		what := fmt.Sprintf("%s, B %v and C %v", what, at[0], at[1])
		x, err := spmm.NewTensorAt[T](p, b.Rows, b.Cols, at[0])
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		defer x.Close()
		y, err := spmm.NewTensorAt[float32](p, want.Rows, want.Cols, at[1])
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		defer y.Close()
		multiplySame(t, what, p, x, y, b, before, want)
	}
	x, y, err := spmm.TensorsFor[T, float32](p, n)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	defer y.Close()
	if tm := multiplySame(t, what, p, x, y, b, before, want); tm.Moved != 0 {
		t.Errorf("%s: %d bytes moved, though all lay where it was needed", what, tm.Moved)
	}
}

func multiplySame[T formats.Value](t *testing.T, what string, p *spmm.Plan, x *spmm.Tensor[T], y *spmm.Tensor[float32],
	b *formats.Dense[T], before, want *formats.Dense[float32]) spmm.Timing {
	t.Helper()
	if err := errors.Join(x.Upload(ctx, b), y.Upload(ctx, before)); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	tm, err := p.Run(ctx, 1.5, x, -0.5, y, spmm.Epilogue{Activation: spmm.ReLU})
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	got := formats.NewDense[float32](want.Rows, want.Cols)
	if err := y.Download(ctx, got); err != nil || !got.Equal(want.Layout(false, 0)) {
		t.Errorf("%s: other bits than on one device, or %v", what, err)
	}
	return tm
}

// patterns returns a matrix that a format can hold.
func patterns(format string, exact bool) *formats.CSR[float32] {
	a := uneven[float32](205, 170)
	switch format {
	case "nm", "sparse24r":
		full := gen.Dense(205, 176, 1, gen.Values{})
		for i := range full.Data {
			if i%4 > 1 {
				full.Data[i] = 0
			}
		}
		a = full.ToCSR()
	case "dense":
		a = gen.Dense(205, 170, 1, gen.Values{}).ToCSR()
	}
	if exact {
		return whole(a)
	}
	return a
}

// All formats in fast mode, with any number of columns.
func TestSeveralFormats(t *testing.T) {
	dev, groups := openCPU(t), []*spmm.Device{openSeveral(t, "cpu,cpu"), openSeveral(t, "cpu,cpu,cpu")}
	for _, format := range append(spmm.Formats(), "auto") {
		t.Run(format, func(t *testing.T) {
			a := patterns(format, true)
			for _, n := range []int{1, 19, 200} {
				o := spmm.Options{Format: format}
				if usable(t, dev, a, o) {
					sameAsOne[float32](t, dev, groups, a, n, o, n == 19, true)
				}
				o.Precision = dtype.F16
				if usable(t, dev, a, o) {
					sameAsOne[half.F16](t, dev, groups[:1], a, n, o, false, true)
				}
			}
		})
	}
}

// Where every device has whole tiles of columns, sums whose bits depend on their order are those of one device.
func TestSeveralOrder(t *testing.T) {
	dev, groups := openCPU(t), []*spmm.Device{openSeveral(t, "cpu,cpu,cpu")}
	for _, format := range spmm.Formats() {
		if a, o := patterns(format, false), (spmm.Options{Format: format}); usable(t, dev, a, o) {
			t.Run(format, func(t *testing.T) { sameAsOne[float32](t, dev, groups, a, 384, o, false, false) })
		}
	}
}

// usable tells whether a device has a kernel for this.
func usable(t *testing.T, dev *spmm.Device, a formats.Encoded, o spmm.Options) bool {
	p, err := spmm.Prepare(ctx, dev, a, o)
	if errors.Is(err, spmm.ErrUnsupported) {
		t.Logf("%+v: %v", o, err)
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	return true
}

// Reproducible mode, transposed and right, quantised, and matrices that come packed.
func TestSeveralModes(t *testing.T) {
	dev, groups := openCPU(t), []*spmm.Device{openSeveral(t, "cpu,cpu,cpu")}
	a := uneven[float32](205, 170)
	for _, o := range []spmm.Options{
		{Mode: spmm.Reproducible},
		{Mode: spmm.Reproducible, P: 15, Format: "cvse"},
		{Mode: spmm.Reproducible, P: 47, Format: "tiledcsr"},
		{Mode: spmm.Reproducible, P: spmm.AutoP},
		{Mode: spmm.Reproducible, P: spmm.AutoP, Right: true},
		{Transpose: true},
		{Right: true},
		{Transpose: true, Right: true, Mode: spmm.Reproducible},
		{Transpose: true, Right: true, Format: "csr"},
	} {
		for _, n := range []int{2, 37} {
			t.Run(fmt.Sprintf("%+v %d", o, n), func(t *testing.T) {
				a, exact := a, o.Mode == spmm.Fast
				if exact {
					a = whole(a)
				}
				sameAsOne[float32](t, dev, groups, a, n, o, n == 37, exact)
			})
		}
	}
	for _, kind := range []dtype.Type{dtype.S8, dtype.E4M3} {
		o := spmm.Options{Quantise: kind, Format: "lanestream"}
		t.Run(kind.String(), func(t *testing.T) {
			if usable(t, dev, a, o) {
				sameAsOne[half.F16](t, dev, groups, whole(a), 40, o, false, true)
			}
		})
	}
	for _, format := range []string{"cvse", "hrpb", "csr"} {
		enc, err := spmm.Encode(ctx, dev, whole(a), spmm.Options{Format: format})
		if err != nil {
			t.Fatal(err)
		}
		t.Run("packed "+format, func(t *testing.T) {
			sameAsOne[float32](t, dev, groups, enc, 40, spmm.Options{}, false,
				true)
		})
	}
}

// Biases of rows and columns, wherever they lie, for data of the host and of the devices.
func TestSeveralBias(t *testing.T) {
	dev, g := openCPU(t), openSeveral(t, "cpu,cpu,cpu")
	a, n := uneven[float32](205, 170), 37
	for _, o := range []spmm.Options{{Format: "csr"}, {Mode: spmm.Reproducible}, {Right: true, Mode: spmm.Reproducible}} {
		rows, cols := 205, n
		b := gen.Dense(170, n, 1, gen.Values{})
		if o.Right {
			b, rows, cols = gen.Dense(n, 205, 1, gen.Values{}), n, 170
		}
		one := prepare(t, dev, a, o)
		defer one.Close()
		for _, size := range [][2]int{{rows, 1}, {1, cols}} {
			bias := gen.Dense(size[0], size[1], 2, gen.Values{})
			v := newTensor[float32](t, dev, size[0], size[1], false)
			defer v.Close()
			e := spmm.Epilogue{RowBias: v}
			if size[0] == 1 {
				e = spmm.Epilogue{ColBias: v}
			}
			want := formats.NewDense[float32](rows, cols)
			must(t, v.Upload(ctx, bias))
			must(t, second(spmm.Multiply(ctx, one, 1, b, 0, want, e)))
			for _, split := range splits {
				p, err := spmm.Prepare(ctx, g, a, splitBy(o, split))
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				for _, at := range []spmm.Placement{spmm.Replicated, spmm.On(1), spmm.InRows, spmm.InColumns} {
					v, err := spmm.NewTensorAt[float32](p, size[0], size[1], at)
					if err != nil {
						t.Fatal(err)
					}
					defer v.Close()
					must(t, v.Upload(ctx, bias))
					e := spmm.Epilogue{RowBias: v}
					if size[0] == 1 {
						e = spmm.Epilogue{ColBias: v}
					}
					got := formats.NewDense[float32](rows, cols)
					if _, err := spmm.Multiply(ctx, p, 1, b, 0, got, e); err != nil || o.Format == "" && !got.Equal(want) {
						t.Errorf("%+v by %v, bias of %v %v: %v, or other bits", o, split, size, at, err)
					} else if r, _ := close32(got, want); !r {
						t.Errorf("%+v by %v, bias of %v %v: another C", o, split, size, at)
					}
				}
			}
		}
	}
}

// close32 tells whether all elements are near each other.
func close32(x, y *formats.Dense[float32]) (bool, float32) {
	for i := range x.Data {
		if d := x.Data[i] - y.Data[i]; !(d < 1e-2 && d > -1e-2) {
			return false, d
		}
	}
	return true, 0
}

// More devices than rows or columns, and matrices without any.
func TestSeveralSmall(t *testing.T) {
	dev, groups := openCPU(t), []*spmm.Device{openSeveral(t, "cpu,cpu,cpu,cpu")}
	for _, s := range [][3]int{{1, 1, 1}, {2, 3, 2}, {0, 5, 3}, {5, 0, 3}, {5, 3, 0}, {0, 0, 0}, {33, 2, 1}} {
		for _, mode := range []spmm.Mode{spmm.Fast, spmm.Reproducible} {
			t.Run(fmt.Sprint(s, mode), func(t *testing.T) {
				sameAsOne[float32](t, dev, groups, uneven[float32](s[0], s[1]), s[2], spmm.Options{Mode: mode, Format: "csr"},
					false, false)
			})
		}
	}
}

// auto goes by what fits, and says so.
func TestSeveralAuto(t *testing.T) {
	g := openSeveral(t, "cpu,cpu")
	a := gen.Dense(400, 400, 1, gen.Values{}).ToCSR()
	for _, tt := range []struct {
		memory int64
		split  spmm.Split
		why    string
	}{{0, spmm.ByColumns, "predicted"}, {1 << 20, spmm.ByRows, "of 1 MiB on cpu:0"}} {
		p, err := spmm.Prepare(ctx, g, a, spmm.Options{Format: "csr", Cols: 512, Memory: tt.memory})
		if err != nil {
			t.Fatal(err)
		}
		if i := p.Info(); i.Split != tt.split || !strings.Contains(i.WhySplit, tt.why) {
			t.Errorf("%d bytes: by %v because %s", tt.memory, i.Split, i.WhySplit)
		}
		p.Close()
	}
}

// What fits one device fits each of several that may use as much.
func TestSeveralMemory(t *testing.T) {
	a := gen.Dense(400, 400, 1, gen.Values{}).ToCSR()
	for _, list := range []string{"cpu", "cpu,cpu", "cpu,cpu,cpu,cpu"} {
		p, err := spmm.Prepare(ctx, openSeveral(t, list), a, spmm.Options{Format: "csr", Cols: 512, Split: spmm.ByColumns,
			Memory: 5 << 20})
		if err != nil {
			t.Errorf("%s: %v", list, err)
			continue
		}
		p.Close()
	}
}

// Where B has to be moved first, auto counts that: by rows every device receives all of it.
func TestSeveralFrom(t *testing.T) {
	t.Setenv("SPMM_CACHE", t.TempDir())
	g := openSeveral(t, "cpu,cpu,cpu,cpu")
	a := uneven[float32](2000, 3000)
	for range 2 { // measured, then remembered
		p, err := spmm.Prepare(ctx, g, a, spmm.Options{Format: "csr", Cols: 64, From: spmm.On(1)})
		if err != nil {
			t.Fatal(err)
		}
		// By columns device 1 sends three quarters of B, by rows three times all of it. (Which is taken depends on the
		// machine's rates.)
		why := p.Info().WhySplit
		m := regexp.MustCompile(`of these (\S+) (\S+) and (\S+) (\S+) are for moving B, on device 1, at `).FindStringSubmatch(why)
		if m == nil {
			t.Fatalf("because %s", why)
		}
		columns, err := time.ParseDuration(m[1] + m[2])
		rows, err2 := time.ParseDuration(m[3] + m[4])
		if ratio := float64(rows) / float64(columns); err != nil || err2 != nil || ratio < 3.9 || ratio > 4.1 {
			t.Errorf("because %s: want 4 times as long by rows, %v, %v", why, err, err2)
		}
		p.Close()
	}
	if _, err := spmm.Prepare(ctx, g, a, spmm.Options{From: spmm.On(4)}); err == nil {
		t.Error("there is no device 4")
	}
}

// Shares of work are even by rows: no device has much more than the others.
func TestSeveralBalance(t *testing.T) {
	g := openSeveral(t, "cpu,cpu,cpu,cpu")
	a := &formats.CSR[float32]{Rows: 4000, Cols: 1000, RowPtr: []int64{0}}
	for i := range a.Rows { // later rows are longer
		for j := range i / 20 {
			a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, 1)
		}
		a.RowPtr = append(a.RowPtr, a.NNZ())
	}
	p, err := spmm.Prepare(ctx, g, a, spmm.Options{Format: "csr", Split: spmm.ByRows})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	rows := 0
	for i, part := range p.Parts() {
		rows += part.Rows
		if mean := float64(a.NNZ()) / 4; float64(part.NNZ) < 0.85*mean || float64(part.NNZ) > 1.15*mean {
			t.Errorf("device %d has %d of %d entries", i, part.NNZ, a.NNZ())
		}
	}
	if rows != a.Rows {
		t.Errorf("%d of %d rows", rows, a.Rows)
	}
}

func TestSeveralErrors(t *testing.T) {
	for list, want := range map[string]string{
		"": `unknown backend ""`, "cpu,": "a name is missing", "cpu:0,1": "cpu has no device 1", "1": "unknown",
		"nothing:all": "nothing", "cpu:x": "want cpu:INDEX", "auto:all": "auto",
	} {
		if g, err := spmm.Open(ctx, list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): %v, %v, want %q", list, g, err, want)
		}
	}
	dev := openCPU(t)
	if _, err := spmm.Join(dev, dev); err == nil {
		t.Error("a device is in a group twice")
	}
	if _, err := spmm.Join(); err == nil {
		t.Error("a group without devices")
	}
	g := openSeveral(t, "cpu:all,cpu:0,0")
	if n := len(g.Devices()); n != 3 {
		t.Fatalf("%d devices", n)
	}
	a := uneven[float32](40, 30)
	for _, o := range []spmm.Options{
		{Split: 9}, {Memory: -1}, {Tune: true},
	} {
		if _, err := spmm.Prepare(ctx, g, a, o); err == nil {
			t.Errorf("%+v is not refused", o)
		}
	}
	for _, split := range splits {
		p, err := spmm.Prepare(ctx, g, a, spmm.Options{Split: split})
		if err != nil {
			t.Fatal(err)
		}
		b, c := formats.NewDense[float32](30, 20), formats.NewDense[float32](40, 20)
		if _, err := spmm.Multiply(ctx, p, 1, c, 0, b); err == nil || !strings.Contains(err.Error(), "A is 40×30") {
			t.Errorf("B and C exchanged: %v", err)
		}
		bias, err := spmm.NewTensorAt[float32](p, 41, 1, spmm.On(1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := spmm.Multiply(ctx, p, 1, b, 0, c, spmm.Epilogue{RowBias: bias}); err == nil ||
			!strings.Contains(err.Error(), "the row bias: shapes do not fit") {
			t.Errorf("a bias: %v", err)
		}
		bias.Close()
		twoBiases(t, p, b, c)
		done, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := spmm.Multiply(done, p, 1, b, 0, c); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		if _, err := spmm.Multiply(ctx, p, 1, b, 0, c); err != nil {
			t.Errorf("after that: %v", err)
		}
		p.Close()
		if _, err := spmm.Multiply(ctx, p, 1, b, 0, c); !errors.Is(err, backend.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Products of one plan and of several plans at once neither wait for each other for ever nor disturb each other.
// twoBiases gives a product of a 40×30 matrix by 20 columns both biases, which are not on the first device.
func twoBiases(t *testing.T, p *spmm.Plan, b, c *formats.Dense[float32]) {
	t.Helper()
	var e spmm.Epilogue
	for _, x := range []struct {
		rows, cols int
		to         *spmm.Operand
	}{{40, 1, &e.RowBias}, {1, 20, &e.ColBias}} {
		v, err := spmm.NewTensorAt[float32](p, x.rows, x.cols, spmm.On(1))
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		*x.to = v
	}
	if _, err := spmm.Multiply(ctx, p, 1, b, 0, c, e); err == nil ||
		!strings.Contains(err.Error(), "one of them is possible") {
		t.Errorf("two biases: %v", err)
	}
	if _, err := spmm.NewTensorAt[float32](p, 1, 1, spmm.On(-2)); err == nil ||
		!strings.Contains(err.Error(), "before the first") {
		t.Errorf("on device -2: %v", err)
	}
}

func TestSeveralConcurrent(t *testing.T) {
	g := openSeveral(t, "cpu,cpu")
	a, b := whole(uneven[float32](300, 200)), gen.Dense(200, 40, 1, gen.Values{Kind: gen.Int, Lo: -8, Hi: 8})
	want := expected(1, a, b, 0, formats.NewDense[float32](300, 40))
	var run errgroup.Group
	for _, split := range splits {
		p, err := spmm.Prepare(ctx, g, a, spmm.Options{Split: split})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for range 3 {
			run.Go(func() error {
				for range 10 {
					c := formats.NewDense[float32](300, 40)
					if _, err := spmm.Multiply(ctx, p, 1, b, 0, c); err != nil || !c.Equal(want) {
						return fmt.Errorf("by %v: another C, or %w", split, err)
					}
				}
				return nil
			})
		}
	}
	if err := run.Wait(); err != nil {
		t.Error(err)
	}
}

// A device that is gone makes an error that names it, on the others too, and nothing hangs.
func TestSeveralLosesDevice(t *testing.T) {
	g := openSeveral(t, "cpu,cpu,cpu")
	a := uneven[float32](300, 200)
	for _, split := range splits {
		p, err := spmm.Prepare(ctx, g, a, spmm.Options{Split: split})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if split == spmm.ByRows {
			g.Devices()[1].Close()
		}
		b, c := gen.Dense(200, 40, 1, gen.Values{}), formats.NewDense[float32](300, 40)
		_, err = spmm.Multiply(ctx, p, 1, b, 0, c)
		if closed := split == spmm.ByRows; closed != errors.Is(err, spmm.ErrClosed) || closed &&
			!strings.HasPrefix(err.Error(), "cpu:0: ") {
			t.Errorf("by %v: %v", split, err)
		}
	}
}
