// Sampled products: the elements of C = alpha·A·B at the entries of a pattern, where A stores every element.
// Plan.Sample computes them from X = A and Y = Bᵀ, with alpha as each entry's scale.

package conformance

import (
	"context"
	"errors"
	"slices"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/spec"
)

// sampledShape is a problem with the pattern of C's elements that are computed.
type sampledShape struct {
	shape
	of string
}

var (
	// sampledShapes are problems of class T1±.
	sampledShapes = []sampledShape{
		{shape{m: 1, k: 1, n: 1}, "dense"},
		{shape{m: 67, k: 33, n: 129, alpha: -2}, "eighth"},
		{shape{m: 150, k: 128, n: 400}, "ragged"},
		{shape{m: 40, k: 7, n: 4097}, "onerow"},
		{shape{m: 3, k: 3001, n: 17, alpha: 0.5}, "dense"},
		{shape{m: 64, k: 32, n: 200}, "vec16"},
		{shape{m: 300, k: 200, n: 300}, "band"},
		{shape{m: 5, k: 0, n: 3}, "dense"},
		{shape{m: 5, k: 3, n: 9}, "empty"},
	}
	sampledNonFinite = []sampledShape{
		{shape{m: 67, k: 37, n: 129}, "eighth"},
		{shape{m: 64, k: 128, n: 48, alpha: -2}, "vec16"},
		{shape{m: 40, k: 21, n: 60, kind: alphaNaN}, "eighth"},
		{shape{m: 40, k: 21, n: 60, kind: alphaInf}, "eighth"},
	}
	sampledGeneral = []sampledShape{
		{shape{m: 96, k: 512, n: 40, kind: normal}, "eighth"},
		{shape{m: 61, k: 19, n: 300, kind: spans}, "vec8"},
		{shape{m: 40, k: 128, n: 512, kind: cancel, alpha: 0.3}, "eighth"},
	}
	sampledReproducible = []sampledShape{
		{shape{m: 67, k: 33, n: 129, kind: spans}, "eighth"},
		{shape{m: 29, k: 34, n: 60, kind: normal, alpha: -0.3}, "vec8"},
		{shape{m: 150, k: 128, n: 400, kind: cancel}, "ragged"},
		{shape{m: 16, k: 5, n: 16, kind: ties}, "dense"},
		{shape{m: 67, k: 129, n: 33, kind: tiny}, "eighth"},
		{shape{m: 67, k: 37, n: 129, kind: odd}, "eighth"},
		{shape{m: 64, k: 48, n: 24, kind: wild, alpha: -2}, "vec16"},
		{shape{m: 9, k: 1100, n: 9, kind: most}, "dense"},
	}
)

// sampled adds the cases of a precision, in the first format: the pattern alone is taken from the matrix.
func (w *lister) sampled(t target, of *spec.Format) {
	if t.kernel != of {
		return
	}
	in := t.prec.Storage()
	to := dtype.F32
	if t.prec == dtype.F64 {
		to = dtype.F64
	}
	add := func(class string, shapes []sampledShape, l layout) {
		l.path, l.a, l.b = tensor, in, in
		for _, s := range shapes {
			s.pattern, l.sampled = "dense", s.of
			w.add(Quick, t, class, s.shape, l)
		}
	}
	add(MixedSign, sampledShapes, layout{c: to, bcol: true})
	add(MixedSign, sampledShapes[1:3], layout{c: to})
	add(MixedSign, sampledShapes[1:3], layout{c: to, bcol: true, turned: true})
	add(SameSign, sampledShapes[1:2], layout{c: to, bcol: true})
	add(NonFinite, sampledNonFinite, layout{c: to, bcol: true})
	add(General, sampledGeneral, layout{c: to, bcol: true, reuse: true})
	rounded := slices.Clone(sampledShapes[1:2])
	rounded[0].kind = narrow
	add(MixedSign, rounded, layout{c: dtype.F16, turned: true, reuse: true})
}

// sampledT3 adds those in reproducible mode.
func (w *lister) sampledT3(of *spec.Format) {
	for _, typ := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		for _, p := range precisionsT3() {
			for i, s := range sampledReproducible {
				s.pattern = "dense"
				w.t3(Quick, []*spec.Format{of}, typ, p, s.shape, layout{path: tensor, a: typ, b: typ, c: dtype.F32,
					bcol: i%3 != 1, turned: i%2 == 1, reuse: i%3 == 2, sampled: s.of})
			}
		}
	}
}

// sampledMatrix returns the matrix whose entries a case samples at, as the plan is given it.
func sampledMatrix(t *test) *formats.CSR[float32] {
	a := &formats.CSR[float32]{Rows: t.m, Cols: t.n, RowPtr: make([]int64, 1, t.m+1)}
	for i := range t.m {
		a.ColIdx = append(a.ColIdx, patterns[t.layout.sampled](t.seed, i, t.m, t.n)...)
		a.RowPtr = append(a.RowPtr, int64(len(a.ColIdx)))
	}
	a.Val = slices.Repeat([]float32{1}, len(a.ColIdx))
	if t.turned {
		return a.Transpose()
	}
	return a
}

