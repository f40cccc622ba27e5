// Sequences of multiplications on a group.

package spmm

import (
	"context"

	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/plan"
)

// GroupSequence is a Sequence on each device of a group. Its methods may be called from any goroutine; runs follow each other.
type GroupSequence struct{ s *plan.GroupSequence }

// NewSequence returns a sequence without multiplications.
func (g *Group) NewSequence() *GroupSequence {
	var devs []*device.Device
	for _, d := range g.devs {
		devs = append(devs, d.d)
	}
	return &GroupSequence{plan.NewGroupSequence(devs)}
}

// Add appends c = alpha·A·b + beta·c, as Sequence.Add does. Operands lie where the plan's split needs them, as those that
// GroupTensorsFor makes: nothing is copied from device to device during a sequence. So ByColumns the C of one multiplication can be the
// B of the next, and ByRows, where B is on all devices and C in rows, it cannot. After an error the sequence is as it was.
func (s *GroupSequence) Add(p *GroupPlan, alpha float64, b GroupOperand, beta float64, c GroupOperand, e ...GroupEpilogue) error {
	ep, err := groupEpilogue(e)
	if err != nil {
		return err
	}
	var q *plan.GroupPlan
	if p != nil {
		q = p.p
	}
	return s.s.Add(q, alpha, groupTensorOf(b), beta, groupTensorOf(c), ep)
}

// Run runs the multiplications in the order in which they were added, on all devices at once. After an error, which a cancelled
// context is too, the contents of what they write are undefined.
func (s *GroupSequence) Run(ctx context.Context) (GroupTiming, error) {
	t, err := s.s.Run(ctx)
	return groupTiming(t), err
}

// Close frees what the sequence holds on the devices, when it is not running; plans and tensors stay. A second call does nothing.
func (s *GroupSequence) Close() error { return s.s.Close() }
