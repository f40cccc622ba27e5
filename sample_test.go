// Sampled products of every format, type and side, against sums in float64.

package spmm_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

// samples is a problem of Plan.Sample on a device.
type samples struct {
	a       *formats.CSR[float32]
	dev     *spmm.Device
	x, y    *formats.Dense[float32] // of small integers, or any numbers of 8 bits
	scale   []float32
	colsets bool // x, y are column-major tensors, s and scale columns
}

func newSamples(dev *spmm.Device, rows, cols, k int) *samples {
	r := rand.New(rand.NewPCG(5, uint64(k)))
	a := &formats.CSR[float32]{Rows: rows, Cols: cols, RowPtr: []int64{0}}
	for i := range rows {
		for j := range cols {
			if r.IntN(1+i%9) == 0 && i%5 != 3 {
				a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, float32(r.IntN(5)+1))
			}
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.ColIdx)))
	}
	q := &samples{a: a, dev: dev, scale: make([]float32, len(a.Val))}
	number := func() float32 { return float32(r.IntN(255)-127) / 64 }
	dense := func(rows int) *formats.Dense[float32] {
		d := formats.NewDense[float32](rows, k)
		for i := range d.Data {
			d.Data[i] = number()
		}
		return d
	}
	q.x, q.y = dense(rows), dense(cols)
	for i := range q.scale {
		q.scale[i] = number()
	}
	return q
}

// tensorOf uploads a matrix.
func (q *samples) tensorOf(t *testing.T, d *formats.Dense[float32]) *spmm.Tensor[float32] {
	t.Helper()
	x, err := spmm.NewTensor[float32](q.dev, d.Rows, d.Cols, q.colsets)
	if err == nil {
		err = x.Upload(t.Context(), d)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// vector returns the shape of s and scale.
func (q *samples) vector() (rows, cols int) {
	if q.colsets {
		return len(q.scale), 1
	}
	return 1, len(q.scale)
}

// run samples with a plan, and returns the results.
func (q *samples) run(t *testing.T, o spmm.Options, scaled bool) []float32 {
	p, err := spmm.Prepare(t.Context(), q.dev, q.a, o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	x, y := q.tensorOf(t, q.x), q.tensorOf(t, q.y)
	rows, cols := q.vector()
	s, out := q.tensorOf(t, formats.NewDense[float32](rows, cols)), formats.NewDense[float32](rows, cols)
	var scale spmm.Operand
	if scaled {
		d := formats.NewDense[float32](rows, cols)
		for i, v := range q.scale {
			d.Set(i/cols, i%cols, v)
		}
		scale = q.tensorOf(t, d)
	}
	if o.Transpose {
		x, y = y, x
	}
	if _, err := p.Sample(t.Context(), x, y, s, spmm.SampleEpilogue{Scale: scale}); err != nil {
		t.Fatal(err)
	}
	started, err := p.StartSample(t.Context(), x, y, s, spmm.SampleEpilogue{Scale: scale})
	if err == nil {
		_, err = started.Wait(t.Context())
	}
	if err == nil {
		err = s.Download(t.Context(), out)
	}
	if err != nil {
		t.Fatal(err)
	}
	results := make([]float32, len(q.scale))
	for e := range results {
		results[e] = out.At(e/cols, e%cols)
	}
	return results
}

// each calls f for the row and the column of each entry.
func (q *samples) each(f func(e, i, j int)) {
	for i := range q.a.Rows {
		for e := q.a.RowPtr[i]; e < q.a.RowPtr[i+1]; e++ {
			f(int(e), i, int(q.a.ColIdx[e]))
		}
	}
}

// product returns X as a matrix that stores every element, and Yᵀ, for the oracle.
func (q *samples) product() (*formats.CSR[float32], *formats.Dense[float32]) {
	yt := formats.NewDense[float32](q.y.Cols, q.y.Rows)
	for i := range yt.Rows {
		for j := range yt.Cols {
			yt.Set(i, j, q.y.At(j, i))
		}
	}
	x := &formats.CSR[float32]{Rows: q.x.Rows, Cols: q.x.Cols, RowPtr: []int64{0}}
	for i := range x.Rows {
		for j := range x.Cols {
			x.ColIdx, x.Val = append(x.ColIdx, int32(j)), append(x.Val, q.x.At(i, j))
		}
		x.RowPtr = append(x.RowPtr, int64(len(x.Val)))
	}
	return x, yt
}

// check holds results against the oracle's exact sums and the bound of docs/bound.md.
func (q *samples) check(t *testing.T, got []float32, scaled bool) {
	x, yt := q.product()
	q.each(func(e, i, j int) {
		d, size := oracle.At(x, yt, i, j), 0.0
		for k := range q.x.Cols {
			size += math.Abs(float64(q.x.At(i, k)) * float64(q.y.At(j, k)))
		}
		want, bound := d.Value(), oracle.Bound(q.x.Cols, 8, size, dtype.F32)
		if scaled {
			v := float64(q.scale[e])
			want, bound = want*v, bound*math.Abs(v)+0x1p-23*math.Abs(want*v)
		}
		if !(math.Abs(float64(got[e])-want) <= bound) {
			t.Errorf("entry %d, (%d, %d), is %v, want %v within %v", e, i, j, got[e], want, bound)
		}
	})
}

// sides are the ways in which a plan may hold A.
var sides = []spmm.Options{{}, {Transpose: true}, {Right: true}, {Transpose: true, Right: true}}

func TestSample(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		for _, k := range []int{1, 33, 128} {
			q := newSamples(dev, 70, 45, k)
			for _, format := range append([]string{""}, spmm.Formats()...) {
				for _, precision := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32, dtype.TF32, dtype.F64} {
					for _, o := range sides {
						if o.Format, o.Precision = format, precision; !prepares(t, dev, q.a, o) {
							continue
						}
						for _, q.colsets = range []bool{false, true} {
							t.Run(fmt.Sprintf("K=%d/%s/%v/transpose=%v/right=%v/colsets=%v", k, format, precision, o.Transpose, o.Right,
								q.colsets), func(t *testing.T) { q.check(t, q.run(t, o, q.colsets), q.colsets) })
						}
					}
				}
			}
		}
	})
}

