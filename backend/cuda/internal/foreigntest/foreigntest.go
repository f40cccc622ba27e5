//go:build cuda && cgo && linux && (amd64 || arm64)

package foreigntest

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/cuda"
	"github.com/spmmrun/spmm/backend/cuda/internal/driver"
)

// Run tests the driver's first device.
func Run(t *testing.T, drv backend.Driver) {
	for _, s := range []struct {
		name string
		run  func(*testing.T, backend.Driver)
	}{
		{"memory of the primary context", primaryMemory},
		{"memory that cannot be imported", refusedMemory},
		{"a context of one's own", ownContext},
		{"streams", streams},
		{"page-locked memory", pageLocked},
	} {
		t.Run(s.name, func(t *testing.T) { s.run(t, drv) })
	}
}

// device is the part of backend.Device that kernels need, with the extensions.
type device interface {
	backend.Device
	backend.Importer
	backend.Streamer
	backend.HostAllocator
}

func open(t *testing.T, drv backend.Driver) device {
	t.Helper()
	d, err := drv.Open(t.Context(), backend.Info{Backend: "cuda"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, d.Close()) })
	return d.(device)
}

// must ends the test at an error of the caller's own CUDA.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// inPrimary makes the first device's primary context current until the test ends.
func inPrimary(t *testing.T) {
	t.Helper()
	dev, err := cu.GetDevice(0)
	must(t, err)
	ctx, err := dev.RetainPrimaryCtx()
	must(t, err)
	enter(t, ctx)
	t.Cleanup(func() { must(t, dev.ReleasePrimaryCtx()) })
}

// enter makes a context current until the test ends.
func enter(t *testing.T, ctx cu.CUContext) {
	t.Helper()
	runtime.LockOSThread()
	must(t, cu.PushCurrentCtx(ctx))
	t.Cleanup(func() {
		_, err := cu.PopCurrentCtx()
		runtime.UnlockOSThread()
		must(t, err)
	})
}

func alloc(t *testing.T, bytes int) cu.DevicePtr {
	t.Helper()
	p, err := cu.MemAlloc(int64(bytes))
	must(t, err)
	return p
}

// peek reads device memory by the caller's own CUDA.
func peek(t *testing.T, p cu.DevicePtr, bytes int) []byte {
	t.Helper()
	host, err := driver.HostAlloc(bytes)
	must(t, err)
	defer cu.MemFreeHost(unsafe.Pointer(&host[0]))
	must(t, cu.MemcpyDtoH(unsafe.Pointer(&host[0]), p, int64(bytes)))
	return slices.Clone(host)
}

func pattern(n int, seed byte) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i*7+i>>8) ^ seed
	}
	return p
}

// recordPTX writes the grid, the block and the dynamic shared memory of its launch to dst.
const recordPTX = `.version 7.0
.target sm_75
.address_size 64
.visible .entry record(.param .u64 dst)
{
    .reg .b64 d;
    .reg .b32 x;
    ld.param.u64 d, [dst];
    cvta.to.global.u64 d, d;
    mov.u32 x, %nctaid.x;
    st.global.u32 [d], x;
    mov.u32 x, %nctaid.y;
    st.global.u32 [d+4], x;
    mov.u32 x, %nctaid.z;
    st.global.u32 [d+8], x;
    mov.u32 x, %ntid.x;
    st.global.u32 [d+12], x;
    mov.u32 x, %ntid.y;
    st.global.u32 [d+16], x;
    mov.u32 x, %ntid.z;
    st.global.u32 [d+20], x;
    mov.u32 x, %dynamic_smem_size;
    st.global.u32 [d+24], x;
    ret;
}
`

// recording is a launch of that kernel on a buffer, and what it writes there.
func recording(t *testing.T, d backend.Device, b backend.Buffer) (backend.Launch, []byte) {
	t.Helper()
	k, err := d.Load(backend.Binary{Name: "test/record", Kind: backend.CodePTX, Code: []byte(recordPTX), Entry: "record",
		Args: 1, Local: [3]uint32{4, 2, 1}, Shared: 64})
	must(t, err)
	t.Cleanup(func() { k.Close() })
	return backend.Launch{Kernel: k, Groups: [3]uint32{3, 2, 1}, Args: []backend.Buffer{b}},
		slices.Clone(backend.Bytes([]uint32{3, 2, 1, 4, 2, 1, 64}))
}

