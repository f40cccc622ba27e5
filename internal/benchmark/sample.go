// What sampled products take, and the softmax of their rows.

package benchmark

import (
	"context"
	"fmt"
	"time"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/work"
)

// sampleColumns are the lengths of the rows of X and Y.
var sampleColumns = []int{32, 128}

// sampleWay is a way to sample.
type sampleWay struct {
	name    string
	elem    dtype.Type
	p       rfx.P // 0: fast mode
	softmax bool
}

var sampleWays = []sampleWay{
	{name: "sampled", elem: dtype.F32}, {name: "sampled", elem: dtype.F16},
	{name: "sampled, softmax", elem: dtype.F32, softmax: true}, {name: "sampled", elem: dtype.F32, p: rfx.P23},
}

// Samples measures on each device, for each matrix, how long Plan.Sample takes on its pattern.
func Samples(ctx context.Context, t *Task) (*Report, error) {
	return t.each(ctx, len(t.Matrices), func(at *place, step int) ([]*contest, error) {
		if _, err := at.alone("sampled products"); err != nil {
			return nil, err
		}
		a, err := t.Open(ctx, t.Matrices[step])
		if err != nil {
			return nil, err
		}
		return sampleOn(ctx, at.name, t.Matrices[step], a)
	})
}

// sampleOn returns those that sample a matrix's pattern on a device.
func sampleOn(ctx context.Context, name, matrix string, a *formats.CSR[float32]) ([]*contest, error) {
	var all []*contest
	for _, k := range sampleColumns {
		for _, w := range sampleWays {
			c := &contest{Result: Result{
				Case: Case{Matrix: matrix, N: k, Precision: w.elem.String(), Backend: name, Format: w.name, Mode: w.mode()},
				Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ(), Chosen: w.name,
				Bytes: int64(w.elem.Size())*int64(k)*int64(a.Rows+a.Cols) + 12*a.NNZ(),
			}}
			all = append(all, c)
			x := &timed{clock: "device"}
			c.entrant = x
			if err := x.sample(ctx, name, a, k, w); err != nil {
				if err := c.fail(err); err != nil {
					return all, err
				}
			}
		}
	}
	return all, nil
}

// mode names the way's mode.
func (w sampleWay) mode() string {
	if w.p == 0 {
		return Fast
	}
	return fmt.Sprintf("%s %d", Reproducible, w.p)
}

// sample opens a device, prepares a matrix and tensors, and times sampled products of k columns.
func (x *timed) sample(ctx context.Context, name string, a *formats.CSR[float32], k int, w sampleWay) error {
	dev, err := openPlan(ctx, name)
	if err != nil {
		return err
	}
	x.shut = append(x.shut, dev.Close)
	p, err := plan.New(ctx, dev, formats.ConvertTo(a, w.elem), work.Work{Format: "csr", P: w.p}, work.Form{})
	if err != nil {
		return err
	}
	x.shut = append(x.shut, p.Close)
	q := plan.Sampled{Softmax: w.softmax}
	for _, t := range []struct {
		to         *tensor.Operand
		rows, cols int
		elem       dtype.Type
	}{{&q.X, a.Rows, k, w.elem}, {&q.Y, a.Cols, k, w.elem}, {&q.S, 1, int(a.NNZ()), dtype.F32}} {
		m, err := tensor.New(dev, tensor.Shape{Rows: t.rows, Cols: t.cols, Type: t.elem})
		if err != nil {
			return err
		}
		x.shut, *t.to = append(x.shut, m.Close), m
		data := make([]byte, t.rows*t.cols*t.elem.Size()) // zeros: times do not depend on numbers
		if err := m.Write(ctx, tensor.Host{Data: data, LD: t.cols}); err != nil {
			return err
		}
	}
	start := time.Now()
	if _, err := p.Sample(ctx, q); err != nil {
		return err
	}
	first := time.Since(start)
	x.complete = func(r *Result) error {
		r.EncodeS = first.Seconds()
		return nil
	}
	x.run = func(ctx context.Context, times int) (time.Duration, error) {
		took, err := p.RepeatSample(ctx, times, q)
		return took.Best(), err
	}
	return nil
}