// prepares reports whether the device has a kernel for the format and precision of o. It has one for csr and for
// automatic choice in every precision, but perhaps f64.
func prepares(t *testing.T, dev *spmm.Device, a *formats.CSR[float32], o spmm.Options) bool {
	t.Helper()
	p, err := spmm.Prepare(t.Context(), dev, a, o)
	if errors.Is(err, backend.ErrUnsupported) && (o.Format != "" && o.Format != "csr" || o.Precision == dtype.F64) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	return true
}

// In reproducible mode each entry is that of the reproducible product X·Yᵀ, to the last bit.
func TestSampleReproducible(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		q := newSamples(dev, 30, 25, 37)
		x, yt := q.product()
		auto, _ := oracle.Precision(x, yt)
		for _, p := range []int{15, 23, 31, 47, spmm.AutoP} {
			bits := p
			if p == spmm.AutoP {
				bits = auto
			}
			c, err := oracle.Reproducible(t.Context(), oracle.Problem{A: x, B: yt, Alpha: 1}, bits)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range sides {
				for _, q.colsets = range []bool{false, true} {
					o.Mode, o.P, o.Precision = spmm.Reproducible, p, dtype.F32
					got := q.run(t, o, false)
					q.each(func(e, i, j int) {
						if math.Float32bits(got[e]) != math.Float32bits(c.At(i, j)) {
							t.Errorf("p=%d, %v%v: entry %d is %v, want %v", p, o.Transpose, o.Right, e, got[e], c.At(i, j))
						}
					})
				}
			}
		}
	})
}

func TestSampleSoftmax(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		q := newSamples(dev, 40, 300, 5)
		x, yt := q.product()
		for _, right := range []bool{false, true} {
			for _, precision := range []dtype.Type{dtype.F32, dtype.F64} {
				o := spmm.Options{Right: right, Precision: precision}
				p, err := spmm.Prepare(t.Context(), dev, q.a, o)
				if errors.Is(err, backend.ErrUnsupported) && precision == dtype.F64 {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				s, out := q.tensorOf(t, formats.NewDense[float32](1, len(q.scale))), formats.NewDense[float32](1, len(q.scale))
				if _, err = p.Sample(t.Context(), q.tensorOf(t, q.x), q.tensorOf(t, q.y), s,
					spmm.SampleEpilogue{Softmax: true}); err == nil {
					err = s.Download(t.Context(), out)
				}
				p.Close()
				if err != nil {
					t.Fatal(err)
				}
				most, sums := make([]float64, q.a.Rows), make([]float64, q.a.Rows)
				for i := range most {
					most[i] = math.Inf(-1)
				}
				score := func(i, j int) float64 { d := oracle.At(x, yt, i, j); return d.Value() }
				q.each(func(_, i, j int) { most[i] = max(most[i], score(i, j)) })
				q.each(func(_, i, j int) { sums[i] += math.Exp(score(i, j) - most[i]) })
				q.each(func(e, i, j int) {
					want := math.Exp(score(i, j)-most[i]) / sums[i]
					if math.Abs(float64(out.At(0, e))-want) > 1e-4*want+0x1p-120 { // scores reach 20
						t.Errorf("%v, %v: entry %d is %v, want %v", right, precision, e, out.At(0, e), want)
					}
				})
			}
		}
	})
}