// record launches, and returns what was written.
func record(t *testing.T, d backend.Device, b backend.Buffer) []byte {
	t.Helper()
	l, wrote := recording(t, d, b)
	_, err := d.Run(t.Context(), l)
	must(t, err)
	return wrote
}

// imported opens a device, and imports memory of its primary context.
func imported(t *testing.T, drv backend.Driver, bytes int) (device, cu.DevicePtr, backend.Buffer) {
	t.Helper()
	d := open(t, drv)
	inPrimary(t)
	p := alloc(t, bytes)
	b, err := d.Import(p.Uintptr(), int64(bytes))
	must(t, err)
	return d, p, b
}

// Memory that the program allocated is read, written and used by kernels, and stays its own.
func primaryMemory(t *testing.T, drv backend.Driver) {
	const size = 9 << 20
	d, p, whole := imported(t, drv, size)
	want := pattern(size, 1)
	must(t, whole.Write(t.Context(), 0, want))
	part, err := d.Import(p.Uintptr()+16, 1000)
	must(t, err)
	if part.Size() != 1000 {
		t.Errorf("%d bytes are imported", part.Size())
	}
	copy(want[16:], record(t, d, part))
	if got := peek(t, p, size); !bytes.Equal(got, want) {
		t.Error("the memory has other contents than were written to it")
	}
	got := make([]byte, size)
	if err := whole.Read(t.Context(), 0, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the contents are read differently (%v)", err)
	}
	gaps(t, whole.(backend.LineCopier), want)
	for range 2 {
		must(t, whole.Close())
		must(t, part.Close())
	}
	if err := part.Write(t.Context(), 0, make([]byte, 4)); err == nil {
		t.Error("a buffer is written after Close")
	}
	if got := peek(t, p, size); !bytes.Equal(got, want) {
		t.Error("Close has changed the memory")
	}
	must(t, cu.MemFree(p))
}

// gaps writes lines, of ordinary and of page-locked memory: what lies between them stays.
func gaps(t *testing.T, b backend.LineCopier, want []byte) {
	t.Helper()
	locked, err := driver.HostAlloc(len(want))
	must(t, err)
	defer cu.MemFreeHost(unsafe.Pointer(&locked[0]))
	for i, l := range []backend.Lines{
		{Off: 8, Pitch: 64, HostPitch: 64, Width: 40, Count: 1000},
		{Off: 4, Pitch: 1 << 20, HostPitch: 100_000, Width: 100_000, Count: 9},
		{Off: 0, Pitch: 4_500_000, HostPitch: 4_400_000, Width: 4_400_000, Count: 2},
		{Off: 100, Pitch: 1001, HostPitch: 1001, Width: 999, Count: 2000},
	} {
		for _, host := range [][]byte{make([]byte, len(want)), locked} {
			copy(host, pattern(len(host), byte(2*i)))
			must(t, b.WriteLines(t.Context(), l, host))
			for k := range int64(l.Count) {
				copy(want[l.Off+k*l.Pitch:][:l.Width], host[k*l.HostPitch:])
			}
			got := make([]byte, len(want))
			must(t, b.Read(t.Context(), 0, got))
			if !bytes.Equal(got, want) {
				t.Fatalf("%+v: other bytes have changed", l)
			}
		}
	}
}

