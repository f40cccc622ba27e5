// What some devices and buffers can do besides: interfaces that callers look for, and do without where they are not
// there.

package backend

import (
	"context"
	"fmt"
	"math"
)

// Importer is a Device whose kernels also run on memory that the program allocated.
type Importer interface {
	// Import returns a buffer of this size at an address of the device, a multiple of 4. The memory still belongs to its
	// owner: it must outlive the buffer, and Close of the buffer, which waits until the device is idle, does not free it.
	// It is an error if the device has no such memory at these addresses.
	Import(address uintptr, bytes int64) (Buffer, error)
}

// Mover is a Buffer from Import that can be pointed elsewhere.
type Mover interface {
	Buffer
	// Move makes the buffer the memory of the same size at another address, which Import would take. Launches that were
	// submitted keep the old memory, later ones use the new; recordings of it may be either. It waits for nothing, and
	// memory of an allocation that was checked before is not checked again.
	Move(address uintptr) error
}

// Streamer is a Device that can submit its work to a stream (a queue of the API) that the program made.
type Streamer interface {
	// UseStream submits all further work to the stream of that handle, in order with its owner's work there, and after
	// what was submitted before; OwnStream is the device's own. The stream must outlive its use.
	UseStream(ctx context.Context, stream uintptr) error
	// Enqueue submits launches to the stream of that handle, in order with its owner's work there, and returns: it waits
	// for nothing, times nothing and allocates nothing. It may be called while the stream captures a graph, and tells
	// whether it does. Work of two streams is in no order but that of their owners. Run, Read, Write and Close of a buffer
	// wait for what was enqueued, except for launches of captured graphs: their buffers must stay open.
	Enqueue(stream uintptr, launches ...Launch) (captured bool, err error)
}

// OwnStream is the stream that a device has made for itself, for UseStream. 0 is the API's default stream.
const OwnStream = ^uintptr(0)

// Sharer is a Device whose memory other libraries of its API, such as NCCL, can use in streams of their own.
type Sharer interface {
	// Unique returns 16 bytes that identify the device among all devices on all machines.
	Unique() ([16]byte, error)
	// Address returns the address of a buffer of the device. It is valid until the buffer is closed.
	Address(b Buffer) (uintptr, error)
	// Within calls f on a thread on which the device's context is current.
	Within(f func() error) error
	// NewStream makes a stream with priority over the device's own.
	NewStream() (Stream, error)
}

// Stream is a queue of a device's API for the work of other libraries. It is not the device's own queue.
type Stream interface {
	// Handle is its handle in the API.
	Handle() uintptr
	// Done reports whether all work submitted to it is done, or why it failed.
	Done() (bool, error)
	// Close frees the stream. A second call does nothing.
	Close() error
}

// HostAllocator is a Device that allocates page-locked host memory. It copies between such memory and buffers without
// the CPU.
type HostAllocator interface {
	// AllocHost returns host memory of this size with undefined contents. With it as p, Buffer.Write and Buffer.Read are
	// as fast as the bus.
	AllocHost(bytes int64) (HostMemory, error)
}

// HostMemory is host memory that a device allocated. It is not garbage collected.
type HostMemory interface {
	Bytes() []byte
	// Close frees the memory: nobody may touch it from then on. A second call does nothing. Close of the device
	// leaves it as it is.
	Close() error
}

// LineCopier is a Buffer that copies lines at regular distances.
type LineCopier interface {
	Buffer
	// WriteLines copies the lines from p to the buffer, ReadLines copies them back. Between the lines p is unchanged, and
	// so is an imported buffer; in other buffers these bytes become undefined.
	WriteLines(ctx context.Context, l Lines, p []byte) error
	ReadLines(ctx context.Context, l Lines, p []byte) error
}

// Lines says which bytes are copied: Count lines of Width bytes. Line i is at offset Off + i·Pitch of the buffer and at
// offset i·HostPitch of the host memory.
type Lines struct {
	Off, Pitch, HostPitch, Width int64
	Count                        int
}

