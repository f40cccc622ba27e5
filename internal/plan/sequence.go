// Sequences: multiplications that are recorded once and run many times, in one submission.

package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/resident"
	"github.com/spmmrun/spmm/internal/sddmm"
	"github.com/spmmrun/spmm/internal/tensor"
)

// Sequence is multiplications on one device. Each sees what those before it have written. Its methods may be
// called from any goroutine.
type Sequence struct {
	dev *device.Device

	mu        sync.Mutex
	closed    bool
	steps     []step
	launcher  *launch.Launcher  // of staging and workspaces, which all steps share
	recording backend.Recording // nil until the steps there are were recorded
	plans     []*Plan           // each once, as are the tensors
	tensors   []*tensor.Tensor
}

// step is one multiplication, new values for a plan's matrix, or a sampled product.
type step struct {
	plan   *Plan
	values *tensor.Tensor  // nil: none are set
	sample *sddmm.Operands // nil: nothing is sampled
	m      *resident.Matrix
	launch.Product
	launches []backend.Launch
	made     int // how often the launcher had replaced a buffer then
}

// NewSequence returns a sequence without multiplications.
func NewSequence(d *device.Device) *Sequence { return &Sequence{dev: d, launcher: launch.New(d)} }

// Prepared is a matrix that a sequence takes: a Plan.
type Prepared interface {
	// Single returns the plan that has all of the matrix on one device, nil if several have it.
	Single() *Plan
}

// Single returns the plan itself.
func (p *Plan) Single() *Plan { return p }

// Add appends c = alpha·A·b + beta·c, with an epilogue, where A is the plan's matrix. After an error the sequence is
// as it was.
func (s *Sequence) Add(m Prepared, alpha float64, b tensor.Operand, beta float64, c tensor.Operand,
	e launch.Epilogue) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.takes(m)
	if err != nil {
		return err
	}
	q, err := p.product(alpha, b, beta, c, e, 1)
	if err != nil {
		return err
	}
	return s.append(step{plan: p, Product: q}, q.B, q.C, q.Bias)
}

// AddValues appends Plan.SetValues from a tensor, whose elements at the time of the run are the values.
func (s *Sequence) AddValues(m Prepared, values tensor.Operand) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.takes(m)
	if err != nil {
		return err
	}
	v, err := tensor.One(values)
	if v == nil {
		return cmp.Or(err, errors.New("the tensor of values is missing"))
	}
	return s.append(step{plan: p, values: v}, v)
}

// AddSample appends Plan.Sample. X and Y are as the kernel takes them.
func (s *Sequence) AddSample(m Prepared, q Sampled) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.takes(m)
	if err != nil {
		return err
	}
	o, err := q.operands()
	if err != nil {
		return err
	}
	return s.append(step{plan: p, sample: &o}, o.Tensors()...)
}

// append adds a step that uses some tensors. After an error the sequence is as it was.
func (s *Sequence) append(x step, tensors ...*tensor.Tensor) error {
	if err := s.compose(&x); err != nil {
		return err
	}
	if err := s.forget(); err != nil {
		return err
	}
	s.steps = append(s.steps, x)
	if !slices.Contains(s.plans, x.plan) {
		s.plans = append(s.plans, x.plan)
	}
	for _, t := range tensors {
		if t != nil && !slices.Contains(s.tensors, t) {
			s.tensors = append(s.tensors, t)
		}
	}
	return nil
}

// takes returns the plan of a matrix. It refuses those that are not on the sequence's device.
func (s *Sequence) takes(m Prepared) (*Plan, error) {
	if s.closed {
		return nil, fmt.Errorf("the sequence: %w", backend.ErrClosed)
	}
	if m == nil {
		return nil, errors.New("the plan is missing")
	}
	p := m.Single()
	switch {
	case p == nil:
		return nil, fmt.Errorf("a plan on several devices in a sequence on %v", s.dev.Info())
	case p.dev != s.dev:
		return nil, fmt.Errorf("a plan on %v in a sequence on %v", p.dev.Info(), s.dev.Info())
	}
	return p, nil
}