func refusedMemory(t *testing.T, drv backend.Driver) {
	d := open(t, drv)
	inPrimary(t)
	p := alloc(t, 4096)
	host, err := driver.HostAlloc(4096)
	must(t, err)
	for _, c := range []struct {
		address uintptr
		bytes   int64
		want    string
	}{
		{p.Uintptr(), 1 << 50, "are allocated there"},
		{p.Uintptr() + 2, 64, "must be a multiple of 4"},
		{uintptr(unsafe.Pointer(&host[0])), 64, "is the host's"},
		{64, 64, "no memory of CUDA's"},
	} {
		b, err := d.Import(c.address, c.bytes)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d bytes at %#x: %v, want %q", c.bytes, c.address, err, c.want)
		}
		if err == nil {
			b.Close()
		}
	}
	must(t, cu.MemFreeHost(unsafe.Pointer(&host[0])))
	must(t, cu.MemFree(p))
	if n, err := cu.NumDevices(); err != nil || n < 2 {
		return
	}
	second, err := cu.GetDevice(1)
	must(t, err)
	ctx, err := second.RetainPrimaryCtx()
	must(t, err)
	must(t, cu.PushCurrentCtx(ctx))
	p = alloc(t, 4096)
	if _, err := d.Import(p.Uintptr(), 4096); err == nil || !strings.Contains(err.Error(), "is on device 1") {
		t.Errorf("memory of another device: %v", err)
	}
	must(t, cu.MemFree(p))
	_, err = cu.PopCurrentCtx()
	must(t, err)
	must(t, second.ReleasePrimaryCtx())
}

// A device on a context that the program made takes its memory and no other's, and leaves it when it is closed.
func ownContext(t *testing.T, drv backend.Driver) {
	first := open(t, drv)
	dev, err := cu.GetDevice(0)
	must(t, err)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := dev.MakeContext(cu.SchedAuto) // and makes it current
	must(t, err)
	p := alloc(t, 4096)
	if _, err := first.Import(p.Uintptr(), 4096); err == nil || !strings.Contains(err.Error(), "another context") {
		t.Errorf("memory of another context: %v", err)
	}
	opened, err := cuda.OpenContext(t.Context(), cuda.ContextOf(own))
	must(t, err)
	d := opened.(device)
	if d.Info() != first.Info() {
		t.Errorf("the device is %v, want %v", d.Info(), first.Info())
	}
	b, err := d.Import(p.Uintptr(), 4096)
	must(t, err)
	want := pattern(4096, 5)
	must(t, b.Write(t.Context(), 0, want))
	copy(want, record(t, d, b))
	h, err := d.AllocHost(1 << 16)
	must(t, err)
	must(t, h.Close())
	for range 2 {
		must(t, d.Close())
	}
	if got := peek(t, p, 4096); !bytes.Equal(got, want) {
		t.Error("the memory has other contents after Close of the device")
	}
	must(t, cu.MemFree(p))
	_, err = cu.PopCurrentCtx()
	must(t, err)
	must(t, own.Destroy())
	if _, err := cuda.OpenContext(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "spmm.Open") {
		t.Errorf("a context of handle 0: %v", err)
	}
}

// Work goes to the stream that was asked for, after what its owner has submitted there and not awaited.
func streams(t *testing.T, drv backend.Driver) {
	const size = 1 << 20
	d, p, b := imported(t, drv, size)
	host, err := driver.HostAlloc(size)
	must(t, err)
	s, err := cu.MakeStream(cu.NonBlocking)
	must(t, err)
	for i, c := range []struct {
		stream cu.Stream
		handle uintptr
	}{{s, cuda.StreamOf(s)}, {cu.NoStream, cuda.LegacyStream}, {s, cuda.StreamOf(s)}} {
		must(t, d.UseStream(t.Context(), c.handle))
		want := pattern(size, byte(10+i))
		copy(host, want)
		must(t, cu.MemcpyHtoDAsync(p, unsafe.Pointer(&host[0]), size, c.stream))
		got := make([]byte, size)
		must(t, b.Read(t.Context(), 0, got))
		if !bytes.Equal(got, want) {
			t.Errorf("stream %d: what the caller submitted before is not seen", i)
		}
		must(t, cu.MemcpyHtoDAsync(p, unsafe.Pointer(&host[0]), size, c.stream))
		copy(want, record(t, d, b))
		if got := peek(t, p, size); !bytes.Equal(got, want) {
			t.Errorf("stream %d: a kernel ran too early", i)
		}
	}
	follows(t, d, b, p, s)
	enqueued(t, d, b, p, s)
	must(t, d.UseStream(t.Context(), backend.OwnStream))
	must(t, s.Synchronize())
	must(t, s.Destroy())
	must(t, b.Write(t.Context(), 0, pattern(size, 20))) // on the device's own again
	if err := d.UseStream(t.Context(), driver.PerThreadStream); err == nil {
		t.Error("the stream of each thread is taken")
	}
	must(t, b.Close())
	must(t, cu.MemFreeHost(unsafe.Pointer(&host[0])))
	must(t, cu.MemFree(p))

	dev, err := cu.GetDevice(0)
	must(t, err)
	own, err := dev.MakeContext(cu.SchedAuto)
	must(t, err)
	s, err = cu.MakeStream(cu.NonBlocking)
	must(t, err)
	if err := d.UseStream(t.Context(), cuda.StreamOf(s)); err == nil || !strings.Contains(err.Error(), "another context") {
		t.Errorf("a stream of another context: %v", err)
	}
	must(t, s.Destroy())
	_, err = cu.PopCurrentCtx()
	must(t, err)
	must(t, own.Destroy())
}

