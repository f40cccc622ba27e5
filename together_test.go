// One Device for one device and for several: the same calls, and what either alone can do.

package spmm_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
)

// together are the devices that tests of all kinds of Device run on: one by itself, and lists of one and of several.
var together = []string{"cpu", "cpu:all", "cpu,cpu", "cpu,cpu,cpu"}

// Every call that a program makes on one device works on several, with the same C.
func TestTogether(t *testing.T) {
	const m, k, n = 205, 170, 256
	a, b := whole(uneven[float32](m, k)), gen.Dense(k, n, 1, gen.Values{Kind: gen.Int, Lo: -8, Hi: 8})
	bias := gen.Dense(1, n, 2, gen.Values{Kind: gen.Int, Lo: -8, Hi: 8})
	want := expected(1, a, b, 0, formats.NewDense[float32](m, n))
	for _, list := range together {
		for _, o := range []spmm.Options{
			{Format: "csr"}, {Format: "csr", Split: spmm.ByColumns}, {Format: "csr", Split: spmm.ByRows}, {Format: "csr", Memory: 1 << 30, Cols: n},
			{Mode: spmm.Reproducible}, {Mode: spmm.Reproducible, P: spmm.AutoP},
		} {
			t.Run(list, func(t *testing.T) {
				dev := openSeveral(t, list)
				p := prepare(t, dev, a, o)
				defer p.Close()
				x, y, err := spmm.TensorsFor[float32, float32](p, n)
				must(t, err)
				defer x.Close()
				defer y.Close()
				must(t, x.Upload(ctx, b))
				same := func(what string, err error) {
					t.Helper()
					got := formats.NewDense[float32](m, n)
					if err := errors.Join(err, y.Download(ctx, got)); err != nil || !got.Equal(want) {
						t.Errorf("%+v, %s: another C, or %v", o, what, err)
					}
					must(t, y.Upload(ctx, formats.NewDense[float32](m, n)))
				}
				same("Run", second(p.Run(ctx, 1, x, 0, y)))
				pending, err := p.Start(ctx, 1, x, 0, y)
				must(t, err)
				first, err := pending.Wait(ctx)
				same("Start", err)
				if again, err := pending.Wait(ctx); err != nil || again.Host != first.Host || len(again.Each) != len(first.Each) {
					t.Errorf("waited twice: %+v and %+v, %v", first, again, err)
				}

				v, err := spmm.NewTensor[float32](dev, 1, int(a.NNZ()), false)
				must(t, err)
				defer v.Close()
				must(t, v.Upload(ctx, &formats.Dense[float32]{Rows: 1, Cols: len(a.Val), LD: len(a.Val), Data: make([]float32, len(a.Val))}))
				must(t, p.SetValues(ctx, v))
				must(t, second(p.Run(ctx, 1, x, 0, y)))
				got := formats.NewDense[float32](m, n)
				if err := y.Download(ctx, got); err != nil || !got.Equal(formats.NewDense[float32](m, n)) {
					t.Errorf("%+v: values of a tensor are not taken, or %v", o, err)
				}
				must(t, v.Upload(ctx, &formats.Dense[float32]{Rows: 1, Cols: len(a.Val), LD: len(a.Val), Data: a.Val}))
				must(t, p.SetValues(ctx, v))
				same("SetValues", second(p.Run(ctx, 1, x, 0, y)))

				e, err := spmm.NewTensor[float32](dev, 1, n, false)
				must(t, err)
				defer e.Close()
				must(t, e.Upload(ctx, bias))
				for _, d := range []*spmm.Epilogue{nil, {Activation: spmm.ReLU}, {ColBias: e}} {
					var es []spmm.Epilogue
					if d != nil {
						es = append(es, *d)
					}
					bound, err := p.Attainable(ctx, n, dtype.F32, es...)
					if err != nil || bound.Time() <= 0 {
						t.Errorf("%+v: attainable %+v, %v", o, bound, err)
					}
					if _, err := p.Observe(ctx, n, dtype.F32, bound.Time(), es...); err != nil {
						t.Errorf("%+v: %v", o, err)
					}
				}
				if n := len(p.Parts()); n != 0 && n != len(dev.Devices()) || n == 0 && p.Info().Split != spmm.AutoSplit {
					t.Errorf("%+v: %d parts on %d devices, by %v", o, n, len(dev.Devices()), p.Info().Split)
				}

				s := dev.NewSequence()
				defer s.Close()
				err = s.Add(p, 1, x, 0, y)
				if o.P == spmm.AutoP {
					if err == nil {
						t.Error("a sequence takes AutoP")
					}
					return
				}
				must(t, err)
				for range 3 {
					same("Sequence.Run", second(s.Run(ctx)))
					w, err := s.Start(ctx)
					must(t, err)
					same("Sequence.Start", second(w.Wait(ctx)))
				}
				if err := s.AddValues(p, v); (err == nil) != (list == "cpu") || err != nil && !errors.Is(err, spmm.ErrUnsupported) {
					t.Errorf("%+v: values in a sequence: %v", o, err)
				}
			})
		}
	}
}

