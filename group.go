// Several devices of one process that multiply together.

package spmm

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/values"
)

// Group is devices that multiply together, each a part of every product. Its methods may be called from any goroutine.
type Group struct{ devs []*Device }

// OpenGroup opens the devices of a list: "cuda:all" is every device of a backend, "cuda:0,1" two of them, and
// "cuda:0,vulkan:1" devices of several. A device that is named twice is opened twice, and "cpu,cpu" is two devices that
// share the processor, for tests. The caller closes the group. If one device cannot be opened, none is.
func OpenGroup(ctx context.Context, list string) (*Group, error) {
	names, err := expand(ctx, list)
	if err != nil {
		return nil, err
	}
	g := &Group{}
	for _, name := range names {
		d, err := Open(ctx, name)
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.devs = append(g.devs, d)
	}
	return g, nil
}

// expand returns the names, for Open, of the devices in a list.
func expand(ctx context.Context, list string) ([]string, error) {
	var names []string
	last := "" // the backend of the name before
	for name := range strings.SplitSeq(list, ",") {
		driver, index, indexed := strings.Cut(strings.TrimSpace(name), ":")
		if _, err := strconv.ParseUint(driver, 10, 31); err == nil && !indexed && last != "" {
			driver, index, indexed = last, driver, true
		}
		last = driver
		switch {
		case driver == "":
			return nil, fmt.Errorf("devices %q: a name is missing: want a list like cuda:all or cuda:0,1", list)
		case !indexed:
			names = append(names, driver)
			continue
		case index != "all":
			names = append(names, driver+":"+index)
			continue
		}
		drv, err := backend.Find(driver)
		if err != nil {
			return nil, err
		}
		infos, err := drv.Devices(ctx)
		if err != nil {
			return nil, named(driver, err)
		}
		for _, i := range infos {
			names = append(names, fmt.Sprintf("%s:%d", i.Backend, i.Index))
		}
	}
	return names, nil
}

// NewGroup makes a group of opened devices, which belong to it from then on. Each is in it once.
func NewGroup(devs ...*Device) (*Group, error) {
	seen := map[*device.Device]bool{}
	for _, dev := range devs {
		d, err := dev.device()
		if err != nil {
			return nil, err
		}
		if seen[d] {
			return nil, fmt.Errorf("device %s:%d is in the group twice: open it twice", d.Info().Backend, d.Info().Index)
		}
		seen[d] = true
	}
	if len(devs) == 0 {
		return nil, errors.New("a group needs at least one device")
	}
	return &Group{append([]*Device(nil), devs...)}, nil
}

// Devices returns the group's devices, in the order of the list.
func (g *Group) Devices() []*Device { return append([]*Device(nil), g.devs...) }

