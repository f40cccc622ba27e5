// Groups: a device and another of its kind, or itself opened twice, multiply as one does, in all formats and both
// modes.

package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// In fast mode the sums are exact, and so the same in any order.
func TestGroup(t *testing.T) {
	exact := recipe{class: MixedSign, typ: dtype.F16, m: 150, k: 96, n: 40, pattern: "skewed", alpha: 1, seed: 9}.build()
	sparser := *exact // two of four entries in a row
	sparser.a = formats.Convert[float64](twoOfFour(exact.m, exact.k))
	rounded := recipe{class: General, typ: dtype.F32, m: 150, k: 96, n: 40, pattern: "skewed", alpha: 1, kind: normal,
		seed: 9}.build()
	devices(t, func(t *testing.T, dev backend.Device) {
		one := spmm.NewDevice(dev)
		g, err := spmm.Open(t.Context(), pair(t, dev))
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		for _, format := range spmm.Formats() {
			t.Run(format, func(t *testing.T) {
				p := exact
				if format == "nm" || format == "sparse24r" {
					p = &sparser
				}
				o := spmm.Options{Format: format}
				grouped[half.F16](t, one, g, p, o)
				grouped[float32](t, one, g, p, o)
				o.Mode = spmm.Reproducible
				grouped[float32](t, one, g, rounded, o)
			})
		}
	})
}

// Cases through a group of the device and another of its kind, by columns and by rows: of the quick tier a sample,
// another one for each split.
func TestConformanceGroup(t *testing.T) {
	devices(t, func(t *testing.T, dev backend.Device) {
		two, err := spmm.Open(t.Context(), pair(t, dev))
		if err != nil {
			t.Fatal(err)
		}
		two.Close()
		d, err := backend.Find(dev.Info().Backend)
		if err != nil {
			t.Fatal(err)
		}
		infos, err := d.Devices(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		info := dev.Info()
		for _, x := range infos {
			if x.Index != info.Index && x.Name == info.Name {
				info = x
				break
			}
		}
		other, err := d.Open(t.Context(), info)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		for _, split := range []spmm.Split{spmm.ByColumns, spmm.ByRows} {
			o := options()
			o.instances, o.group = problems, &grouping{other: other, split: split, every: 19}
			if os.Getenv("SPMM_SOFTVK") != "" && dev.Info().Kind == "cpu" && dev.Info().Backend != "cpu" {
				o.group.every = 101 // they are slow
			}
			m, err := Run(t.Context(), dev, o)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("by %v: %v", split, m.Summary)
			if m.Summary[Pass] == 0 {
				t.Errorf("by %v: no case passed", split)
			}
			for _, c := range m.Cases {
				if c.Status == Fail {
					t.Errorf("by %v: %s with %s: %s", split, c.ID, c.Variant, c.Error)
				}
			}
		}
	})
}

// pair names a device twice, or, where its backend has others of its kind, it and one of these.
func pair(t *testing.T, dev backend.Device) string {
	t.Helper()
	i := dev.Info()
	other := i.Index
	if d, err := backend.Find(i.Backend); err == nil {
		infos, err := d.Devices(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range infos {
			if x.Index != i.Index && x.Name == i.Name {
				other = x.Index
				break
			}
		}
	}
	return fmt.Sprintf("%s:%d,%s:%d", i.Backend, i.Index, i.Backend, other)
}

// grouped compares the bits of a group's products with those of one device.
func grouped[T formats.Value](t *testing.T, one *spmm.Device, g *spmm.Device, p *instance, o spmm.Options) {
	t.Helper()
	ctx := context.Background()
	a, b := formats.Encoded(formats.Convert[T](p.a)), formats.ConvertDense[T](p.b)
	plan, err := spmm.Prepare(ctx, one, a, o)
	if errors.Is(err, spmm.ErrUnsupported) {
		return // the device has no such kernel
	}
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	want := formats.NewDense[float32](p.m, p.n)
	if _, err := spmm.Multiply(ctx, plan, 1, b, 0, want); err != nil {
		t.Fatal(err)
	}
	for _, split := range []spmm.Split{spmm.ByColumns, spmm.ByRows} {
		o.Split = split
		parts, err := spmm.Prepare(ctx, g, a, o)
		if err != nil {
			t.Errorf("%v, by %v: %v", o.Mode, split, err)
			continue
		}
		got := formats.NewDense[float32](p.m, p.n)
		if _, err := spmm.Multiply(ctx, parts, 1, b, 0, got); err != nil || !got.Equal(want) {
			t.Errorf("%v, by %v: other bits than on one device, or an error: %v", o.Mode, split, err)
		}
		fromFirst(t, parts, b, want, fmt.Sprintf("%v, by %v", o.Mode, split))
		if err := parts.Close(); err != nil {
			t.Error(err)
		}
	}
}

// fromFirst multiplies a B that lies on the first device into a C on the last.
func fromFirst[T formats.Value](t *testing.T, p *spmm.Plan, b *formats.Dense[T], want *formats.Dense[float32],
	what string) {
	t.Helper()
	x, err := spmm.NewTensorAt[T](p, b.Rows, b.Cols, spmm.On(0))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	y, err := spmm.NewTensorAt[float32](p, want.Rows, want.Cols, spmm.On(1))
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	if err := x.Upload(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	got := formats.NewDense[float32](want.Rows, want.Cols)
	if _, err := p.Run(t.Context(), 1, x, 0, y); err != nil {
		t.Errorf("%s, B on the first device: %v", what, err)
	} else if err := y.Download(t.Context(), got); err != nil || !got.Equal(want) {
		t.Errorf("%s, B on the first device: other bits than on one device, or %v", what, err)
	}
}

// twoOfFour has ones in the first two of any four columns.
func twoOfFour(rows, cols int) *formats.CSR[float32] {
	d := formats.NewDense[float32](rows, cols)
	for i := range d.Data {
		if i%4 < 2 {
			d.Data[i] = 1
		}
	}
	return d.ToCSR()
}

// Devices of several kinds together: in reproducible mode with the bits of the CPU. Shares are by predicted time.
func TestGroupMixed(t *testing.T) {
	cpu, err := spmm.Open(t.Context(), "cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer cpu.Close()
	p := recipe{class: General, typ: dtype.F32, m: 300, k: 96, n: 64, pattern: "skewed", alpha: 1, kind: spans,
		seed: 9}.build()
	devices(t, func(t *testing.T, dev backend.Device) {
		g, err := spmm.Open(t.Context(), fmt.Sprintf("cpu,%s:%d,cpu", dev.Info().Backend, dev.Info().Index))
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		for _, bits := range []int{0, 15, 47, spmm.AutoP} {
			grouped[float32](t, cpu, g, p, spmm.Options{Mode: spmm.Reproducible, P: bits})
		}
		grouped[half.F16](t, cpu, g, recipe{class: MixedSign, typ: dtype.F16, m: 300, k: 96, n: 64, pattern: "skewed",
			alpha: 1, seed: 9}.build(), spmm.Options{})
	})
}
