// Memory that is not the library's own: tensors over somebody else's memory on the device, and host memory that the
// device copies from and to by itself.

package tensor

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/memory"
)

// foreign is where a tensor over somebody else's memory lies.
type foreign struct {
	address uintptr
	ld      int
	first   int  // of 16 bits: 1 if it begins inside a word of 4 bytes, which the buffer begins with
	loose   bool // see layout
}

// Over makes a tensor of the memory at an address of the device, its rows (columns, if column-major) ld elements
// apart. Close does not free the memory.
//
// Kernels take a tensor as it lies if the address is a multiple of 16 bytes, ld one of 8 elements, and memory is
// there for ld elements of the last row (column) too; else it goes through kernel densecopy. A tensor of 16-bit
// elements at an odd multiple of 2 is read by kernels alone, see Odd.
func Over(d *device.Device, s Shape, address uintptr, ld int) (*Tensor, error) {
	t, err := tensorOver(d, s.Whole(), address, ld)
	if err != nil {
		return nil, fmt.Errorf("a tensor of %d×%d over memory at %#x: %w", s.Rows, s.Cols, address, err)
	}
	return t, nil
}

func tensorOver(d *device.Device, s Shape, address uintptr, ld int) (*Tensor, error) {
	i, ok := d.Device.(backend.Importer)
	if !ok {
		return nil, fmt.Errorf("%v takes no memory of others, CUDA devices do: %w", d.Info(), backend.ErrUnsupported)
	}
	if _, err := s.Size(); err != nil {
		return nil, err
	}
	t := &Tensor{Shape: s, device: d}
	t.idle.L = &t.mu
	l := NewLayout(s.Rows, s.Cols, s.Type, s.ColMajor)
	if l.Lines() == 0 || l.width() == 0 {
		b, err := d.NewBuffer(l.Size(), "nothing")
		t.blocks = []backend.Buffer{b}
		return t, err
	}
	if ld < l.width() {
		return nil, fmt.Errorf("a leading dimension of %d, at least %d is needed", ld, l.width())
	}
	size := int64(s.Type.Size())
	if most := d.Limit() / size; int64(ld) > most/int64(l.Lines()) {
		return nil, fmt.Errorf("%d·%d elements, and kernels count up to %d: %w", l.Lines(), ld, most, backend.ErrUnsupported)
	}
	first := 0
	if size == 2 && address%4 == 2 {
		first = 1
	}
	least := (int64(first) + int64(l.Lines()-1)*int64(ld) + int64(l.width())) * size
	b, loose, err := imported(i, address-uintptr(2*first), least, int64(l.Lines())*int64(ld)*size, first, ld)
	if err != nil {
		return nil, err
	}
	if _, ok := b.(backend.LineCopier); !ok {
		return nil, cmp.Or(fmt.Errorf("%v copies no lines: %w", d.Info(), backend.ErrUnsupported), b.Close())
	}
	t.foreign, t.blocks = &foreign{address: address, ld: ld, first: first, loose: loose}, []backend.Buffer{b}
	return t, nil
}

// Move points a tensor over somebody else's memory to other memory, in which it lies alike. Launches that were composed
// with it then use the other memory. The caller sees to it that none is being composed or submitted.
func (t *Tensor) Move(address uintptr) error {
	if t.of != nil {
		return t.of.Move(address)
	}
	if err := t.Use(); err != nil {
		return err
	}
	defer t.Release()
	if t.foreign == nil {
		return fmt.Errorf("a tensor of %d×%d has memory of its own, which cannot be moved", t.Rows, t.Cols)
	}
	if !t.foreign.loose && address%16 != 0 {
		return fmt.Errorf("a tensor over memory at a multiple of 16 cannot be moved to %#x: make another", address)
	}
	if t.foreign.first == 1 != (address%4 == 2) {
		return fmt.Errorf("a tensor over memory at %#x cannot be moved to %#x, which lies otherwise in its word of 4 bytes: make another",
			t.foreign.address, address)
	}
	m, ok := t.blocks[0].(backend.Mover)
	if !ok {
		return fmt.Errorf("%v moves no memory of others: %w", t.device.Info(), backend.ErrUnsupported)
	}
	if err := m.Move(address - uintptr(2*t.foreign.first)); err != nil {
		return fmt.Errorf("a tensor of %d×%d over memory at %#x: %w", t.Rows, t.Cols, address, err)
	}
	t.foreign.address = address
	return nil
}

