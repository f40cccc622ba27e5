// Sequences on a group: each device runs its parts of the multiplications, which need nothing from other devices.

package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
)

// GroupSequence is a sequence on each device of a group.
type GroupSequence struct {
	devs []*device.Device

	mu    sync.Mutex
	seqs  []*Sequence
	plans []*GroupPlan // each once, in the order of their numbers
}

// NewGroupSequence returns a sequence without multiplications.
func NewGroupSequence(devs []*device.Device) *GroupSequence {
	s := &GroupSequence{devs: devs}
	for _, d := range devs {
		s.seqs = append(s.seqs, NewSequence(d))
	}
	return s
}

// Add appends c = alpha·A·b + beta·c, with an epilogue, for tensors that lie where the plan's split needs them: what is copied from
// device to device is not recorded. After an error the sequence is as it was.
func (s *GroupSequence) Add(p *GroupPlan, alpha float64, b *GroupTensor, beta float64, c *GroupTensor, e GroupEpilogue) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p == nil || b == nil || c == nil:
		return errors.New("the plan, B or C is missing")
	case b == c:
		return errors.New("B and C must be two matrices: C is written while B is read")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.usable(); err != nil {
		return err
	}
	if !slices.Equal(s.devs, b.devs) || !slices.Equal(s.devs, c.devs) || len(p.plans) != len(s.devs) || p.plans[0].dev != s.devs[0] {
		return errors.New("a plan or a tensor is on the devices of another group")
	}
	if err := p.checkTensors(b, c); err != nil {
		return err
	}
	es, err := p.recordable(b, c, e)
	if err != nil {
		return err
	}
	for d, q := range s.seqs {
		if b.parts[d] == nil || c.parts[d] == nil {
			continue
		}
		if err := q.Add(p.plans[d], alpha, b.parts[d], beta, c.parts[d], es[d]); err != nil {
			for i, q := range s.seqs[:d] {
				if b.parts[i] != nil && c.parts[i] != nil {
					err = cmp.Or(err, q.dropLast())
				}
			}
			return named(s.devs[d], err)
		}
	}
	if at, there := slices.BinarySearchFunc(s.plans, p.number, func(p *GroupPlan, n int64) int { return cmp.Compare(p.number, n) }); !there {
		s.plans = slices.Insert(s.plans, at, p)
	}
	return nil
}

// recordable returns the devices' epilogues, and refuses operands that would have to move.
func (g *GroupPlan) recordable(b, c *GroupTensor, e GroupEpilogue) ([]launch.Epilogue, error) {
	n := c.Cols
	if g.all.right {
		n = c.Rows
	}
	if g.most > 0 && n > g.most {
		return nil, g.tooMany(n)
	}
	if e.RowBias != nil && e.ColBias != nil {
		return nil, launch.ErrTwoBiases
	}
	rows, cols := roleRowBias, roleColBias
	if g.all.right {
		rows, cols = cols, rows
	}
	for _, x := range []struct {
		what string
		t    *GroupTensor
		role role
	}{{"B", b, roleB}, {"C", c, roleC}, {"the row bias", e.RowBias, rows}, {"the column bias", e.ColBias, cols}} {
		if x.t == nil {
			continue
		}
		lies, err := g.inPlace(x.role, n, x.t, b.Type, c.Type)
		if err == nil && !lies {
			_, at := g.need(x.role, n)
			err = fmt.Errorf("%s lies %v and the split by %v needs it %v: a sequence moves nothing between devices (TensorsFor makes B and C where they are needed): %w",
				x.what, x.t.At, g.Split, at, backend.ErrUnsupported)
		}
		if err != nil {
			return nil, err
		}
	}
	es := make([]launch.Epilogue, len(g.plans))
	for d := range es {
		es[d].Activation = e.Activation
		if e.RowBias != nil {
			es[d].RowBias = e.RowBias.parts[d]
		}
		if e.ColBias != nil {
			es[d].ColBias = e.ColBias.parts[d]
		}
	}
	return es, nil
}

// dropLast removes the step that was appended last.
func (s *Sequence) dropLast() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = s.steps[:len(s.steps)-1]
	return s.forget()
}

// Run runs each device's part, all at once, in the order in which multiplications were added. Values that are set meanwhile wait.
func (s *GroupSequence) Run(ctx context.Context) (GroupTiming, error) {
	start := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := newGroupTiming(len(s.seqs))
	for _, p := range s.plans {
		p.mu.Lock()
		defer p.mu.Unlock()
		if err := p.usable(); err != nil {
			return t, fmt.Errorf("a sequence with: %w", err)
		}
	}
	err := together(ctx, len(s.seqs), func(ctx context.Context, d int) (err error) {
		if t.Each[d], err = s.seqs[d].Run(ctx); err != nil {
			return named(s.devs[d], err)
		}
		return nil
	})
	t.sum(start)
	return t, err
}

// Close frees what the sequence holds on the devices.
func (s *GroupSequence) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, q := range s.seqs {
		errs = append(errs, q.Close())
	}
	return cmp.Or(errs...)
}