// compose makes the launches of a step.
func (s *Sequence) compose(x *step) error {
	p := x.plan
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx := context.Background()
	if x.values != nil {
		return s.composeValues(ctx, x)
	}
	if x.sample != nil {
		return s.composeSample(ctx, x)
	}
	if err := p.begin(ctx, x.Product); err != nil {
		return err
	}
	defer x.Release()
	err := p.exec.Recordable()
	if err != nil {
		return err
	}
	if x.m, err = p.exec.Prepare(ctx, s.launcher, x.B); err != nil {
		return err
	}
	x.launches = nil
	if x.C.Rows > 0 && x.C.Cols > 0 {
		var w launch.RunList
		w, err = p.compose(s.launcher, x.m, x.Product)
		x.launches = w.Launches
	}
	x.made = s.launcher.Replaced
	return err
}

// composeSample makes the launches of a sampled product. The plan is locked.
func (s *Sequence) composeSample(ctx context.Context, x *step) error {
	o, err := x.plan.sampled(ctx, *x.sample)
	if err != nil {
		return err
	}
	if err := x.plan.sampler.Direct(o); err != nil {
		return err
	}
	if err := o.Use(); err != nil {
		return err
	}
	defer o.Release()
	x.launches, err = x.plan.sampler.Launches(o)
	x.made = s.launcher.Replaced
	return err
}

// composeValues makes the launches of a step that sets values. The plan is locked.
func (s *Sequence) composeValues(ctx context.Context, x *step) error {
	p := x.plan
	if err := p.checkValues(ctx, x.values); err != nil {
		return err
	}
	if err := x.values.Use(); err != nil {
		return err
	}
	defer x.values.Release()
	err := p.exec.Recordable()
	if err == nil {
		x.launches, err = p.exec.SetLaunches(ctx, p.given, x.values)
	}
	x.made = s.launcher.Replaced
	return err
}

// forget drops the recording, when it is not running.
func (s *Sequence) forget() error {
	if s.recording == nil {
		return nil
	}
	err := s.recording.Close()
	s.recording = nil
	return err
}

// Run runs the multiplications in the order in which they were added.
func (s *Sequence) Run(ctx context.Context) (api.Timing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(); err != nil {
		return api.Timing{}, err
	}
	t, err := s.recording.Run(ctx)
	s.release(len(s.tensors))
	return api.TimingOf(t), s.explain(err)
}

// Start is Run without the wait.
func (s *Sequence) Start(ctx context.Context) (backend.Pending, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(); err != nil {
		return nil, err
	}
	p, err := s.recording.Start(ctx)
	s.release(len(s.tensors))
	return p, s.explain(err)
}

// begin makes the recording, unless there is one, and keeps the tensors until release.
func (s *Sequence) begin() error {
	if s.closed {
		return fmt.Errorf("the sequence: %w", backend.ErrClosed)
	}
	if err := s.checkPlans(); err != nil {
		return err
	}
	for i, t := range s.tensors {
		if err := t.Use(); err != nil {
			s.release(i)
			return fmt.Errorf("a sequence with %w", err)
		}
	}
	if s.recording != nil {
		return nil
	}
	if err := s.record(); err != nil {
		s.release(len(s.tensors))
		return err
	}
	return nil
}

// release ends what begin began, for the first n tensors.
func (s *Sequence) release(n int) {
	for _, t := range s.tensors[:n] {
		t.Release()
	}
}

// checkPlans refuses to run with a plan that is closed.
func (s *Sequence) checkPlans() error {
	for _, p := range s.plans {
		if p.closed.Load() {
			return fmt.Errorf("a sequence with a plan: %w", backend.ErrClosed)
		}
	}
	return nil
}

// explain says of an error that the plan was closed, whose buffers the device has refused to use.
func (s *Sequence) explain(err error) error {
	if err == nil {
		return nil
	}
	return cmp.Or(s.checkPlans(), err)
}

// record hands the launches of all steps to the device, those anew that may hold a buffer which was replaced.
func (s *Sequence) record() error {
	for i := 0; i < len(s.steps); i++ {
		if s.steps[i].made == s.launcher.Replaced {
			continue
		}
		if err := s.compose(&s.steps[i]); err != nil {
			return err
		}
		i = -1 // the others may hold what this one has replaced
	}
	var all []backend.Launch
	for _, x := range s.steps {
		all = append(all, x.launches...)
	}
	var err error
	s.recording, err = s.dev.Record(all...)
	return err
}

// Close frees what the sequence holds on the device, when it is not running. A second call does nothing.
func (s *Sequence) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	err := s.forget()
	s.launcher.Close()
	s.steps, s.plans, s.tensors = nil, nil, nil
	return err
}