// follows copies from p, the memory of b, by the device's stream s, after launches that were started and not awaited:
// the copy sees what they write.
func follows(t *testing.T, d device, b backend.Buffer, p cu.DevicePtr, s cu.Stream) {
	t.Helper()
	l, want := recording(t, d, b)
	again, err := d.Record(l)
	must(t, err)
	defer again.Close()
	host, err := driver.HostAlloc(len(want))
	must(t, err)
	defer cu.MemFreeHost(unsafe.Pointer(&host[0]))
	for i, start := range []func() (backend.Pending, error){
		func() (backend.Pending, error) { return d.Start(t.Context(), l) },
		func() (backend.Pending, error) { return again.Start(t.Context()) },
		func() (backend.Pending, error) { return again.Start(t.Context()) }, // prepared by now
	} {
		must(t, b.Write(t.Context(), 0, make([]byte, len(want))))
		pending, err := start()
		must(t, err)
		must(t, cu.MemcpyDtoHAsync(unsafe.Pointer(&host[0]), p, int64(len(want)), s))
		must(t, s.Synchronize())
		if !bytes.Equal(host, want) {
			t.Errorf("start %d: what was submitted next did not see it", i)
		}
		_, err = pending.Wait(t.Context())
		must(t, err)
	}
}

// What is enqueued to a stream is in order with its owner's copies, at the address that the buffer was moved to.
func enqueued(t *testing.T, d device, b backend.Buffer, p cu.DevicePtr, s cu.Stream) {
	t.Helper()
	l, want := recording(t, d, b)
	other, err := cu.MemAlloc(b.Size())
	must(t, err)
	m := b.(backend.Mover)
	must(t, m.Move(uintptr(other)))
	if captured, err := d.Enqueue(cuda.StreamOf(s), l); captured || err != nil {
		t.Errorf("Enqueue: captured %t, %v", captured, err)
	}
	host, err := driver.HostAlloc(len(want))
	must(t, err)
	defer cu.MemFreeHost(unsafe.Pointer(&host[0]))
	must(t, cu.MemcpyDtoHAsync(unsafe.Pointer(&host[0]), other, int64(len(want)), s))
	must(t, s.Synchronize())
	if !bytes.Equal(host, want) {
		t.Error("what was enqueued was not seen in its stream, at the address that the buffer was moved to")
	}
	if m.Move(4) == nil {
		t.Error("a buffer was moved where there is no memory")
	}
	must(t, m.Move(uintptr(p)))
	must(t, cu.MemFree(other))
}

// Page-locked memory that the program made is copied as any other.
func pageLocked(t *testing.T, drv backend.Driver) {
	d := open(t, drv)
	inPrimary(t)
	for _, size := range []int{4, 16 << 10, 100_004, 5 << 20, 130 << 20} { // the last in several chunks
		host, err := driver.HostAlloc(size)
		must(t, err)
		b, err := d.Alloc(int64(size))
		must(t, err)
		want := pattern(size, byte(size))
		copy(host, want)
		must(t, b.Write(t.Context(), 0, host))
		clear(host)
		must(t, b.Read(t.Context(), 0, host))
		if !bytes.Equal(host, want) {
			t.Errorf("%d bytes are read back differently", size)
		}
		must(t, b.Close())
		must(t, cu.MemFreeHost(unsafe.Pointer(&host[0])))
	}
}
