// Groups: every device opened twice multiplies as it does by itself, in all formats and both modes.

package conformance

import (
	"context"
	"errors"
	"fmt"
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
	sparser.a = twoOfFour(exact.m, exact.k)
	rounded := recipe{class: General, typ: dtype.F32, m: 150, k: 96, n: 40, pattern: "skewed", alpha: 1, kind: normal, seed: 9}.build()
	devices(t, func(t *testing.T, dev backend.Device) {
		one := spmm.NewDevice(dev)
		name := fmt.Sprintf("%s:%d", dev.Info().Backend, dev.Info().Index)
		g, err := spmm.OpenGroup(t.Context(), name+","+name)
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

// grouped compares the bits of a group's products with those of one device.
func grouped[T formats.Value](t *testing.T, one *spmm.Device, g *spmm.Group, p *instance, o spmm.Options) {
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
		parts, err := g.Prepare(ctx, a, spmm.GroupOptions{Options: o, Split: split})
		if err != nil {
			t.Errorf("%v, by %v: %v", o.Mode, split, err)
			continue
		}
		got := formats.NewDense[float32](p.m, p.n)
		if _, err := spmm.MultiplyGroup(ctx, parts, 1, b, 0, got); err != nil || !got.Equal(want) {
			t.Errorf("%v, by %v: other bits than on one device, or an error: %v", o.Mode, split, err)
		}
		if err := parts.Close(); err != nil {
			t.Error(err)
		}
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
	p := recipe{class: General, typ: dtype.F32, m: 300, k: 96, n: 64, pattern: "skewed", alpha: 1, kind: spans, seed: 9}.build()
	devices(t, func(t *testing.T, dev backend.Device) {
		g, err := spmm.OpenGroup(t.Context(), fmt.Sprintf("cpu,%s:%d,cpu", dev.Info().Backend, dev.Info().Index))
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		for _, bits := range []int{0, 15, 47, spmm.AutoP} {
			grouped[float32](t, cpu, g, p, spmm.Options{Mode: spmm.Reproducible, P: bits})
		}
		grouped[half.F16](t, cpu, g, recipe{class: MixedSign, typ: dtype.F16, m: 300, k: 96, n: 64, pattern: "skewed", alpha: 1, seed: 9}.build(), spmm.Options{})
	})
}