// SideWriter is a Buffer that can be written while launches run, if they do not use it.
type SideWriter interface {
	Buffer
	// WriteAside is Write, but it neither waits for launches nor makes them wait. Nothing may use the buffer meanwhile.
	WriteAside(ctx context.Context, off int64, p []byte) error
}

// PeerCopier is a Buffer that copies from buffers of other devices of its backend, and of its own device, without the
// host's memory.
type PeerCopier interface {
	Buffer
	// CanCopyFrom reports whether the buffer can copy from src.
	CanCopyFrom(src Buffer) bool
	// CopyFrom copies lines of src after all that was started on both devices, and returns when they are copied. Nobody
	// may write src meanwhile. The lines of a buffer must not overlap those of the same buffer.
	CopyFrom(ctx context.Context, src Buffer, l PeerLines) error
	// CopyFromAside is CopyFrom, but it may run at the same time as started launches of both devices, which must not touch
	// these lines. It may also wait for them.
	CopyFromAside(ctx context.Context, src Buffer, l PeerLines) error
}

// PeerLines says which bytes are copied from one buffer to another: Count lines of Width bytes. Line i is at offset Off
// + i·Pitch of the buffer that is written, and at SrcOff + i·SrcPitch of the one that is read.
type PeerLines struct {
	Off, Pitch, SrcOff, SrcPitch, Width int64
	Count                               int
}

// Check checks that the lines are inside buffers of these sizes, and that they do not overlap.
func (l PeerLines) Check(size, srcSize int64) error {
	to := Lines{Off: l.Off, Pitch: l.Pitch, HostPitch: l.Pitch, Width: l.Width, Count: l.Count}
	from := Lines{Off: l.SrcOff, Pitch: l.SrcPitch, HostPitch: l.SrcPitch, Width: l.Width, Count: l.Count}
	if err := to.Check(size, math.MaxInt); err != nil {
		return err
	}
	return from.Check(srcSize, math.MaxInt)
}

// Check checks that the lines are inside a buffer of size bytes and host memory of n bytes, and that they do not
// overlap.
func (l Lines) Check(size int64, n int) error {
	if l.Off < 0 || l.Width < 0 || l.Count < 0 || l.Pitch < l.Width || l.HostPitch < l.Width {
		return fmt.Errorf("%d lines of %d bytes, %d apart from %d on, %d apart on the host: not possible", l.Count, l.Width, l.Pitch, l.Off, l.HostPitch)
	}
	if l.Count == 0 || l.Width == 0 {
		return nil
	}
	for _, s := range []struct {
		what             string
		off, pitch, size int64
	}{{"a buffer", l.Off, l.Pitch, size}, {"the host's memory", 0, l.HostPitch, int64(n)}} {
		if more := int64(l.Count - 1); s.off > s.size || l.Width > s.size-s.off || more > 0 &&
			s.pitch > (s.size-s.off-l.Width)/more {
			return fmt.Errorf("%d lines of %d bytes, %d apart from %d on, are outside %s of %d bytes", l.Count, l.Width, s.pitch, s.off, s.what, s.size)
		}
	}
	return nil
}

// CheckAddress refuses memory that no device can import: an empty range, a part of a word, an end past the last
// address.
func CheckAddress(address uintptr, bytes int64) error {
	switch {
	case bytes <= 0:
		return fmt.Errorf("memory of %d bytes: the size must be positive", bytes)
	case address == 0:
		return fmt.Errorf("memory at address 0")
	case address%4 != 0:
		return fmt.Errorf("memory at address %#x: it must be a multiple of 4", address)
	case uint64(address) > math.MaxUint64-uint64(bytes):
		return fmt.Errorf("%d bytes at address %#x: there are no such addresses", bytes, address)
	}
	return nil
}
