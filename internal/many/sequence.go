// Sequences on several devices: each device runs its parts of the multiplications, which need nothing from other
// devices.

package many

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/tensor"
)

// Sequence is a sequence on each of several devices.
type Sequence struct {
	devs []*device.Device

	mu    sync.Mutex
	seqs  []*plan.Sequence
	plans []*Plan // each once, in the order of their numbers
}

// NewSequence returns a sequence without multiplications.
func NewSequence(devs []*device.Device) *Sequence {
	s := &Sequence{devs: devs}
	for _, d := range devs {
		s.seqs = append(s.seqs, plan.NewSequence(d))
	}
	return s
}

// Add appends c = alpha·A·b + beta·c, with an epilogue, for tensors that lie where the plan's split needs them: what is
// copied from device to device is not recorded. After an error the sequence is as it was.
func (s *Sequence) Add(m plan.Prepared, alpha float64, ob tensor.Operand, beta float64, oc tensor.Operand,
	e launch.Epilogue) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, is := m.(*Plan)
	switch {
	case m == nil:
		return errors.New("the plan is missing")
	case !is:
		return fmt.Errorf("a plan on %v in a sequence on several devices", m.Single().Device().Info())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b, c, err := p.operands(ob, oc)
	if err != nil {
		return err
	}
	if !slices.Equal(s.devs, b.devs) || !slices.Equal(s.devs, c.devs) || len(p.plans) != len(s.devs) ||
		p.plans[0].Device() != s.devs[0] {
		return errors.New("a plan or a tensor is on other devices")
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
					err = cmp.Or(err, q.DropLast())
				}
			}
			return named(s.devs[d], err)
		}
	}
	if at, there := slices.BinarySearchFunc(s.plans, p.number, func(p *Plan, n int64) int {
		return cmp.Compare(p.number, n)
	}); !there {
		s.plans = slices.Insert(s.plans, at, p)
	}
	return nil
}

// AddSample refuses, as Plan.Sample does.
func (s *Sequence) AddSample(plan.Prepared, plan.Sampled) error { return errSample }

// AddValues refuses: new values come from the host's memory.
func (s *Sequence) AddValues(plan.Prepared, tensor.Operand) error {
	return fmt.Errorf("new values in a sequence are for one device: set them between runs: %w", backend.ErrUnsupported)
}

// recordable returns the devices' epilogues, and refuses operands that would have to move.
func (g *Plan) recordable(b, c *Tensor, e launch.Epilogue) ([]launch.Epilogue, error) {
	n := g.columns(c)
	rowBias, err := g.tensor(e.RowBias)
	if err != nil {
		return nil, fmt.Errorf("the row bias: %w", err)
	}
	colBias, err := g.tensor(e.ColBias)
	if err != nil {
		return nil, fmt.Errorf("the column bias: %w", err)
	}
	if e.RowBias != nil && e.ColBias != nil {
		return nil, launch.ErrTwoBiases
	}
	rows, cols := roleRowBias, roleColBias
	if g.all.Right {
		rows, cols = cols, rows
	}
	for _, x := range []struct {
		what string
		t    *Tensor
		role role
	}{{"B", b, roleB}, {"C", c, roleC}, {"the row bias", rowBias, rows}, {"the column bias", colBias, cols}} {
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
		es[d] = launch.NewEpilogue(rowBias.part(d), colBias.part(d), e.Activation)
	}
	return es, nil
}

// Run runs each device's part, all at once, in the order in which multiplications were added. Values that are set
// meanwhile wait.
func (s *Sequence) Run(ctx context.Context) (api.Timing, error) {
	start := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := newTally(len(s.seqs))
	unlock, err := s.lockPlans()
	defer unlock()
	if err != nil {
		return t.Timing, err
	}
	err = together(ctx, len(s.seqs), func(ctx context.Context, d int) error {
		tm, err := s.seqs[d].Run(ctx)
		if t.Each[d] = (backend.Timing{Device: tm.Device, Host: tm.Host}); err != nil {
			return named(s.devs[d], err)
		}
		return nil
	})
	t.sum(start)
	return t.Timing, err
}

// Start starts each device's part. After an error, what has begun goes on.
func (s *Sequence) Start(ctx context.Context) (backend.Pending, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unlock, err := s.lockPlans()
	defer unlock()
	if err != nil {
		return nil, err
	}
	w := &pending{devs: s.devs}
	for d, q := range s.seqs {
		x, err := q.Start(ctx)
		if err != nil {
			return nil, named(s.devs[d], err)
		}
		w.each = append(w.each, x)
	}
	return w, nil
}

// lockPlans locks the plans, in the order of their numbers, and refuses those that cannot be multiplied with.
func (s *Sequence) lockPlans() (unlock func(), err error) {
	for i, p := range s.plans {
		p.mu.Lock()
		if err = p.usable(); err != nil {
			return s.unlocking(i + 1), fmt.Errorf("a sequence with: %w", err)
		}
	}
	return s.unlocking(len(s.plans)), nil
}

func (s *Sequence) unlocking(n int) func() {
	return func() {
		for _, p := range s.plans[:n] {
			p.mu.Unlock()
		}
	}
}

// Close frees what the sequence holds on the devices.
func (s *Sequence) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, q := range s.seqs {
		errs = append(errs, q.Close())
	}
	return cmp.Or(errs...)
}
