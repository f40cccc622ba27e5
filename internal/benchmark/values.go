// What new values for a prepared matrix cost, compared with a copy of as many bytes.

package benchmark

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/work"
	"github.com/spmmrun/spmm/shaders/peak"
	"github.com/spmmrun/spmm/shaders/spec"
)

// valuesOf is the matrix that values are brought to in a format: 4096² at 90 % zeros, 2:4 for nm, and no zeros for
// dense.
func valuesOf(format string) string {
	switch format {
	case "nm":
		return "gen:nm,rows=4096,n=2,m=4"
	case "dense":
		return "gen:uniform,rows=4096,density=1"
	}
	return "gen:uniform,rows=4096,density=0.1"
}

// Values measures on each device, for each format, how long Plan.SetValues takes in f16 from tensors of f16 and f32
// on the device, also of the transposed matrix, and a copy that reads and writes as many bytes as there are
// values.
func Values(ctx context.Context, t *Task) (*Report, error) {
	names := work.Formats()
	return t.each(ctx, len(names), func(at *place, step int) ([]*contest, error) {
		if _, err := at.alone("new values"); err != nil {
			return nil, err
		}
		v := &newValues{at: at.name, format: names[step], matrix: valuesOf(names[step])}
		err := v.enter(ctx, t)
		if err == nil || errors.Is(err, context.Canceled) {
			return v.all, err
		}
		for _, c := range v.all {
			c.drop()
		}
		return []*contest{{Result: Result{Case: v.named("values"), Error: err.Error()}}}, nil
	})
}

// newValues are those who bring new values to a format's arrays, and a copy.
type newValues struct {
	at, format, matrix string
	all                []*contest
}

func (v *newValues) named(way string) Case {
	return Case{Matrix: v.matrix, N: 1, Precision: "f16", Backend: v.at, Format: v.format, Mode: Fast, Way: way}
}

// add adds one before the copy, which is the last, so that the device, which it closes, is closed last.
func (v *newValues) add(way string, bytes int64, x *timed) {
	c := &contest{entrant: x, Result: Result{Case: v.named(way), Chosen: v.format, Bytes: bytes}}
	v.all = slices.Insert(v.all, max(0, len(v.all)-1), c)
}

func (v *newValues) enter(ctx context.Context, t *Task) error {
	dev, err := openPlan(ctx, v.at)
	if err != nil {
		return err
	}
	a, err := t.Open(ctx, v.matrix)
	if err != nil {
		dev.Close()
		return err
	}
	m := formats.ConvertTo(a, dtype.F16)
	copied, err := copier(ctx, dev, 2*m.NNZ())
	copied.shut = append([]func() error{dev.Close}, copied.shut...) // the others close before
	v.add("copy", 4*m.NNZ(), copied)
	if err != nil {
		return err
	}
	for _, w := range []struct {
		name      string
		of        dtype.Type
		transpose bool
	}{
		{"values of f16", dtype.F16, false}, {"values of f32", dtype.F32, false},
		{"values of f16, transposed", dtype.F16, true},
	} {
		if w.transpose && v.format == "nm" { // whose transpose is of no pattern
			continue
		}
		x := &timed{clock: "device"}
		v.add(w.name, m.NNZ()*int64(2+w.of.Size()), x)
		if err := x.setValues(ctx, dev, m, w.of, work.Work{Format: v.format}, work.Form{Transpose: w.transpose}); err != nil {
			return err
		}
	}
	return nil
}

// openPlan opens a device as plans take it.
func openPlan(ctx context.Context, name string) (*device.Device, error) {
	driver, _, _ := strings.Cut(name, ":")
	i := slices.IndexFunc(backend.Drivers(), func(d backend.Driver) bool { return d.Name() == driver })
	if i < 0 {
		return nil, fmt.Errorf("backend %s is not built in: %w", driver, backend.ErrUnavailable)
	}
	infos, err := backend.Drivers()[i].Devices(ctx)
	if err != nil {
		return nil, err
	}
	for _, info := range infos {
		if name == driver && info.Index == 0 || name == fmt.Sprintf("%s:%d", driver, info.Index) {
			opened, err := backend.Drivers()[i].Open(ctx, info)
			if err != nil {
				return nil, err
			}
			return device.New(opened), nil
		}
	}
	return nil, fmt.Errorf("device %s is not there: %w", name, backend.ErrUnavailable)
}

// setValues prepares a matrix and a tensor of values, and times bringing these to it.
func (x *timed) setValues(
	ctx context.Context, dev *device.Device, m formats.Encoded, of dtype.Type, how work.Work, form work.Form,
) error {
	p, err := plan.New(ctx, dev, m, how, form)
	if err != nil {
		return err
	}
	x.shut = append(x.shut, p.Close)
	n := int(m.NNZ())
	v, err := tensor.New(dev, tensor.Shape{Rows: 1, Cols: n, Type: of})
	if err != nil {
		return err
	}
	x.shut = append(x.shut, v.Close)
	if err := v.Write(ctx, tensor.Host{Data: make([]byte, n*of.Size()), LD: n}); err != nil {
		return err
	}
	start := time.Now()
	if err := p.SetValues(ctx, v); err != nil {
		return err
	}
	first := time.Since(start)
	x.complete = func(r *Result) error {
		r.EncodeS = first.Seconds()
		return nil
	}
	x.run = func(ctx context.Context, times int) (time.Duration, error) {
		took, err := p.RepeatSetValues(ctx, times, v)
		return took.Best(), err
	}
	return nil
}

// copier times copies of a number of bytes on a device, by its fastest kernel for that.
func copier(ctx context.Context, dev *device.Device, bytes int64) (*timed, error) {
	x := &timed{clock: "device"}
	vs := peak.Variants(dev.Caps(), peak.Copy)
	if len(vs) == 0 {
		return x, fmt.Errorf("no kernel copies: %w", backend.ErrUnsupported)
	}
	v := vs[0]
	step := int64(v.Local[0]) * int64(v.Const("WIDTH"))
	groups := spec.Ceil(bytes, step)
	bin, err := peak.Program.Binary(v)
	if err != nil {
		return x, err
	}
	kernel, err := dev.Load(bin)
	if err != nil {
		return x, err
	}
	x.shut = append(x.shut, kernel.Close)
	var args []backend.Buffer
	for range 2 {
		b, err := dev.Alloc(groups * step)
		if err != nil {
			return x, err
		}
		x.shut = append(x.shut, b.Close)
		args = append(args, b)
	}
	pass := peak.Launch(v, uint32(groups), 1, 1)
	one := backend.Launch{Kernel: kernel, Groups: pass.Groups, Args: args, Params: pass.Params}
	x.run = func(ctx context.Context, times int) (time.Duration, error) {
		took, err := dev.Run(ctx, slices.Repeat([]backend.Launch{one}, times)...)
		return took.Best(), err
	}
	return x, nil
}