// frontSampled computes a case by Plan.Sample, twice.
func frontSampled(ctx context.Context, r *runner, t *test, p *instance, o spmm.Options) (*outputs, *planInfo, error) {
	a := sampledMatrix(t)
	o.Transpose = t.turned
	plan, err := spmm.Prepare(ctx, r.door, a, o)
	if err != nil {
		return nil, nil, err
	}
	defer plan.Close()
	info := &planInfo{variant: plan.Info().Variant}
	s, err := newSampledOperands(ctx, r, t, p, len(a.Val))
	defer s.close()
	if err != nil {
		return nil, info, err
	}
	var outs [2]*outputs
	for i := range outs {
		values, err := s.run(ctx, t, p, plan)
		if err == nil {
			err = r.intact(ctx)
		}
		if err != nil {
			return nil, info, err
		}
		outs[i] = wholeC(t, p, a, values)
	}
	info.bits, info.lossless = plan.Reproduced()
	return outs[0], info, alike(outs[0], outs[1])
}

// wholeC returns C with the elements that were computed, in the order of a's entries, and right ones elsewhere.
func wholeC(t *test, p *instance, a *formats.CSR[float32], values []float64) *outputs {
	c := slices.Clone(p.want)
	if c == nil {
		for i := range p.m {
			for j := range p.n {
				c = append(c, p.alpha*oracle.At(p.a, p.b, i, j).Value())
			}
		}
	}
	for i := range a.Rows {
		for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
			at := i*p.n + int(a.ColIdx[e])
			if t.turned {
				at = int(a.ColIdx[e])*p.n + i
			}
			c[at] = values[e]
		}
	}
	return round(t.c, p.m, p.n, c)
}

// sampledOperands are the tensors of a sampled product.
type sampledOperands struct {
	x, y, s, scale anyTensor
	other          *formats.Dense[float64] // a Y of ones
}

func newSampledOperands(ctx context.Context, r *runner, t *test, p *instance, entries int) (*sampledOperands, error) {
	x := &formats.Dense[float64]{Rows: p.m, Cols: p.k, LD: p.k, Data: p.a.Val} // which stores every element
	y := p.b.Transpose()
	q := &sampledOperands{other: formats.NewDense[float64](p.n, p.k)}
	for i := range q.other.Data {
		q.other.Data[i] = 1
	}
	scales := formats.NewDense[float64](1, entries)
	for i := range scales.Data {
		scales.Data[i] = p.alpha
	}
	sums := dtype.F32
	if t.prec == dtype.F64 {
		sums = dtype.F64
	}
	var errs [4]error
	q.x, errs[0] = newAny(r, t.a, p.m, p.k, !t.bcol)
	q.y, errs[1] = newAny(r, t.b, p.n, p.k, !t.bcol)
	q.s, errs[2] = newAny(r, t.c, 1, entries, false)
	q.scale, errs[3] = newAny(r, sums, 1, entries, false)
	if err := errors.Join(errs[:]...); err != nil {
		return q, err
	}
	return q, errors.Join(q.x.upload(ctx, x), q.y.upload(ctx, y), q.scale.upload(ctx, scales))
}

// run samples, after a product with another Y if the case says so, and returns the elements of s.
func (q *sampledOperands) run(ctx context.Context, t *test, p *instance, plan *spmm.Plan) ([]float64, error) {
	var e spmm.SampleEpilogue
	if p.alpha != 1 {
		e.Scale = q.scale
	}
	ys := []*formats.Dense[float64]{p.b.Transpose()}
	if t.reuse {
		ys = []*formats.Dense[float64]{q.other, ys[0]}
	}
	for _, y := range ys {
		if err := q.y.upload(ctx, y); err != nil {
			return nil, err
		}
		if _, err := plan.Sample(ctx, q.x, q.y, q.s, e); err != nil {
			return nil, err
		}
	}
	return q.s.download(ctx)
}

func (q *sampledOperands) close() {
	for _, x := range []anyTensor{q.x, q.y, q.s, q.scale} {
		if x != nil {
			x.Close()
		}
	}
}

// anyTensor is a tensor of any type, with data in float64.
type anyTensor interface {
	spmm.Operand
	upload(context.Context, *formats.Dense[float64]) error
	download(context.Context) ([]float64, error) // row after row
	Close() error
}

type tensorOf[T formats.Value] struct{ *spmm.Tensor[T] }

func newAny(r *runner, typ dtype.Type, rows, cols int, colMajor bool) (anyTensor, error) {
	switch typ {
	case dtype.F16:
		return newTensorOf[half.F16](r, rows, cols, colMajor)
	case dtype.BF16:
		return newTensorOf[half.BF16](r, rows, cols, colMajor)
	case dtype.F64:
		return newTensorOf[float64](r, rows, cols, colMajor)
	}
	return newTensorOf[float32](r, rows, cols, colMajor)
}

func newTensorOf[T formats.Value](r *runner, rows, cols int, colMajor bool) (anyTensor, error) {
	x, err := spmm.NewTensor[T](r.door, rows, cols, colMajor)
	if err != nil {
		return nil, err
	}
	return tensorOf[T]{x}, nil
}

func (x tensorOf[T]) upload(ctx context.Context, d *formats.Dense[float64]) error {
	return x.Upload(ctx, formats.ConvertDense[T](d))
}

func (x tensorOf[T]) download(ctx context.Context) ([]float64, error) {
	d := formats.NewDense[T](x.Dims())
	err := x.Download(ctx, d)
	return formats.ConvertDense[float64](d).Data, err
}
