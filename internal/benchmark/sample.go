// What sampled products take, and the softmax of their rows, on devices and by peers.

package benchmark

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
)

// sampleColumns are the lengths of the rows of X and Y.
var sampleColumns = []int{32, 128}

// sampleWay is a way to sample.
type sampleWay struct {
	name    string
	p       int // 0: fast mode
	softmax bool
}

// sampleWays are those in each precision.
var sampleWays = map[dtype.Type][]sampleWay{
	dtype.F32: {{name: "sampled"}, {name: "sampled, softmax", softmax: true}, {name: "sampled", p: 23}},
	dtype.F16: {{name: "sampled"}},
}

// sampled is a sampled product, which several compute in turn: that of X and Y at the entries of a.
type sampled struct {
	name string
	a    *formats.CSR[float32]
	x, y *formats.Dense[float32] // numbers of the precision
	prec dtype.Type
}

// Samples measures on each device, and by peers, for each matrix, how long Plan.Sample takes on its pattern.
func Samples(ctx context.Context, t *Task) (*Report, error) {
	peers, err := startPeers(ctx, t.Peers)
	defer func() { closeAll(peers) }()
	if err != nil {
		return &Report{}, err
	}
	var a *formats.CSR[float32] // of the last step
	precisions := []dtype.Type{dtype.F32, dtype.F16}
	each := len(sampleColumns) * len(precisions)
	r, err := t.each(ctx, len(t.Matrices)*each, func(at *place, step int) ([]*contest, error) {
		dev, err := at.alone("sampled products")
		if err != nil {
			return nil, err
		}
		name, of := t.Matrices[step/each], step%each
		if of == 0 {
			if a, err = t.Open(ctx, name); err != nil {
				return nil, err
			}
		}
		s := newSampled(name, a, sampleColumns[of/len(precisions)], precisions[of%len(precisions)])
		if at.asked != t.Backends[0] { // once is enough
			return s.enter(ctx, at.name, dev, nil)
		}
		return s.enter(ctx, at.name, dev, peers)
	})
	for _, p := range peers {
		r.Environment.Peers = append(r.Environment.Peers, p.description)
	}
	return r, err
}

func newSampled(name string, a *formats.CSR[float32], k int, prec dtype.Type) *sampled {
	s := &sampled{name, a, gen.Dense(a.Rows, k, 1, gen.Values{}), gen.Dense(a.Cols, k, 2, gen.Values{}), prec}
	if prec == dtype.F16 {
		s.x = formats.ConvertDense[float32](formats.ConvertDense[half.F16](s.x))
		s.y = formats.ConvertDense[float32](formats.ConvertDense[half.F16](s.y))
	}
	return s
}