// Copies keep every element, in row- and column-major order on one device, and what does not fit is refused.
func TestTensorCopy(t *testing.T) {
	for _, list := range together {
		dev := openSeveral(t, list)
		for _, colMajor := range []bool{false, true} {
			d := gen.Dense(67, 45, 1, gen.Values{})
			x, err := spmm.NewTensor[float32](dev, 67, 45, colMajor)
			if colMajor && list != "cpu" {
				if !errors.Is(err, spmm.ErrUnsupported) {
					t.Errorf("%s: column-major: %v", list, err)
				}
				continue
			}
			must(t, err)
			y := newTensor[float32](t, dev, 67, 45, colMajor)
			must(t, x.Upload(ctx, d))
			got := formats.NewDense[float32](67, 45)
			if moved, err := y.Copy(ctx, x); err != nil || moved != 0 {
				t.Errorf("%s: %d bytes were moved, %v", list, moved, err)
			}
			if err := y.Download(ctx, got); err != nil || !got.Equal(d) {
				t.Errorf("%s: other elements, or %v", list, err)
			}
			if at := x.Placement(); (at == spmm.On(0)) != (list == "cpu") || (at == spmm.Replicated) == (list == "cpu") {
				t.Errorf("%s: placed %v", list, at)
			}
			other := newTensor[float32](t, dev, 45, 67, colMajor)
			for _, from := range []*spmm.Tensor[float32]{nil, other} {
				if _, err := y.Copy(ctx, from); err == nil {
					t.Errorf("%s: a copy of %v", list, from)
				}
			}
			must(t, errors.Join(other.Close(), x.Close()))
			if _, err := y.Copy(ctx, x); !errors.Is(err, spmm.ErrClosed) {
				t.Errorf("%s: a closed tensor: %v", list, err)
			}
			y.Close()
		}
	}
}

// What a device by itself alone can do is refused on several, in one way, and tensors of one are not those of the others.
func TestTogetherRefusals(t *testing.T) {
	one, several := openCPU(t), openSeveral(t, "cpu,cpu")
	a := uneven[float32](40, 30)
	for what, err := range map[string]error{
		"TensorOver": second(spmm.TensorOver[float32](several, 64, 1, 1, 8, false)),
		"NewPinned":  second(spmm.NewPinned[float32](several, 1, 1, false)),
		"UseStream":  several.UseStream(ctx, 0),
		"Encode":     second(spmm.Encode(ctx, several, a, spmm.Options{})),
		"Compare":    second(spmm.Compare(ctx, several, a, spmm.Options{})),
		"Predict":    second(spmm.Predict(ctx, several, a, spmm.Options{})),
		"Rates":      second(several.Rates(ctx)),
	} {
		if !errors.Is(err, spmm.ErrUnsupported) || !strings.HasPrefix(err.Error(), what+" is for a device by itself, not for 2 together") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, o := range []spmm.Options{{Split: spmm.ByRows}, {Memory: 1 << 20}, {From: spmm.On(0)}} {
		for what, err := range map[string]error{
			"Encode": second(spmm.Encode(ctx, one, a, o)), "Compare": second(spmm.Compare(ctx, one, a, o)), "Predict": second(spmm.Predict(ctx, one, a, o)),
		} {
			if err == nil || !strings.Contains(err.Error(), "Options.Split, Memory and From are for Prepare") {
				t.Errorf("%s of %+v: %v", what, o, err)
			}
		}
	}
	p, q := prepare(t, one, a, spmm.Options{}), prepare(t, several, a, spmm.Options{})
	defer p.Close()
	defer q.Close()
	x, y, err := spmm.TensorsFor[float32, float32](p, 8)
	must(t, err)
	u, v, err := spmm.TensorsFor[float32, float32](q, 8)
	must(t, err)
	for what, err := range map[string]error{
		"B and C of one with a plan of several": second(q.Run(ctx, 1, x, 0, y)),
		"B and C of several with a plan of one": second(p.Run(ctx, 1, u, 0, v)),
		"a bias of several":                     second(p.Run(ctx, 1, x, 0, y, spmm.Epilogue{RowBias: v})),
		"a bias of one":                         second(q.Run(ctx, 1, u, 0, v, spmm.Epilogue{RowBias: y})),
		"values of several":                     p.SetValues(ctx, u),
		"a plan of several":                     one.NewSequence().Add(q, 1, u, 0, v),
		"a plan of one":                         several.NewSequence().Add(p, 1, x, 0, y),
		"no plan":                               several.NewSequence().Add(nil, 1, u, 0, v),
	} {
		if err == nil {
			t.Errorf("%s: not refused", what)
		}
	}
	if _, err := spmm.NewTensorAt[float32](p, 3, 3, spmm.On(1)); err == nil {
		t.Error("one device has no device 1")
	}
}

// Devices that are joined with several are all members, each once.
func TestJoin(t *testing.T) {
	one, several := openCPU(t), openSeveral(t, "cpu,cpu")
	all, err := spmm.Join(several, one)
	must(t, err)
	if n := len(all.Devices()); n != 3 || all.Devices()[2] != one || all.Info() != several.Info() {
		t.Errorf("%d devices, %v", n, all.Info())
	}
	if d := one.Devices(); len(d) != 1 || d[0] != one {
		t.Errorf("a device by itself has %v", d)
	}
	if _, err := spmm.Join(all, several); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a device is there twice: %v", err)
	}
	if _, err := spmm.Join(one, nil); err == nil {
		t.Error("a device is missing")
	}
	must(t, all.Close())
	if _, err := spmm.NewTensor[float32](one, 1, 1, false); !errors.Is(err, spmm.ErrClosed) {
		t.Errorf("a member of a closed Device: %v", err)
	}
}