// Close closes the devices, with every plan and tensor on them.
func (g *Group) Close() error {
	var errs []error
	for _, d := range g.devs {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// Split is how the devices of a group share a product.
type Split = plan.Split

// The splits.
const (
	// AutoSplit takes ByColumns where A fits each device, unless ByRows is predicted to be faster by a tenth or more.
	AutoSplit = plan.AutoSplit
	// ByColumns: each device holds all of A, and multiplies it by some columns of B. Nothing moves between devices.
	ByColumns = plan.ByColumns
	// ByRows: each device holds some rows of A, about as much work as the others have, and takes all of B.
	ByRows = plan.ByRows
)

// GroupOptions say how to prepare a matrix for a group. Options.Cols is that of all of B. Options.Tune and Whole are
// refused.
type GroupOptions struct {
	Options
	Split Split
	// Memory is how many bytes may be used of each device, for A, B, C and what multiplying takes besides; 0: nine tenths of what
	// it has. (Tensors that do not lie where they are needed take more.) Where a device's rows of A do not fit beside B and C of
	// Cols columns, they stay in the host's memory, and go to the device in panels for each product, while the panel before is
	// multiplied; new values are refused then. If there is no room for Cols columns, fewer are multiplied at a time
	// (GroupInfo.Columns): MultiplyGroup takes any number, tensors must not have more.
	Memory int64
	// From says where B lies before each product, if not where it is needed: AutoSplit then counts what moving it takes, by the rate
	// of the devices' link, which is measured once.
	From Placement
}

// GroupPlan is a sparse matrix on the devices of a group. Close it to free their memory. Its methods, and MultiplyGroup with
// it, may be called from any goroutine; multiplications with one plan run one after another.
//
// In reproducible mode C has the bits that one device computes. In fast mode, on devices of one kind, it has them too with format
// csr, and on the CPU with all formats unless A is quantised: ByRows, and ByColumns with N a multiple of 128 for each device. Else
// outputs may be summed in another order: kernels of other formats depend on how many columns a launch has. So does a plan that
// streams (GroupOptions.Memory) as many columns as it takes at a time, and B that comes from other devices comes in pieces of 128.
type GroupPlan struct{ p *plan.GroupPlan }

// Prepare is the function Prepare for a group.
func (g *Group) Prepare(ctx context.Context, a formats.Encoded, o GroupOptions) (*GroupPlan, error) {
	opt, err := o.with(a)
	if err != nil {
		return nil, err
	}
	var devs []*device.Device
	for _, d := range g.devs {
		devs = append(devs, d.d)
	}
	p, err := plan.NewGroupPlan(ctx, devs, a, plan.GroupOptions{Options: opt, Split: o.Split, Memory: o.Memory, From: o.From})
	if err != nil {
		return nil, err
	}
	return &GroupPlan{p}, nil
}

// GroupInfo is what there is to know of a matrix on a group.
type GroupInfo struct {
	PlanInfo            // of all of A; format and variant are the first device's
	Split    Split      // ByColumns or ByRows
	Columns  int        // the most that tensors may have, where memory is scarce; 0: any number, as far as is known
	WhySplit string     // reads behind the word "because"
	Parts    []PlanInfo // what each device holds
}

// Info returns how the matrix is split, why, and what each device holds.
func (p *GroupPlan) Info() GroupInfo {
	whole, parts := p.p.Describe()
	i := GroupInfo{PlanInfo: PlanInfo(whole), Split: p.p.Split, Columns: p.p.Most(), WhySplit: p.p.Why}
	for _, x := range parts {
		i.Parts = append(i.Parts, PlanInfo(x))
	}
	return i
}

// Reproduced is Plan.Reproduced. With AutoP each device finds the precision that its part needs; the largest is returned.
// Where one loses nothing its outputs are correctly rounded, so that they have the same bits whichever it is.
func (p *GroupPlan) Reproduced() (precision int, correctlyRounded bool) { return p.p.Reproduced() }

// GroupTiming tells how long a multiplication took.
type GroupTiming struct {
	Timing               // Device is that of the slowest device
	Each   []Timing      // of each device; zero for one that had nothing to do
	Moved  int64         // bytes that went from one device to another
	Move   time.Duration // how long that took, by the host's clock
	// Streamed tells what copying A took, where it does not fit the devices: Device is 0 then.
	Streamed Streamed
}

// Streamed tells how products spend their time whose A stays in the host's memory: copies of its panels go on during launches with
// those before. It is the sum over devices.
type Streamed struct {
	Panels  int           // of a device, at most
	Bytes   int64         // copied to the devices
	Copy    time.Duration // what the copies took
	Compute time.Duration // what the launches took
}

// Binds names what takes longer: "link" or "compute".
func (s Streamed) Binds() string {
	if s.Copy > s.Compute {
		return "link"
	}
	return "compute"
}

func groupTiming(t plan.GroupTiming) GroupTiming {
	out := GroupTiming{Timing: Timing(t.Timing), Moved: t.Moved, Move: t.Move, Streamed: Streamed(t.Streamed)}
	for _, x := range t.Each {
		out.Each = append(out.Each, Timing(x))
	}
	return out
}

// GroupEpilogue is an Epilogue for a group: its biases, which are Epilogue's, lie on the group's devices in any way.
type GroupEpilogue struct {
	RowBias, ColBias GroupOperand
	Activation       Activation
}

func groupEpilogue(e []GroupEpilogue) (plan.GroupEpilogue, error) {
	switch len(e) {
	case 0:
		return plan.GroupEpilogue{}, nil
	case 1:
		return plan.GroupEpilogue{
			RowBias: groupTensorOf(e[0].RowBias), ColBias: groupTensorOf(e[0].ColBias), Activation: launch.Activation(e[0].Activation),
		}, nil
	}
	return plan.GroupEpilogue{}, errors.New("at most one epilogue is possible")
}

// MultiplyGroup is Multiply on a group: it computes c = alpha·A·b + beta·c for data in the host's memory. c may be b. If a
// device fails the others stop, and the error names it.
func MultiplyGroup[T, C formats.Value](ctx context.Context, p *GroupPlan, alpha float64, b *formats.Dense[T], beta float64, c *formats.Dense[C], e ...GroupEpilogue) (GroupTiming, error) {
	hb, err := host(b, "B")
	if err != nil {
		return GroupTiming{}, err
	}
	hc, err := host(c, "C")
	if err != nil {
		return GroupTiming{}, err
	}
	ep, err := groupEpilogue(e)
	if err != nil {
		return GroupTiming{}, err
	}
	t, err := p.p.Multiply(ctx, alpha, hb, beta, hc, ep)
	return groupTiming(t), err
}

// Run computes c = alpha·A·b + beta·c for tensors on the group's devices, as Plan.Run does. GroupTensorsFor makes them where the
// plan's split needs them, so that nothing moves; what lies elsewhere is copied before, and c back after: from device to device
// where these can, else through the host's memory. If a device fails the error names it.
func (p *GroupPlan) Run(ctx context.Context, alpha float64, b GroupOperand, beta float64, c GroupOperand, e ...GroupEpilogue) (GroupTiming, error) {
	return p.Repeat(ctx, 1, alpha, b, beta, c, e...)
}

// Repeat is Run a number of times back to back; what has to move does so once. It serves to measure. With a beta other than 0
// each run adds to the last one's c.
func (p *GroupPlan) Repeat(ctx context.Context, times int, alpha float64, b GroupOperand, beta float64, c GroupOperand, e ...GroupEpilogue) (GroupTiming, error) {
	ep, err := groupEpilogue(e)
	if err != nil {
		return GroupTiming{}, err
	}
	t, err := p.p.Repeat(ctx, times, alpha, groupTensorOf(b), beta, groupTensorOf(c), ep)
	return groupTiming(t), err
}

// Attainable is Plan.Attainable of the device that has the most to do, where everything lies where the split needs it.
func (p *GroupPlan) Attainable(ctx context.Context, n int, out dtype.Type) (Bound, error) {
	b, err := p.p.Attainable(ctx, n, out)
	return Bound(b), err
}

// SetGroupValues is SetValues for a group: the values of A's entries, NNZ of them in the host's memory and in the order in which A
// was given, are replaced on all devices. The pattern, how A is split and the buffers stay. Where that fails midway, some devices may have
// new values and others old ones: multiplications are refused then until a further call has set values.
func SetGroupValues[T formats.Value](ctx context.Context, p *GroupPlan, v []T) error {
	return p.p.SetHostValues(ctx, values.Host{Type: formats.TypeOf[T](), Data: backend.Bytes(v)})
}

// Close waits for the multiplication in progress and frees what the plan holds on the devices. A second call does nothing.
func (p *GroupPlan) Close() error { return p.p.Close() }
