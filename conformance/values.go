// New values in a plan, and transposed matrices.

package conformance

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Where the new values of a plan come from.
const (
	fromHost   = "host"
	fromTensor = "tensor" // of float32, whatever A's type
)

// values adds plans whose values are replaced, and matrices that are transposed when they are prepared.
func (w *lister) values(t target) {
	in := t.prec.Storage()
	s := shape{m: 67, k: 129, n: 33, pattern: "eighth", alpha: -2, beta: 0.5}
	w.add(Quick, t, MixedSign, s, layout{path: tensor, a: in, b: in, c: dtype.F32, changed: fromTensor})
	w.add(Quick, t, MixedSign, s, layout{path: host, a: in, b: in, c: dtype.F32, changed: fromHost})
	w.add(Quick, t, MixedSign, s, layout{path: host, a: in, b: in, c: dtype.F32, turned: true})
	s = shape{m: 150, k: 400, n: 7, pattern: "ragged"}
	w.add(Quick, t, MixedSign, s, layout{path: host, a: dtype.F32, b: in, c: dtype.F32, changed: fromTensor, turned: true})
	w.add(Quick, t, NonFinite, nonFiniteShapes[1], layout{path: tensor, a: in, b: in, c: dtype.F32, changed: fromTensor,
		turned: true})
	w.add(Quick, t, General, generalShapes[1], layout{path: tensor, a: in, b: in, c: dtype.F32, changed: fromHost,
		turned: true})
	w.add(Quick, t, General, generalShapes[3], layout{path: host, a: in, b: in, c: dtype.F32, changed: fromTensor})
}

// reproducibleValues adds the same in reproducible mode, in every format at two precisions.
func (w *lister) reproducibleValues(kernels []*spec.Format) {
	shapes := []shape{
		{m: 67, k: 129, n: 33, pattern: "eighth", kind: spans},
		{m: 64, k: 48, n: 24, pattern: "vec16", kind: wild, alpha: -2, beta: 0.5},
		{m: 40, k: 60, n: 21, pattern: "eighth", kind: odd},
		{m: 40, k: 60, n: 21, pattern: "eighth", kind: units}, // fewer bits than the other values need
	}
	for _, typ := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		for at, p := range precisionsT3() {
			in := kernels
			if p != spmm.AutoP && p != 23 {
				in = kernels[:min(1, len(kernels))]
			}
			for i, s := range shapes {
				l := layout{path: []string{host, tensor}[(i+at)%2], a: typ, b: typ, c: dtype.F32,
					changed: []string{fromTensor, fromHost}[i%2], turned: (i+at)%3 == 0}
				w.t3(Quick, in, typ, p, s, l)
			}
		}
	}
}

// prepareA prepares what a case multiplies with: a as it is, or with other values which are replaced by a's when the
// plan has multiplied with them. The plan is to be closed after an error, too.
func prepareA[A formats.Value](ctx context.Context, r *runner, t *test, p *instance, a *formats.CSR[A],
	o spmm.Options) (*spmm.Plan, error) {
	plan, err := spmm.Prepare(ctx, r.door, given(t, a), o)
	if err != nil || t.changed == "" {
		return plan, err
	}
	if _, err := product(ctx, r, t, p, plan); err != nil {
		return plan, err
	}
	if t.changed == fromHost {
		return plan, spmm.SetValues(ctx, plan, a.Val)
	}
	values := formats.Convert[float32](a).Val
	x, err := spmm.NewTensor[float32](r.door, 1, len(values), false)
	if err != nil {
		return plan, err
	}
	defer x.Close()
	if err := x.Upload(ctx, &formats.Dense[float32]{Rows: 1, Cols: len(values), LD: len(values),
		Data: values}); err != nil {
		return plan, err
	}
	return plan, plan.SetValues(ctx, x)
}

// given returns what a plan is prepared with: A, with other values where a's come later.
func given[A formats.Value](t *test, a *formats.CSR[A]) formats.Encoded {
	if t.changed != "" {
		a = &formats.CSR[A]{Rows: a.Rows, Cols: a.Cols, RowPtr: a.RowPtr, ColIdx: a.ColIdx, Val: otherValues[A](len(a.Val))}
	}
	return asGiven(t, a)
}

// asGiven returns A as a program would have it: for a format that takes only matrices which store every element, as a
// dense one.
func asGiven[A formats.Value](t *test, a *formats.CSR[A]) formats.Encoded {
	if t.kernel.Full {
		if d, err := a.Full(); err == nil {
			return d
		}
	}
	return a
}

// otherValues returns n values; some are as large as an element can be, some zeros.
func otherValues[A formats.Value](n int) []A {
	v := make([]A, n)
	for i := range v {
		formats.ConvertSlice(v[i:i+1], []float32{[]float32{1.5, -60000, 0, 0x1p-14, 3}[i%5]})
	}
	return v
}

// asFresh multiplies with a plan that has a's values from the start: its outputs must have the same bits.
func asFresh[A formats.Value](ctx context.Context, r *runner, t *test, p *instance, a *formats.CSR[A], o spmm.Options,
	out *outputs) error {
	fresh, err := spmm.Prepare(ctx, r.door, asGiven(t, a), o)
	if err != nil {
		return err
	}
	defer fresh.Close()
	want, err := product(ctx, r, t, p, fresh)
	if err != nil {
		return err
	}
	if err := out.differ(want); err != nil {
		return wrong{fmt.Errorf("a plan that is made with the values gives other bits: %w", err)}
	}
	return nil
}
