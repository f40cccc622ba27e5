// Products that are computed in a sequence of multiplications.

package conformance

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// sequence5 adds what came with version 5 of the suite: products in a sequence, whose digests are those of Plan.Run.
func (w *lister) sequence5(t target) {
	in := t.prec.Storage()
	row := layout{path: sequence, a: in, b: in, c: dtype.F32}
	s := shape{m: 67, k: 129, n: 33, pattern: "eighth", alpha: -2, beta: 0.5}
	w.add(Quick, t, MixedSign, s, row)
	w.add(Quick, t, MixedSign, shape{m: 150, k: 400, n: 31, pattern: "ragged"}, row)
	s.kind = narrow
	w.add(Quick, t, MixedSign, s, layout{path: sequence, a: in, b: in, c: dtype.F16, bcol: true, ccol: true, pad: true})
	w.add(Quick, t, NonFinite, nonFiniteShapes[1], row)
	w.add(Quick, t, General, generalShapes[3], row)
}

// reproducibleSequence5 adds the same in reproducible mode, at every precision that can be recorded.
func (w *lister) reproducibleSequence5(kernels []*spec.Format) {
	s := shape{m: 67, k: 129, n: 33, pattern: "eighth", kind: spans, alpha: -2, beta: 0.5}
	for i, typ := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		for at, p := range precisionsT3() {
			if p == spmm.AutoP {
				continue
			}
			in := kernels
			if p != 23 {
				in = kernels[:min(1, len(kernels))]
			}
			w.t3(Quick, in, typ, p, s, layout{path: sequence, a: typ, b: typ, c: dtype.F32, bcol: (i+at)%2 == 1, ccol: (i+at)%3 == 1})
		}
	}
}

// inSequence computes a product as the third of four multiplications. The second and the fourth use the plan's staging
// and workspaces for other products; the first makes B, where that is exact, by the identity. The sequence runs as a
// list, then as a recording that is awaited later, then as one; Plan.Run comes last, and all must give the same bits.
func inSequence[B, C formats.Value](ctx context.Context, dev *spmm.Device, plan *spmm.Plan, t *test, p *instance, e spmm.Epilogue, b *formats.Dense[B], c *formats.Dense[C], look func() error) (err error) {
	var open closers
	defer func() { err = errors.Join(err, open.close()) }()
	in, err := twoLike(dev, b, &open)
	if err != nil {
		return err
	}
	out, err := twoLike(dev, c, &open)
	if err != nil {
		return err
	}
	given, x, y, other := in[0], in[1], out[0], out[1]
	s := dev.NewSequence()
	open = append(open, s)
	made := t.class == MixedSign // numbers that no device changes: no subnormal ones, no zeros with a sign that counts
	if made {
		one, err := spmm.Prepare(ctx, dev, identity[B](p.k), spmm.Options{Format: "csr"})
		if err != nil {
			return err
		}
		open = append(open, one)
		if err := s.Add(one, 1, given, 0, x); err != nil {
			return err
		}
	}
	err = errors.Join(s.Add(plan, 3, x, 0, other), s.Add(plan, p.alpha, x, p.beta, y, e), s.Add(plan, -1, x, 1, other))
	if err != nil {
		return err
	}
	before, first := slices.Clone(c.Data), []byte(nil)
	for round := range 4 {
		copy(c.Data, before)
		if err := upload(ctx, given, x, b, made && round < 3); err != nil {
			return err
		}
		if p.c != nil {
			if err := y.Upload(ctx, c); err != nil {
				return err
			}
		}
		switch round {
		case 1:
			err = startAndWait(ctx, s)
		case 3:
			_, err = plan.Run(ctx, p.alpha, x, p.beta, y, e)
		default:
			_, err = s.Run(ctx)
		}
		if err != nil {
			return err
		}
		if err := y.Download(ctx, c); err != nil {
			return err
		}
		switch got := backend.Bytes(c.Data); {
		case first == nil:
			first = slices.Clone(got)
		case !bytes.Equal(got, first):
			return wrong{[]error{nil, errors.New("a sequence that is started leaves other bits"),
				errors.New("a sequence that runs again leaves other bits"), errors.New("Plan.Run leaves other bits than a sequence")}[round]}
		}
	}
	return look()
}

// closers are closed in the opposite order.
type closers []io.Closer

func (cs closers) close() (err error) {
	for _, c := range slices.Backward(cs) {
		err = errors.Join(err, c.Close())
	}
	return err
}

// twoLike returns two tensors of a matrix's shape, which open closes.
func twoLike[T formats.Value](dev *spmm.Device, d *formats.Dense[T], open *closers) (two [2]*spmm.Tensor[T], err error) {
	for i := range two {
		if two[i], err = spmm.NewTensor[T](dev, d.Rows, d.Cols, d.ColMajor); err != nil {
			return two, err
		}
		*open = append(*open, two[i])
	}
	return two, nil
}

// upload makes x, or what x is made of, B; then x is NaN.
func upload[B formats.Value](ctx context.Context, given, x *spmm.Tensor[B], b *formats.Dense[B], made bool) error {
	if !made {
		return x.Upload(ctx, b)
	}
	junk := *b
	junk.Data = make([]B, len(b.Data))
	mem := backend.Bytes(junk.Data)
	copy(mem, filled(len(mem)))
	return errors.Join(given.Upload(ctx, b), x.Upload(ctx, &junk))
}

func startAndWait(ctx context.Context, s *spmm.Sequence) error {
	p, err := s.Start(ctx)
	if err != nil {
		return err
	}
	_, err = p.Wait(ctx)
	return err
}

// identity is the identity matrix of n rows.
func identity[T formats.Value](n int) *formats.CSR[T] {
	a := &formats.CSR[float32]{Rows: n, Cols: n, RowPtr: make([]int64, n+1)}
	for i := range n {
		a.RowPtr[i+1] = int64(i + 1)
		a.ColIdx, a.Val = append(a.ColIdx, int32(i)), append(a.Val, 1)
	}
	return formats.Convert[T](a)
}
