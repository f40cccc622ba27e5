// Dense matrices on several devices: in parts, or all of it on each device or on one.

package many

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/tensor"
)

// Placement says where a matrix lies on several devices.
type Placement int

// The placements.
const (
	InPlace    Placement = -iota // where it is needed
	Replicated                   // all of it on each device
	ByColumn                     // some columns on each device
	ByRow                        // some rows on each device
)

// On is all of the matrix on device i. Where i is negative it is no place.
func On(i int) Placement {
	if i < 0 {
		return nowhere
	}
	return Placement(i + 1)
}

const nowhere = ByRow - 1

func (p Placement) String() string {
	switch p {
	case InPlace:
		return "in place"
	case Replicated:
		return "replicated"
	case ByColumn:
		return "columns"
	case ByRow:
		return "rows"
	case nowhere:
		return "on a device before the first"
	}
	return fmt.Sprintf("on device %d", int(p)-1)
}

// check refuses a placement that these devices cannot have.
func (p Placement) check(devices int) error {
	if p < ByRow || int(p) > devices {
		return fmt.Errorf("placement %v: there are %d devices", p, devices)
	}
	return nil
}

// named refuses what is no place, or none in particular.
func (p Placement) named(devices int) error {
	if p == InPlace {
		return errors.New("say where the tensor is to lie; TensorsFor makes B and C where they are needed")
	}
	return p.check(devices)
}

// box is rows r0 to r1-1 and columns c0 to c1-1 of a matrix.
type box struct{ r0, r1, c0, c1 int }

func (b box) empty() bool { return b.r0 >= b.r1 || b.c0 >= b.c1 }

func (b box) and(x box) box {
	return box{max(b.r0, x.r0), min(b.r1, x.r1), max(b.c0, x.c0), min(b.c1, x.c1)}
}

// Tensor is a dense matrix on several devices, row-major. Each device has a box of it, or none. Its contents
// are undefined until they are written.
type Tensor struct {
	tensor.Shape // of all of it
	At           Placement
	devs         []*device.Device
	boxes        []box
	parts        []*tensor.Tensor // nil for a device that has none
	alone        bool             // it is a Tensor of one device, of any layout
}

// tensor returns an operand as a tensor on the plan's devices, nil for none.
func (g *Plan) tensor(o tensor.Operand) (*Tensor, error) {
	switch t := o.(type) {
	case nil:
		return nil, nil
	case *Tensor:
		return t, nil
	case *tensor.Tensor:
		if len(g.plans) == 1 {
			return &Tensor{
				Shape: t.Shape, At: On(0), devs: []*device.Device{t.Device()}, boxes: []box{{0, t.Rows, 0, t.Cols}},
				parts: []*tensor.Tensor{t}, alone: true,
			}, nil
		}
	}
	return nil, errors.New("a tensor lies on one device by itself, and the plan is on several (TensorsFor makes tensors on these)")
}

// part returns what a device has, nil if that is nothing, or if there is no tensor.
func (t *Tensor) part(d int) *tensor.Tensor {
	if t == nil {
		return nil
	}
	return t.parts[d]
}

// operand is the tensor as the plan's callers have it.
func (g *Plan) operand(t *Tensor) tensor.Operand {
	if g.alone {
		return t.parts[0]
	}
	return t
}

// NewReplicated allocates a row-major tensor, all of it on each of several devices.
func NewReplicated(devs []*device.Device, s tensor.Shape) (*Tensor, error) {
	if s.ColMajor {
		return nil, fmt.Errorf("a column-major tensor is for one device, not for %d: %w", len(devs), backend.ErrUnsupported)
	}
	if _, err := s.Size(); err != nil {
		return nil, err
	}
	return newTensor(devs, s, Replicated, slices.Repeat([]box{{0, s.Rows, 0, s.Cols}}, len(devs)),
		func(d int, part tensor.Shape) (tensor.Shape, error) {
			return fitting(devs[d], part)
		})
}

