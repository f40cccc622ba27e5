// Tensors of a group: what does not lie where a product needs it is moved, while another part is multiplied.

package spmm_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
)

// B comes in chunks of 128 columns, of which one is multiplied while the next one comes: the bits are those of a B in its place, whatever
// lies where.
func TestSeveralOverlap(t *testing.T) {
	const n = 512
	dev, g := openCPU(t), openSeveral(t, "cpu,cpu")
	a := uneven[float32](205, 170)
	b, c0, bias := gen.Dense(170, n, 1, gen.Values{}), gen.Dense(205, n, 2, gen.Values{}), gen.Dense(205, 1, 3, gen.Values{})
	for _, o := range []spmm.Options{{Format: "csr"}, {Mode: spmm.Reproducible}, {Mode: spmm.Reproducible, P: spmm.AutoP}} {
		one := prepare(t, dev, a, o)
		defer one.Close()
		for _, split := range splits {
			p, err := spmm.Prepare(ctx, g, a, splitBy(o, split))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			rows, err := spmm.NewTensorAt[float32](p, 205, 1, spmm.On(1))
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			must(t, rows.Upload(ctx, bias))
			for _, beta := range []float64{0, 0.5} {
				want := c0.Layout(false, 0)
				x := newTensor[float32](t, dev, 205, 1, false)
				defer x.Close()
				must(t, x.Upload(ctx, bias))
				must(t, second(spmm.Multiply(ctx, one, 1, b, beta, want, spmm.Epilogue{RowBias: x, Activation: spmm.ReLU})))
				for _, from := range []spmm.Placement{spmm.On(0), spmm.On(1), spmm.InRows, spmm.InColumns, spmm.Replicated} {
					got, moved := multipliedFrom(t, p, from, b, beta, c0, spmm.Epilogue{RowBias: rows, Activation: spmm.ReLU})
					if !got.Equal(want) {
						t.Errorf("%+v by %v, beta %g, B %v: other bits than on one device", o, split, beta, from)
					}
					most := int64(170 * n * 4)
					if split == spmm.ByColumns {
						most /= 2
					}
					if fixed := int64(205 * 4); from != spmm.Replicated && moved > most+2*fixed {
						t.Errorf("%+v by %v, B %v: %d bytes were moved, at most %d are needed", o, split, from, moved, most)
					}
				}
			}
		}
	}
}

// A B or C that was closed is an error, wherever B lies; and a B without rows leaves what beta and the epilogue make of C on all devices.
func TestSeveralOverlapEdges(t *testing.T) {
	const n = 512
	g := openSeveral(t, "cpu,cpu")
	for _, cols := range []int{170, 0} {
		a := &formats.CSR[float32]{Rows: 205, Cols: cols, RowPtr: make([]int64, 206)}
		for _, split := range splits {
			p, err := spmm.Prepare(ctx, g, a, spmm.Options{Format: "csr", Split: split})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			for _, from := range []spmm.Placement{spmm.On(0), spmm.On(1), spmm.InRows, spmm.InColumns, spmm.Replicated} {
				got, _ := multipliedFrom(t, p, from, formats.NewDense[float32](cols, n), 0.5, ones(205, n), spmm.Epilogue{})
				if i := slices.IndexFunc(got.Data, func(x float32) bool { return x != 0.5 }); i >= 0 {
					t.Errorf("A of 205×%d by %v, B %v: element %d is %g, want 0.5", cols, split, from, i, got.Data[i])
				}
			}
			for _, closes := range []int{0, 1} {
				x, err := spmm.NewTensorAt[float32](p, cols, n, spmm.On(1))
				if err != nil {
					t.Fatal(err)
				}
				defer x.Close()
				_, y, err := spmm.TensorsFor[float32, float32](p, n)
				if err != nil {
					t.Fatal(err)
				}
				defer y.Close()
				must(t, []io.Closer{x, y}[closes].Close())
				if _, err := p.Run(ctx, 1, x, 0, y); !errors.Is(err, backend.ErrClosed) {
					t.Errorf("A of 205×%d by %v, operand %d closed: %v", cols, split, closes, err)
				}
			}
		}
	}
}

func ones(rows, cols int) *formats.Dense[float32] {
	d := formats.NewDense[float32](rows, cols)
	for i := range d.Data {
		d.Data[i] = 1
	}
	return d
}

// multipliedFrom multiplies a B that lies somewhere, twice, and returns C and the bytes that one product moved.
func multipliedFrom(t *testing.T, p *spmm.Plan, from spmm.Placement, b *formats.Dense[float32], beta float64, c0 *formats.Dense[float32], e spmm.Epilogue) (*formats.Dense[float32], int64) {
	t.Helper()
	x, err := spmm.NewTensorAt[float32](p, b.Rows, b.Cols, from)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	_, y, err := spmm.TensorsFor[float32, float32](p, b.Cols)
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	must(t, x.Upload(ctx, b))
	var timing spmm.Timing
	for range 2 {
		must(t, y.Upload(ctx, c0))
		if timing, err = p.Run(ctx, 1, x, beta, y, e); err != nil {
			t.Fatal(err)
		}
	}
	got := formats.NewDense[float32](c0.Rows, c0.Cols)
	must(t, y.Download(ctx, got))
	return got, timing.Moved
}

// Copies between all placements keep every element, of 2 bytes and of 4, and odd sizes.
func TestSeveralCopy(t *testing.T) {
	g := openSeveral(t, "cpu,cpu,cpu")
	p, err := spmm.Prepare(ctx, g, uneven[float32](67, 45), spmm.Options{Split: spmm.ByRows})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, size := range [][2]int{{67, 45}, {45, 67}, {1, 1}, {3, 19}, {0, 4}, {200, 3}} {
		copied(t, p, gen.Dense(size[0], size[1], 1, gen.Values{}))
		copied(t, p, formats.ConvertDense[half.F16](gen.Dense(size[0], size[1], 1, gen.Values{})))
	}
}