// enter returns those that compute the product on a device, and the peers' algorithms.
func (s *sampled) enter(ctx context.Context, name string, dev *spmm.Device, peers []*peer) ([]*contest, error) {
	var all []*contest
	add := func(by, format, mode string) *contest {
		c := &contest{Result: Result{
			Case: Case{Matrix: s.name, N: s.x.Cols, Precision: s.prec.String(), Backend: by, Format: format, Mode: mode},
			Rows: s.a.Rows, Cols: s.a.Cols, NNZ: s.a.NNZ(),
			Bytes: int64(s.prec.Size())*int64(s.x.Cols)*int64(s.a.Rows+s.a.Cols) + 12*s.a.NNZ(),
		}}
		all = append(all, c)
		return c
	}
	for _, w := range sampleWays[s.prec] {
		c, x := add(name, w.name, w.mode()), &timed{clock: "device"}
		c.entrant, c.Chosen = x, w.name
		if err := s.on(ctx, dev, x, w); err != nil {
			if err := c.fail(err); err != nil {
				return all, err
			}
		}
	}
	for _, p := range peers {
		algorithms, err := p.sample(ctx, s.a, s.x, s.y, s.prec)
		if err != nil {
			if err := add(p.name, "-", Fast).fail(err); err != nil {
				return all, err
			}
		}
		for _, x := range algorithms {
			c := add(p.name, x.name, Fast)
			c.entrant = x
			out, err := outputOf[float32](ctx, x)
			if err == nil {
				err = s.verify(out.Data)
			}
			if err != nil {
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

// on prepares a matrix and tensors on a device, has x sample in a way, and verifies what it gives.
func (s *sampled) on(ctx context.Context, dev *spmm.Device, x *timed, w sampleWay) error {
	o := spmm.Options{Format: "csr", Precision: s.prec}
	if w.p != 0 {
		o.Mode, o.P = spmm.Reproducible, w.p
	}
	plan, err := spmm.Prepare(ctx, dev, s.a, o)
	if err != nil {
		return err
	}
	x.shut = append(x.shut, plan.Close)
	if s.prec == dtype.F16 {
		return sampleAs[half.F16](ctx, s, dev, plan, x, w)
	}
	return sampleAs[float32](ctx, s, dev, plan, x, w)
}

// sampleAs has X and Y of type T. Products are recorded, as peers record theirs.
func sampleAs[T formats.Value](
	ctx context.Context, s *sampled, dev *spmm.Device, plan *spmm.Plan, x *timed, w sampleWay,
) error {
	tx, err := uploaded[T](ctx, dev, x, s.x)
	if err != nil {
		return err
	}
	ty, err := uploaded[T](ctx, dev, x, s.y)
	if err != nil {
		return err
	}
	out := formats.NewDense[float32](1, int(s.a.NNZ()))
	to, err := uploaded[float32](ctx, dev, x, out)
	if err != nil {
		return err
	}
	e := spmm.SampleEpilogue{Softmax: w.softmax}
	start := time.Now()
	if _, err := plan.Sample(ctx, tx, ty, to, e); err != nil {
		return err
	}
	first := time.Since(start)
	if !w.softmax {
		if err := to.Download(ctx, out); err != nil {
			return err
		}
		if err := s.verify(out.Data); err != nil {
			return err
		}
	}
	c := &calls{dev: dev, add: func(q *spmm.Sequence) error { return q.AddSample(plan, tx, ty, to, e) }}
	x.shut = append(x.shut, c.close)
	x.complete = func(r *Result) error {
		r.EncodeS = first.Seconds()
		return nil
	}
	x.run = func(ctx context.Context, times int) (time.Duration, error) {
		took, err := c.recorded(ctx, times)
		return took.Best(), err
	}
	return nil
}

// uploaded returns a matrix on a device, which x closes.
func uploaded[T formats.Value](
	ctx context.Context, dev *spmm.Device, x *timed, d *formats.Dense[float32],
) (*spmm.Tensor[T], error) {
	t, err := spmm.NewTensor[T](dev, d.Rows, d.Cols, false)
	if err != nil {
		return nil, err
	}
	x.shut = append(x.shut, t.Close)
	return t, t.Upload(ctx, formats.ConvertDense[T](d))
}

// verified is how many entries are verified, of equal distances in the pattern.
const verified = 2000

// verify holds results against exact sums and the bound of docs/bound.md, which reproducible results of p = 23 keep,
// too, for these numbers.
func (s *sampled) verify(got []float32) error {
	k := s.x.Cols
	row := &formats.CSR[float32]{Rows: 1, Cols: k, RowPtr: []int64{0, int64(k)}}
	for i := range k {
		row.ColIdx = append(row.ColIdx, int32(i))
	}
	nnz, i := s.a.NNZ(), 0
	for e := int64(0); e < nnz; e += 1 + nnz/verified {
		for s.a.RowPtr[i+1] <= e {
			i++
		}
		j := int(s.a.ColIdx[e])
		row.Val = s.x.Line(i)
		d := oracle.At(row, &formats.Dense[float32]{Rows: k, Cols: 1, LD: 1, Data: s.y.Line(j)}, 0, 0)
		want, bound := d.Value(), oracle.Bound(k, 8, d.Abs, s.prec)
		if !(math.Abs(float64(got[e])-want) <= bound) {
			return wrongError{fmt.Errorf("entry %d, (%d, %d), is %v, must be %v within %v", e, i, j, got[e], want, bound)}
		}
	}
	return nil
}
