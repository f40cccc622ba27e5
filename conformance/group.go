// Cases through a group of devices: each plan and product of package spmm is one of two devices that share it.

package conformance

import (
	"context"
	"errors"
	"hash/fnv"
	"io"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
)

// grouping is another device that takes part in every product, and which way it is split.
type grouping struct {
	other backend.Device
	split spmm.Split
	every uint32 // one case of this number runs; 0: all
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
func groupA[A formats.Value](ctx context.Context, r *runner, t *test, p *instance, a *formats.CSR[A],
	o spmm.Options) (*outputs, *planInfo, error) {
	plan, err := r.devices.Prepare(ctx, given(t, a), spmm.GroupOptions{Options: o, Split: r.group.split})
	if err != nil {
		return nil, nil, err
	}
	defer plan.Close()
	info := &planInfo{variant: plan.Info().Variant}
	if t.changed != "" {
		if _, err := product(ctx, r, t, p, plan); err != nil {
			return nil, info, err
		}
		if err := spmm.SetGroupValues(ctx, plan, a.Val); err != nil {
			return nil, info, err
		}
	}
	out, err := product(ctx, r, t, p, plan)
	info.bits, info.lossless = plan.Reproduced()
	return out, info, err
}

// groupOnce multiplies data of the host, or tensors: B on the first device and C on the second, which the split moves.
func groupOnce[B, C formats.Value](ctx context.Context, r *runner, t *test, p *instance, plan *spmm.GroupPlan,
	b *formats.Dense[B], c *formats.Dense[C]) error {
	e, bias, err := groupEpilogue(ctx, r, t, p, plan)
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
	return throughTensors(ctx, p, x, b, y, c, look, func() error {
		_, err := plan.Run(ctx, p.alpha, x, p.beta, y, e)
		return err
	})
}

// groupEpilogue returns an instance's epilogue, whose bias lies on the second device, and is to be closed.
func groupEpilogue(ctx context.Context, r *runner, t *test, p *instance, plan *spmm.GroupPlan) (spmm.GroupEpilogue,
	io.Closer, error) {
	e := spmm.GroupEpilogue{Activation: spmm.Activation(p.epilogue.Activation)}
	if p.bias == nil {
		return e, io.NopCloser(nil), nil
	}
	x, rowwise, err := newBias(ctx, r, t, p, plan)
	if err != nil {
		return e, nil, err
	}
	if rowwise {
		e.RowBias = x.(spmm.GroupOperand)
	} else {
		e.ColBias = x.(spmm.GroupOperand)
	}
	return e, x, nil
}