func copied[T formats.Value](t *testing.T, p *spmm.Plan, d *formats.Dense[T]) {
	t.Helper()
	ways := []spmm.Placement{spmm.Replicated, spmm.InRows, spmm.InColumns, spmm.On(0), spmm.On(2)}
	for _, from := range ways {
		for _, to := range ways {
			x, err := spmm.NewTensorAt[T](p, d.Rows, d.Cols, from)
			if err != nil {
				t.Fatal(err)
			}
			y, err := spmm.NewTensorAt[T](p, d.Rows, d.Cols, to)
			if err != nil {
				t.Fatal(err)
			}
			must(t, x.Upload(ctx, d))
			got := formats.NewDense[T](d.Rows, d.Cols)
			if moved, err := y.Copy(ctx, x); err != nil || from == to && moved != 0 {
				t.Errorf("%d×%d %v to %v: %d bytes moved, %v", d.Rows, d.Cols, from, to, moved, err)
			}
			if err := y.Download(ctx, got); err != nil || !got.Equal(d) {
				t.Errorf("%d×%d %v to %v: other elements, or %v", d.Rows, d.Cols, from, to, err)
			}
			x.Close()
			y.Close()
			if _, err := y.Copy(ctx, x); d.Rows > 0 && !errors.Is(err, spmm.ErrClosed) {
				t.Errorf("closed: %v", err)
			}
		}
	}
}

// C may be B: no device writes before all have read.
func TestSeveralInPlace(t *testing.T) {
	g := openSeveral(t, "cpu,cpu,cpu")
	a := uneven[float32](300, 300)
	for _, split := range splits {
		p, err := spmm.Prepare(ctx, g, a, spmm.Options{Format: "csr", Split: split})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		b := gen.Dense(300, 70, 1, gen.Values{})
		want := formats.NewDense[float32](300, 70)
		must(t, second(spmm.Multiply(ctx, p, 1, b, 0, want)))
		for range 5 {
			x := b.Layout(false, 0)
			if _, err := spmm.Multiply(ctx, p, 1, x, 0, x); err != nil || !x.Equal(want) {
				t.Fatalf("by %v: in place C is another, or %v", split, err)
			}
		}
	}
}

// A sequence on a group: steps feed each other by columns; what would have to move is refused, and leaves the sequence as it was.
func TestSeveralSequence(t *testing.T) {
	const n = 384 // tiles of 128 columns for each, which are summed as on one
	dev, g := openCPU(t), openSeveral(t, "cpu,cpu,cpu")
	a := uneven[float32](170, 170)
	b, bias := gen.Dense(170, n, 1, gen.Values{}), gen.Dense(170, 1, 2, gen.Values{})
	for _, o := range []spmm.Options{{Format: "csr"}, {Mode: spmm.Reproducible}} {
		one := prepare(t, dev, a, o)
		defer one.Close()
		x := newTensor[float32](t, dev, 170, 1, false)
		defer x.Close()
		must(t, x.Upload(ctx, bias))
		once, twice := formats.NewDense[float32](170, n), formats.NewDense[float32](170, n)
		must(t, second(spmm.Multiply(ctx, one, 0.01, b, 0, once, spmm.Epilogue{RowBias: x})))
		must(t, second(spmm.Multiply(ctx, one, 0.01, once, 0, twice)))
		for _, split := range splits {
			p, err := spmm.Prepare(ctx, g, a, splitBy(o, split))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			u, v, err := spmm.TensorsFor[float32, float32](p, n)
			if err != nil {
				t.Fatal(err)
			}
			_, w, err := spmm.TensorsFor[float32, float32](p, n)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := spmm.NewTensorAt[float32](p, 170, 1, map[spmm.Split]spmm.Placement{spmm.ByColumns: spmm.Replicated, spmm.ByRows: spmm.InRows}[split])
			if err != nil {
				t.Fatal(err)
			}
			must(t, errors.Join(u.Upload(ctx, b), rows.Upload(ctx, bias)))
			s := g.NewSequence()
			if err := s.Add(p, 0.01, u, 0, v, spmm.Epilogue{RowBias: rows}); err != nil {
				t.Fatalf("%+v by %v: %v", o, split, err)
			}
			want, out, err := once, v, s.Add(p, 0.01, v, 0, w)
			if split == spmm.ByColumns {
				want, out = twice, w
			}
			if (err == nil) != (split == spmm.ByColumns) {
				t.Errorf("%+v by %v: C of one step as B of the next: %v", o, split, err)
			}
			elsewhere, err := spmm.NewTensorAt[float32](p, 170, n, spmm.On(1))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Add(p, 1, elsewhere, 0, v); !errors.Is(err, spmm.ErrUnsupported) || !strings.Contains(err.Error(), "on device 1") {
				t.Errorf("by %v, B on one device: %v", split, err)
			}
			for range 2 {
				if _, err := s.Run(ctx); err != nil {
					t.Fatalf("%+v by %v: %v", o, split, err)
				}
			}
			got := formats.NewDense[float32](170, n)
			if err := out.Download(ctx, got); err != nil || !got.Equal(want) {
				t.Errorf("%+v by %v: another C, or %v", o, split, err)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if _, err := s.Run(ctx); !errors.Is(err, backend.ErrClosed) {
				t.Errorf("with a closed plan: %v", err)
			}
			for _, x := range []interface{ Close() error }{s, s, u, v, w, rows, elsewhere} {
				if err := x.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}