// NewTensor allocates a tensor on the plan's devices. Parts are cut as the plan cuts B and C of that size.
func (g *Plan) NewTensor(s tensor.Shape, at Placement) (tensor.Operand, error) {
	if err := at.named(len(g.plans)); err != nil {
		return nil, err
	}
	if _, err := s.Size(); err != nil {
		return nil, err
	}
	devs := g.devs()
	t, err := newTensor(devs, s, at, g.boxes(s, at), func(d int, part tensor.Shape) (tensor.Shape, error) {
		return fitting(devs[d], part)
	})
	if err != nil {
		return nil, err
	}
	return g.operand(t), nil
}

// TensorsFor allocates B and C for products by n columns (rows, with A on the right), each part where the split needs
// it.
func (g *Plan) TensorsFor(n int, b, c dtype.Type) (tensor.Operand, tensor.Operand, error) {
	var ts [2]*Tensor
	if err := tensor.CheckDim(n, g.all.Counted()); err != nil {
		return nil, nil, err
	}
	if g.most > 0 && n > g.most {
		return nil, nil, g.tooMany(n)
	}
	for i, t := range []dtype.Type{b, c} {
		t, err := g.tensorFor(role(i), n, t, b, c)
		if err != nil {
			if ts[0] != nil {
				ts[0].Close()
			}
			return nil, nil, err
		}
		ts[i] = t
	}
	return g.operand(ts[0]), g.operand(ts[1]), nil
}

// newTensor allocates the parts of a tensor; as says how one lies in blocks.
func newTensor(devs []*device.Device, s tensor.Shape, at Placement, boxes []box,
	as func(d int, part tensor.Shape) (tensor.Shape, error)) (*Tensor, error) {
	t := &Tensor{Shape: s, At: at, devs: devs, boxes: boxes, parts: make([]*tensor.Tensor, len(devs))}
	for d, dev := range devs {
		x := boxes[d]
		if idle(d, boxes) {
			continue
		}
		part, err := as(d, tensor.Shape{Rows: x.r1 - x.r0, Cols: x.c1 - x.c0, Type: s.Type})
		if err == nil {
			t.parts[d], err = tensor.New(dev, part)
		}
		if err != nil {
			return nil, cmp.Or(named(dev, err), t.Close())
		}
	}
	return t, nil
}

// idle tells whether a device has no part, while others have one. Of a matrix without elements, those have a part that
// have some of its columns or rows: products with a B of no rows have a C.
func idle(d int, boxes []box) bool {
	x := boxes[d]
	switch {
	case !x.empty():
		return false
	case slices.ContainsFunc(boxes, func(x box) bool { return !x.empty() }):
		return true
	}
	return d > 0 && x.r0 >= x.r1 && x.c0 >= x.c1
}

// boxes returns what each device has of a matrix.
func (g *Plan) boxes(s tensor.Shape, at Placement) []box {
	whole := box{0, s.Rows, 0, s.Cols}
	out := make([]box, len(g.plans))
	n := s.Cols
	if at == ByRow {
		n = s.Rows
	}
	var cuts []int
	if at == ByRow || at == ByColumn {
		cuts = g.cuts(n, (at == ByRow) != g.all.Right)
	}
	for d := range out {
		switch {
		case at == Replicated || at == On(d):
			out[d] = whole
		case at == ByRow:
			out[d] = box{cuts[d], cuts[d+1], 0, s.Cols}
		case at == ByColumn:
			out[d] = box{0, s.Rows, cuts[d], cuts[d+1]}
		}
	}
	return out
}

// cuts cuts n rows, as the plan sees them, or columns for the devices.
func (g *Plan) cuts(n int, rows bool) []int {
	if rows && g.Split == api.ByRows && n == g.all.Rows {
		return g.bounds
	}
	return cutColumns(n, g.weights)
}

// role says which operand of a product a matrix is.
type role int

const (
	roleB role = iota
	roleC
	roleRowBias // C's rows × 1
	roleColBias // 1 × C's columns
)

