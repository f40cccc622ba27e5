// What new values for a prepared matrix cost, beside a copy of as many bytes.

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/work"
	"github.com/spmmrun/spmm/shaders/peak"
	"github.com/spmmrun/spmm/shaders/spec"
)

// A time is the median of so many batches of so many passes back to back; those of what is compared alternate.
const (
	valueRounds = 31
	valueBatch  = 20
)

// newValues prints, for 4096² at 90 % zeros in f16, how long Plan.SetValues takes from tensors of f16 and f32 on the
// device, for each format, and its transpose, beside a copy that reads and writes as many bytes as there are values.
// 2:4 stands for nm, and all entries for dense.
func newValues(r *runner) error {
	ctx := context.Background()
	for _, name := range strings.Split(r.backends, ",") {
		i := slices.IndexFunc(backend.Drivers(), func(d backend.Driver) bool { return d.Name() == name })
		if i < 0 {
			return fmt.Errorf("backend %s is not built in", name)
		}
		driver := backend.Drivers()[i]
		infos, err := driver.Devices(ctx)
		if err != nil {
			return err
		}
		opened, err := driver.Open(ctx, infos[0])
		if err != nil {
			return err
		}
		dev := device.New(opened)
		table(fmt.Sprintf("%s: new values, 4096², 90 %% zeros, f16, µs", dev.Info().Name), "format", "entries", "copy", "from f16", "÷ copy", "from f32", "÷ copy", "transposed", "÷ copy", "first call, ms")
		for _, format := range work.Formats() {
			if err := valuesOf(ctx, dev, format); err != nil {
				fmt.Fprintf(os.Stderr, "bench: %s: %v\n", format, err)
			}
		}
		fmt.Println()
		if err := opened.Close(); err != nil {
			return err
		}
	}
	return nil
}

// valuesOf prints the row of a format.
func valuesOf(ctx context.Context, dev *device.Device, format string) error {
	spec := "gen:uniform,rows=4096,density=0.1"
	switch format {
	case "nm":
		spec = "gen:nm,rows=4096,n=2,m=4"
	case "dense":
		spec = "gen:uniform,rows=4096,density=1"
	}
	a, err := gen.CSR(spec)
	if err != nil {
		return err
	}
	m := formats.ConvertTo(a, dtype.F16)
	var timed []func() (time.Duration, error)
	copies, closeCopies, err := copier(ctx, dev, 2*m.NNZ())
	if err != nil {
		return err
	}
	defer closeCopies()
	timed = append(timed, copies)
	first := time.Duration(0)
	for i, t := range []dtype.Type{dtype.F16, dtype.F32, dtype.F16} {
		transpose := i == 2
		if transpose && format == "nm" { // whose transpose is of no pattern
			continue
		}
		p, err := plan.New(ctx, dev, m, work.Options{Format: format, Transpose: transpose})
		if err != nil {
			return err
		}
		defer p.Close()
		v, err := tensor.New(dev, tensor.Shape{Rows: 1, Cols: int(m.NNZ()), Type: t})
		if err != nil {
			return err
		}
		defer v.Close()
		if err := v.Write(ctx, tensor.Host{Data: make([]byte, m.NNZ()*int64(t.Size())), LD: int(m.NNZ())}); err != nil {
			return err
		}
		start := time.Now()
		if err := p.SetValues(ctx, v); err != nil {
			return err
		}
		if i == 0 {
			first = time.Since(start)
		}
		timed = append(timed, func() (time.Duration, error) {
			took, err := p.RepeatSetValues(ctx, valueBatch, v)
			return took.Best(), err
		})
	}
	us, err := medians(timed)
	if err != nil {
		return err
	}
	cells := []any{format, m.NNZ(), us[0]}
	for _, x := range us[1:] {
		cells = append(cells, x, fmt.Sprintf("%.2f", x/us[0]))
	}
	for len(cells) < 9 {
		cells = append(cells, "–")
	}
	row(append(cells, float64(first)/float64(time.Millisecond))...)
	return nil
}

// copier returns what times a batch of copies of so many bytes on a device, by its fastest kernel for that.
func copier(ctx context.Context, dev *device.Device, bytes int64) (timed func() (time.Duration, error), closeAll func(), err error) {
	var open []interface{ Close() error }
	closeAll = func() {
		for _, x := range open {
			x.Close()
		}
	}
	vs := peak.Variants(dev.Caps(), peak.Copy)
	if len(vs) == 0 {
		return nil, closeAll, fmt.Errorf("no kernel copies: %w", backend.ErrUnsupported)
	}
	v := vs[0]
	step := int64(v.Local[0]) * int64(v.Const("WIDTH"))
	groups := spec.Ceil(bytes, step)
	bin, err := peak.Program.Binary(v)
	if err != nil {
		return nil, closeAll, err
	}
	kernel, err := dev.Load(bin)
	if err != nil {
		return nil, closeAll, err
	}
	open = append(open, kernel)
	var args []backend.Buffer
	for range 2 {
		b, err := dev.Alloc(groups * step)
		if err != nil {
			return nil, closeAll, err
		}
		open = append(open, b)
		args = append(args, b)
	}
	pass := peak.Launch(v, uint32(groups), 1, 1)
	launches := slices.Repeat([]backend.Launch{{Kernel: kernel, Groups: pass.Groups, Args: args, Params: pass.Params}}, valueBatch)
	return func() (time.Duration, error) {
		took, err := dev.Run(ctx, launches...)
		return took.Best(), err
	}, closeAll, nil
}

// medians returns the median of each of several batches, in µs for one pass. They take turns.
func medians(timed []func() (time.Duration, error)) ([]float64, error) {
	times := make([][]time.Duration, len(timed))
	for range valueRounds {
		for i, f := range timed {
			t, err := f()
			if err != nil {
				return nil, err
			}
			times[i] = append(times[i], t)
		}
	}
	var us []float64
	for _, t := range times {
		slices.Sort(t)
		us = append(us, float64(t[len(t)/2])/float64(valueBatch*time.Microsecond))
	}
	return us, nil
}