// imported imports all bytes that kernels may read where they take a matrix as it lies, or else the least that the
// matrix has: then it is loose.
func imported(i backend.Importer, address uintptr, least, all int64, first, ld int) (b backend.Buffer, loose bool,
	err error) {
	if address%16 == 0 && first == 0 && ld%Align == 0 {
		if b, err := i.Import(address, all); err == nil {
			return b, false, nil
		}
	}
	b, err = i.Import(address, (least+3)&^3) // densecopy writes whole words
	return b, true, err
}

// BlockLayout returns how block (i, j) lies in its buffer.
func (t *Tensor) BlockLayout(i, j int) Layout {
	l := t.Shape.blockLayout(i, j)
	if t.foreign != nil {
		l.LD, l.First, l.Loose = t.foreign.ld, t.foreign.first, t.foreign.loose
	}
	return l
}

// Odd is an error if the tensor begins inside a word of 4 bytes: kernels read such, but what writes it, or copies it
// between the device and the host, takes whole words.
func (t *Tensor) Odd() error {
	if t.of != nil {
		return t.of.Odd()
	}
	if t.foreign == nil || t.foreign.first == 0 {
		return nil
	}
	return fmt.Errorf("a tensor of 16-bit elements at %#x can be B, a bias, X or Y of a product alone: anything else must begin at a multiple of 4: %w",
		t.foreign.address, backend.ErrUnsupported)
}

// Overlaps tells whether an element of t lies where one of o does. Columns of one row-major matrix side by side do not
// overlap, though each lies between the rows of the other; neither do rows of a column-major one.
func (t *Tensor) Overlaps(o *Tensor) bool {
	if t.foreign == nil || o.foreign == nil {
		return false
	}
	if t.foreign.address > o.foreign.address {
		t, o = o, t
	}
	pitch, width, bytes := t.extent()
	opitch, owidth, _ := o.extent()
	apart := uint64(o.foreign.address - t.foreign.address)
	if apart >= bytes {
		return false
	}
	return pitch != opitch || apart%pitch < width || apart%pitch+owidth > pitch
}

// extent returns the bytes from line to line, of a line, and of all.
func (t *Tensor) extent() (pitch, width, bytes uint64) {
	l := t.BlockLayout(0, 0)
	pitch, width = uint64(l.LD*l.Type.Size()), uint64(l.width()*l.Type.Size())
	return pitch, width, uint64(l.Lines()-1)*pitch + width
}

// AllocHost allocates the host's memory for a matrix as a tensor of the shape lies on the device, which the device
// copies from and to by itself; where it cannot, ordinary memory. It returns the leading dimension, too.
func AllocHost(d *device.Device, s Shape) (backend.HostMemory, int, error) {
	bytes, err := s.Size()
	if err != nil {
		return nil, 0, err
	}
	if most := memory.Available(); most > 0 && bytes > most {
		return nil, 0, fmt.Errorf("a matrix of %d×%d takes %d bytes, and the host has %d: %w", s.Rows, s.Cols, bytes, most,
			backend.ErrOutOfMemory)
	}
	ld := NewLayout(s.Rows, s.Cols, s.Type, s.ColMajor).LD
	if a, ok := d.Device.(backend.HostAllocator); ok && bytes > 0 {
		m, err := a.AllocHost(bytes)
		if !errors.Is(err, backend.ErrUnsupported) {
			return m, ld, err
		}
	}
	return device.NewOrdinary(bytes), ld, nil
}