// need returns the shape of what takes part in products by n columns, and where the split needs it.
func (g *Plan) need(r role, n int) (tensor.Shape, Placement) {
	s, at := tensor.Shape{Rows: g.all.Cols, Cols: n}, ByColumn
	switch {
	case r == roleC:
		s.Rows = g.all.Rows
	case r == roleRowBias:
		s.Rows, s.Cols = g.all.Rows, 1
	case r == roleColBias:
		s.Rows = 1
	}
	switch byRows := r == roleC || r == roleRowBias; {
	case g.Split == api.ByRows && byRows:
		at = ByRow
	case g.Split == api.ByRows || r == roleRowBias:
		at = Replicated
	}
	if g.all.Right {
		s, at = s.Transposed(), at.transposed()
	}
	return s, at
}

// tensorFor allocates B, C or a bias where the split needs it; b and c are the types of B and C.
func (g *Plan) tensorFor(r role, n int, t, b, c dtype.Type) (*Tensor, error) {
	s, at := g.need(r, n)
	s.Type = t
	return newTensor(g.devs(), s, at, g.boxes(s, at), func(d int, part tensor.Shape) (tensor.Shape, error) {
		return g.shape(d, r, part, b, c)
	})
}

// transposed returns the place of the transpose.
func (p Placement) transposed() Placement {
	switch p {
	case ByColumn:
		return ByRow
	case ByRow:
		return ByColumn
	}
	return p
}

// shape returns how device d's part lies in blocks.
func (g *Plan) shape(d int, r role, part tensor.Shape, b, c dtype.Type) (tensor.Shape, error) {
	if r > roleC {
		return part, nil
	}
	n := part.Cols
	if g.all.Right {
		n = part.Rows
	}
	sb, sc, err := g.plans[d].Shapes(n, b, false, c, false)
	if r == roleC {
		return sc, err
	}
	return sb, err
}

// fitting returns a shape in blocks of rows that the device can bind.
func fitting(dev *device.Device, s tensor.Shape) (tensor.Shape, error) {
	row := tensor.Up(int64(s.Cols), tensor.Align) * int64(s.Type.Size())
	if most := dev.Limit() / max(1, row); int64(s.Rows) > most {
		if most == 0 {
			return s, fmt.Errorf("a row of %d columns exceeds a buffer: %w", s.Cols, backend.ErrUnsupported)
		}
		s.RowBlock = int(most)
	}
	return s, nil
}

// use keeps the blocks of all parts until release.
func (t *Tensor) use() error {
	for d, p := range t.parts {
		if p == nil {
			continue
		}
		if err := p.Use(); err != nil {
			t.releaseFirst(d)
			return named(t.devs[d], err)
		}
	}
	return nil
}

func (t *Tensor) release() { t.releaseFirst(len(t.parts)) }

func (t *Tensor) releaseFirst(n int) {
	for _, p := range t.parts[:n] {
		if p != nil {
			p.Release()
		}
	}
}

// Close frees the tensor's parts, waiting for calls that use them. A second call does nothing.
func (t *Tensor) Close() error {
	var errs []error
	for _, p := range t.parts {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return cmp.Or(errs...)
}

// Write copies a host matrix of the same size and type to the devices, to all at once.
func (t *Tensor) Write(ctx context.Context, h tensor.Host) error { return t.host(ctx, h, true) }

// Read copies the tensor to the host's matrix; what lies on every device is read from one.
func (t *Tensor) Read(ctx context.Context, h tensor.Host) error { return t.host(ctx, h, false) }

func (t *Tensor) host(ctx context.Context, h tensor.Host, write bool) error {
	return together(ctx, len(t.parts), func(ctx context.Context, d int) error {
		p, x := t.parts[d], t.boxes[d]
		if p == nil || x.empty() || !write && t.At == Replicated && d > 0 {
			return nil
		}
		part := h
		part.Data = h.Data[h.Offset(x.r0, x.c0)*t.Type.Size():]
		var err error
		if write {
			err = p.Write(ctx, part)
		} else {
			err = p.Read(ctx, part)
		}
		if err != nil {
			return named(t.devs[d], err)
		}
		return nil
	})
}
