// Cases through a group of devices: each plan and product of package spmm is one of two devices that share it.

package conformance

import (
	"context"
	"errors"
	"hash/fnv"
	"io"
	"slices"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/spec"
)

// grouping is another device that takes part in every product, and which way it is split.
type grouping struct {
	other backend.Device
	split spmm.Split
	every uint32 // one case of so many runs; 0: all
}

// forGroup returns the cases that a group runs: those that go to a kernel's table go through package spmm, too.
func (g *grouping) forGroup(tests []test) []test {
	var out []test
	seen := map[string]bool{}
	for _, t := range tests {
		if t.changed != "" && t.changed != fromHost || t.path == direct && t.class == Reproducible {
			continue // a group takes new values from the host alone, and kernel rfx is run by itself
		}
		if t.path == direct {
			t.path = host
		}
		h := fnv.New32a()
		io.WriteString(h, t.id())
		if id := t.id(); !seen[id] && (g.every == 0 || h.Sum32()%g.every == 0) {
			seen[id] = true
			out = append(out, t)
		}
	}
	return out
}

// groupA multiplies by MultiplyGroup or by GroupPlan.Run.
func groupA[A formats.Value](ctx context.Context, r *runner, t *test, p *instance, a *formats.CSR[A], o spmm.Options) (*outputs, *planInfo, error) {
	given := asGiven(t, a)
	if t.changed != "" {
		given = asGiven(t, &formats.CSR[A]{Rows: a.Rows, Cols: a.Cols, RowPtr: a.RowPtr, ColIdx: a.ColIdx, Val: otherValues[A](len(a.Val))})
	}
	plan, err := r.devices.Prepare(ctx, given, spmm.GroupOptions{Options: o, Split: r.group.split})
	if err != nil {
		return nil, nil, err
	}
	defer plan.Close()
	info := &planInfo{variant: plan.Info().Variant}
	if t.changed != "" {
		if _, err := groupPlan(ctx, r, t, p, plan); err != nil {
			return nil, info, err
		}
		if err := spmm.SetGroupValues(ctx, plan, a.Val); err != nil {
			return nil, info, err
		}
	}
	out, err := groupPlan(ctx, r, t, p, plan)
	info.bits, info.lossless = plan.Reproduced()
	return out, info, err
}

func groupPlan(ctx context.Context, r *runner, t *test, p *instance, plan *spmm.GroupPlan) (*outputs, error) {
	switch t.b {
	case dtype.F16:
		return groupB[half.F16](ctx, r, t, p, plan)
	case dtype.BF16:
		return groupB[half.BF16](ctx, r, t, p, plan)
	case dtype.F64:
		return groupB[float64](ctx, r, t, p, plan)
	}
	return groupB[float32](ctx, r, t, p, plan)
}

func groupB[B formats.Value](ctx context.Context, r *runner, t *test, p *instance, plan *spmm.GroupPlan) (*outputs, error) {
	b := place[B](p.b, t.bcol, t.pad)
	switch t.c {
	case dtype.F16:
		return groupC[B, half.F16](ctx, r, t, p, plan, b)
	case dtype.BF16:
		return groupC[B, half.BF16](ctx, r, t, p, plan, b)
	case dtype.F64:
		return groupC[B, float64](ctx, r, t, p, plan, b)
	}
	return groupC[B, float32](ctx, r, t, p, plan, b)
}

// groupC multiplies twice, and wants the same bits.
func groupC[B, C formats.Value](ctx context.Context, r *runner, t *test, p *instance, plan *spmm.GroupPlan, b *formats.Dense[B]) (*outputs, error) {
	var outs []*outputs
	for range 2 {
		before := p.c
		if before == nil {
			before = formats.NewDense[float64](p.m, p.n)
		}
		c := place[C](before, t.ccol, t.pad)
		mem := backend.Bytes(c.Data)
		if p.c == nil { // it must not be read
			copy(mem, filled(len(mem)))
		}
		kept, b := slices.Clone(mem), b
		if t.right {
			b, c = b.Transpose(), c.Transpose()
		}
		if err := groupOnce(ctx, r, t, p, plan, b, c); err != nil {
			return nil, err
		}
		width := c.Cols
		if c.ColMajor {
			width = c.Rows
		}
		if err := samePadding(t.c, width, max(1, c.LD), kept, mem); err != nil {
			return nil, err
		}
		outs = append(outs, collect(t.c, p.m, p.n, c.LD, c.ColMajor != t.right, mem))
	}
	return outs[0], alike(outs[0], outs[1])
}

// groupOnce multiplies data of the host, or tensors: B on the first device and C on the second, which the split moves.
func groupOnce[B, C formats.Value](ctx context.Context, r *runner, t *test, p *instance, plan *spmm.GroupPlan, b *formats.Dense[B], c *formats.Dense[C]) error {
	e, bias, err := groupEpilogue(ctx, t, p, plan)
	if err != nil {
		return err
	}
	defer bias.Close()
	look := func() error { return errors.Join(r.dev.intact(ctx), r.second.intact(ctx)) }
	if t.path == host {
		if _, err = spmm.MultiplyGroup(ctx, plan, p.alpha, b, p.beta, c, e); err != nil {
			return err
		}
		return look()
	}
	x, err := spmm.NewGroupTensor[B](plan, b.Rows, b.Cols, spmm.On(0))
	if err != nil {
		return err
	}
	defer x.Close()
	y, err := spmm.NewGroupTensor[C](plan, c.Rows, c.Cols, spmm.On(1))
	if err != nil {
		return err
	}
	defer y.Close()
	if err := x.Upload(ctx, b); err != nil {
		return err
	}
	if p.c != nil {
		if err := y.Upload(ctx, c); err != nil {
			return err
		}
	}
	if _, err := plan.Run(ctx, p.alpha, x, p.beta, y, e); err != nil {
		return err
	}
	if err := y.Download(ctx, c); err != nil {
		return err
	}
	return look()
}

// groupEpilogue returns an instance's epilogue, whose bias lies on the second device, and is to be closed.
func groupEpilogue(ctx context.Context, t *test, p *instance, plan *spmm.GroupPlan) (spmm.GroupEpilogue, io.Closer, error) {
	e := spmm.GroupEpilogue{Activation: spmm.Activation(p.epilogue.Activation)}
	if p.bias == nil {
		return e, io.NopCloser(nil), nil
	}
	d := formats.NewDense[float64](1, len(p.bias))
	rowwise := (p.epilogue.Bias == spec.RowBias) != t.right
	if rowwise {
		d = formats.NewDense[float64](len(p.bias), 1)
	}
	copy(d.Data, p.bias)
	var x spmm.GroupOperand
	var closer io.Closer
	var err error
	switch t.bias {
	case dtype.F16:
		x, closer, err = groupBias[half.F16](ctx, plan, d)
	case dtype.BF16:
		x, closer, err = groupBias[half.BF16](ctx, plan, d)
	case dtype.F64:
		x, closer, err = groupBias[float64](ctx, plan, d)
	default:
		x, closer, err = groupBias[float32](ctx, plan, d)
	}
	if rowwise {
		e.RowBias = x
	} else {
		e.ColBias = x
	}
	return e, closer, err
}

func groupBias[T formats.Value](ctx context.Context, plan *spmm.GroupPlan, d *formats.Dense[float64]) (spmm.GroupOperand, io.Closer, error) {
	x, err := spmm.NewGroupTensor[T](plan, d.Rows, d.Cols, spmm.On(1))
	if err != nil {
		return nil, nil, err
	}
	return x, x, x.Upload(ctx, formats.ConvertDense[T](d))
}