// AutoP finds the precision that X and Y need for each product anew.
func TestSampleAutoP(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		q := newSamples(dev, 20, 10, 8)
		p, err := spmm.Prepare(t.Context(), dev, q.a, spmm.Options{Mode: spmm.Reproducible, P: spmm.AutoP})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		s := q.tensorOf(t, formats.NewDense[float32](1, len(q.scale)))
		for _, c := range []struct {
			in       float32 // X besides small numbers
			bits     int
			lossless bool
		}{{0x1p-20, 23, true}, {1, 15, true}, {0x1p-29, 31, true}, {0x1p-40, 47, true}, {0x1p-100, 47, false}} {
			q.x.Set(1, 1, c.in)
			if _, err := p.Sample(t.Context(), q.tensorOf(t, q.x), q.tensorOf(t, q.y), s); err != nil {
				t.Fatal(err)
			}
			if bits, lossless := p.Reproduced(); bits != c.bits || lossless != c.lossless {
				t.Errorf("with %v: p = %d, lossless %v; want %d, %v", c.in, bits, lossless, c.bits, c.lossless)
			}
		}
		seq := dev.NewSequence()
		defer seq.Close()
		if err := seq.AddSample(p, q.tensorOf(t, q.x), q.tensorOf(t, q.y), s); err == nil {
			t.Error("a sequence takes a product whose precision is not known")
		}
	})
}

// A training step is one sequence: a product, the gradient with respect to A's values, and these as new values.
func TestSampleInSequence(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		q := newSamples(dev, 30, 20, 16)
		p, err := spmm.Prepare(t.Context(), dev, q.a, spmm.Options{Precision: dtype.F32})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		b, c := q.tensorOf(t, q.y), q.tensorOf(t, formats.NewDense[float32](30, 16))
		s := q.tensorOf(t, formats.NewDense[float32](1, len(q.scale)))
		wrong, err := spmm.NewTensor[float32](dev, 20, 16, true)
		if err != nil {
			t.Fatal(err)
		}
		defer wrong.Close()
		seq := dev.NewSequence()
		defer seq.Close()
		if err := seq.AddSample(p, c, wrong, s); err == nil {
			t.Error("a column-major y is not refused")
		}
		err = errors.Join(seq.Add(p, 1, b, 0, c), seq.AddSample(p, c, b, s), seq.AddValues(p, s))
		if err != nil {
			t.Fatal(err)
		}
		want := formats.Convert[float32](q.a)
		for range 2 {
			if _, err := seq.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			product := formats.NewDense[float32](30, 16)
			q.each(func(e, i, j int) {
				for k := range 16 {
					product.Set(i, k, product.At(i, k)+want.Val[e]*q.y.At(j, k))
				}
			})
			q.each(func(e, i, j int) {
				want.Val[e] = 0
				for k := range 16 {
					want.Val[e] += product.At(i, k) * q.y.At(j, k)
				}
			})
		}
		out := formats.NewDense[float32](1, len(q.scale))
		if err := s.Download(t.Context(), out); err != nil {
			t.Fatal(err)
		}
		most := 0.0
		for _, v := range want.Val {
			most = max(most, math.Abs(float64(v)))
		}
		for e, v := range want.Val {
			if !(math.Abs(float64(out.At(0, e)-v)) <= 1e-4*most) {
				t.Errorf("entry %d is %v after two steps, want %v", e, out.At(0, e), v)
			}
		}
	})
}

func TestSampleRefuses(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		q := newSamples(dev, 20, 10, 8)
		p, err := spmm.Prepare(t.Context(), dev, q.a, spmm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		x, y := q.tensorOf(t, q.x), q.tensorOf(t, q.y)
		s := q.tensorOf(t, formats.NewDense[float32](1, len(q.scale)))
		short := q.tensorOf(t, formats.NewDense[float32](1, len(q.scale)-1))
		for name, o := range map[string][4]spmm.Operand{
			"no X": {nil, y, nil, s}, "no S": {x, y, nil, nil}, "X for Y": {y, x, nil, s}, "a short S": {x, y, nil, short},
			"a short scale": {x, y, short, s}, "S as scale": {x, y, s, s},
		} {
			if _, err := p.Sample(t.Context(), o[0], o[1], o[3], spmm.SampleEpilogue{Scale: o[2]}); err == nil {
				t.Errorf("%s is not refused", name)
			}
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Sample(t.Context(), x, y, s); !errors.Is(err, backend.ErrClosed) {
			t.Errorf("with a closed plan: %v", err)
		}
		for name, o := range map[string]spmm.Options{
			"in reproducible mode": {Mode: spmm.Reproducible}, "of a transposed matrix": {Transpose: true},
		} {
			p, err := spmm.Prepare(t.Context(), dev, q.a, o)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			a, b := x, y
			if o.Transpose {
				a, b = y, x
			}
			_, err = p.Sample(t.Context(), a, b, s, spmm.SampleEpilogue{Softmax: true})
			if !errors.Is(err, backend.ErrUnsupported) {
				t.Errorf("softmax %s: %v", name, err)
			}
		}
	})
}
