// What some devices can do besides (see backend.Importer and the others): those that can, do it right.

package backendtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"github.com/spmmrun/spmm/backend"
)

var extending = []subtest{
	{"copies lines", copiesLines},
	{"lines out of range", linesOutOfRange},
	{"cancelled copy of lines", cancelledLines},
	{"copies from other devices", copiesFromPeers},
	{"writes aside", writesAside},
	{"host memory", hostMemory},
	{"imports nothing", importsNothing},
	{"streams", streams},
	{"shares its memory", shares},
}

// copiesLines copies lines to a buffer and back, with and without gaps on either side, from memory of Go's and of the
// device's own.
func copiesLines(t *testing.T, r *rig) {
	for _, l := range []backend.Lines{
		{Off: 0, Pitch: 8, HostPitch: 8, Width: 8, Count: 3}, // no gaps
		{Off: 4, Pitch: 16, HostPitch: 12, Width: 12, Count: 5},
		{Off: 3, Pitch: 10, HostPitch: 7, Width: 6, Count: 7}, // no words
		{Off: 0, Pitch: 7, HostPitch: 20, Width: 7, Count: 4},
		{Off: 8, Pitch: 24, HostPitch: 24, Width: 20, Count: 6}, // the same gaps
		{Off: 0, Pitch: 64, HostPitch: 64, Width: 2, Count: 100},
		{Off: 5, Pitch: 1, HostPitch: 1, Width: 1, Count: 1},
		{Off: 0, Pitch: 1_000_001, HostPitch: 1_000_000, Width: 1_000_000, Count: 11},
		{Off: 4, Pitch: 40_000, HostPitch: 40_000, Width: 33_333, Count: 300},
		{Off: 4, Pitch: 5_000_003, HostPitch: 9_000_000, Width: 5_000_003, Count: 3}, // lines wider than a staging block
		{Off: 0, Pitch: 9_000_000, HostPitch: 5_000_004, Width: 4_500_001, Count: 2},
		{Off: 2, Pitch: 10, HostPitch: 10, Width: 10, Count: 0},
	} {
		b, ok := r.alloc(t, extent(l.Off, l.Pitch, l)+5).(backend.LineCopier)
		if !ok {
			return
		}
		n := int(extent(0, l.HostPitch, l))
		t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) { copyLines(t, b, l, make([]byte, n), make([]byte, n)) })
		if h, ok := r.dev.(backend.HostAllocator); ok && n > 0 {
			from, to := allocHost(t, h, n), allocHost(t, h, n)
			t.Run(fmt.Sprintf("%+v of the device's host memory", l), func(t *testing.T) { copyLines(t, b, l, from, to) })
		}
		b.Close()
	}
}

// extent is the number of bytes from 0 to the end of the last line.
func extent(off, pitch int64, l backend.Lines) int64 {
	if l.Count == 0 {
		return off
	}
	return off + int64(l.Count-1)*pitch + l.Width
}

func copyLines(t *testing.T, b backend.LineCopier, l backend.Lines, from, to []byte) {
	copy(from, pattern(len(from), 1))
	copy(to, pattern(len(to), 77))
	want := slices.Clone(to)
	for i := range l.Count {
		at := int64(i) * l.HostPitch
		copy(want[at:][:l.Width], from[at:])
	}
	if err := b.WriteLines(t.Context(), l, from); err != nil {
		t.Fatal(err)
	}
	if err := b.ReadLines(t.Context(), l, to); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if to[i] != want[i] {
			t.Fatalf("byte %d of line %d is %d, want %d", int64(i)%l.HostPitch, int64(i)/l.HostPitch, to[i], want[i])
		}
	}
}

func linesOutOfRange(t *testing.T, r *rig) {
	const size = 1000
	b, ok := r.alloc(t, size).(backend.LineCopier)
	if !ok {
		return
	}
	p := make([]byte, size)
	for _, l := range []backend.Lines{
		{Off: -4, Pitch: 8, HostPitch: 8, Width: 8, Count: 1},
		{Off: 0, Pitch: 8, HostPitch: 8, Width: -8, Count: 1},
		{Off: 0, Pitch: 8, HostPitch: 8, Width: 8, Count: -1},
		{Off: 0, Pitch: 4, HostPitch: 8, Width: 8, Count: 2},
		{Off: 0, Pitch: 8, HostPitch: 4, Width: 8, Count: 2},
		{Off: 0, Pitch: 100, HostPitch: 10, Width: 10, Count: 11},
		{Off: 0, Pitch: 10, HostPitch: 100, Width: 10, Count: 11},
		{Off: 996, Pitch: 8, HostPitch: 8, Width: 8, Count: 1},
		{Off: 1 << 62, Pitch: 8, HostPitch: 8, Width: 8, Count: 1},
		{Off: 0, Pitch: 1 << 62, HostPitch: 8, Width: 8, Count: 5},
		{Off: 0, Pitch: 8, HostPitch: 8, Width: 8, Count: 1 << 30},
	} {
		checkError(t, b.WriteLines(t.Context(), l, p), fmt.Sprintf("WriteLines(%+v)", l))
		checkError(t, b.ReadLines(t.Context(), l, p), fmt.Sprintf("ReadLines(%+v)", l))
	}
	r.works(t)
}

func cancelledLines(t *testing.T, r *rig) {
	b, ok := r.alloc(t, 1<<20).(backend.LineCopier)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l, p := backend.Lines{Pitch: 1024, HostPitch: 1000, Width: 1000, Count: 1000}, make([]byte, 1<<20)
	for _, err := range []error{b.WriteLines(ctx, l, p), b.ReadLines(ctx, l, p)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the context's error", err)
		}
	}
	r.works(t)
}

func allocHost(t *testing.T, h backend.HostAllocator, n int) []byte {
	t.Helper()
	m, err := h.AllocHost(int64(n))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	if len(m.Bytes()) != n {
		t.Fatalf("AllocHost(%d) has %d bytes", n, len(m.Bytes()))
	}
	return m.Bytes()
}

// hostMemory copies from and to the device's host memory, part by part too, and outlives the device.
func hostMemory(t *testing.T, r *rig) {
	h, ok := r.dev.(backend.HostAllocator)
	if !ok {
		return
	}
	for _, size := range []int64{0, -1} {
		_, err := h.AllocHost(size)
		checkError(t, err, fmt.Sprintf("AllocHost(%d)", size))
	}
	const size = 9<<20 + 12
	b, want := r.alloc(t, size), pattern(size, 3)
	from, to := allocHost(t, h, size), allocHost(t, h, size)
	copy(from, want)
	copyIn(t, b, 0, from)
	if err := b.Read(t.Context(), 0, to); err != nil || !bytes.Equal(to, want) {
		t.Errorf("read back differently (%v)", err)
	}
	copy(from[100:], pattern(80_000, 4))
	copyIn(t, b, 4000, from[100:80_100])
	copy(want[4000:], from[100:80_100])
	if got := copyOut(t, b, 0, size); !bytes.Equal(got, want) {
		t.Error("a part is read back differently")
	}
	outlives(t, r)
}

// outlives closes a device before its host memory.
func outlives(t *testing.T, r *rig) {
	d, err := r.drv.Open(t.Context(), r.info)
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.(backend.HostAllocator).AllocHost(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	p := m.Bytes()
	for i := range p {
		p[i] = byte(i)
	}
	for range 2 {
		if err := m.Close(); err != nil {
			t.Errorf("Close after the device's: %v", err)
		}
	}
	r.works(t)
}

// importsNothing refuses what is no memory of the device.
func importsNothing(t *testing.T, r *rig) {
	i, ok := r.dev.(backend.Importer)
	if !ok {
		return
	}
	p := make([]byte, 64)
	for _, c := range []struct {
		address uintptr
		bytes   int64
	}{{0, 64}, {4096, 0}, {4096, -4}, {4098, 64}, {^uintptr(0) &^ 3, 64}, {4096, 64},
		{uintptr(unsafe.Pointer(&p[0])), 64}} {
		_, err := i.Import(c.address, c.bytes)
		checkError(t, err, fmt.Sprintf("Import(%#x, %d)", c.address, c.bytes))
	}
	r.works(t)
}

// streams has the device work on its own stream and the default one, enqueues launches to that, and refuses wrong
// launches and a closed device.
func streams(t *testing.T, r *rig) {
	s, ok := r.dev.(backend.Streamer)
	if !ok {
		return
	}
	if err := s.UseStream(t.Context(), backend.OwnStream); err != nil {
		t.Error(err)
	}
	r.works(t)
	const n = 64
	k, a, b := r.load(t, "step"), r.upload(t, ramp(n)), r.alloc(t, 4*n)
	ls, want := steps(k, a, b, n, 200)
	if captured, err := s.Enqueue(0, ls...); captured || err != nil {
		t.Errorf("Enqueue: captured %t, %v", captured, err)
	}
	equalWords(t, "200 enqueued launches", read(t, a, n), want)
	if err := s.UseStream(t.Context(), 0); err != nil {
		t.Error(err)
	}
	Write(t, a, ramp(n))
	r.start(t, ls[:100]...)
	if err := s.UseStream(t.Context(), backend.OwnStream); err != nil {
		t.Error(err)
	}
	r.start(t, ls[100:]...) // after what was started in the other stream
	equalWords(t, "launches started in two streams", read(t, a, n), want)
	bad := ls[0]
	bad.Params = nil
	_, err := s.Enqueue(0, ls[0], bad)
	checkError(t, err, "Enqueue of a launch without parameters")
	_, err = s.Enqueue(backend.OwnStream, ls[0])
	checkError(t, err, "Enqueue to the device's own stream")
	equalWords(t, "after launches that were refused", read(t, a, n), want)
	d, err := r.drv.Open(t.Context(), r.info)
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	checkError(t, d.(backend.Streamer).UseStream(t.Context(), backend.OwnStream), "UseStream of a closed device")
	_, err = d.(backend.Streamer).Enqueue(0)
	checkError(t, err, "Enqueue of a closed device")
}

// copiesFromPeers copies lines from buffers of the device itself, of the same device opened again, and of the next one.
func copiesFromPeers(t *testing.T, r *rig) {
	const size = 1 << 20
	to, ok := r.alloc(t, size).(backend.PeerCopier)
	if !ok {
		return
	}
	if to.CanCopyFrom(nil) {
		t.Error("it copies from no buffer")
	}
	infos, err := r.drv.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	devs := []backend.Device{r.dev}
	for _, i := range []backend.Info{r.info, infos[(r.info.Index+1)%len(infos)]} {
		d, err := r.drv.Open(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		devs = append(devs, d)
	}
	for i, d := range devs {
		from, err := d.Alloc(size)
		if err != nil {
			t.Fatal(err)
		}
		if !to.CanCopyFrom(from) {
			continue
		}
		what := fmt.Sprintf("device %d", i)
		if err := from.Write(t.Context(), 0, pattern(size, byte(i))); err != nil {
			t.Fatal(err)
		}
		for _, l := range []backend.PeerLines{
			{Pitch: size, SrcPitch: size, Width: size, Count: 1},
			{Off: 8, Pitch: 100, SrcOff: 4, SrcPitch: 96, Width: 92, Count: 1000},
			{Off: 0, Pitch: 64, SrcOff: 128, SrcPitch: 64, Width: 64, Count: 1000},
			{Off: 4, Pitch: 8, SrcOff: 4, SrcPitch: 400, Width: 3, Count: 2},
			{Off: 16, Pitch: 8, SrcOff: 4, SrcPitch: 400, Width: 8, Count: 0},
		} {
			copyFromPeer(t, what, to, from, l)
		}
		for _, l := range []backend.PeerLines{
			{Off: 4, Pitch: size, SrcPitch: size, Width: size, Count: 1},
			{SrcOff: 4, Pitch: size, SrcPitch: size, Width: size, Count: 1},
			{Pitch: 4, SrcPitch: 8, Width: 8, Count: 2}, {Pitch: 8, SrcPitch: 8, Width: -1, Count: 2},
			{Pitch: 8, SrcPitch: 8, Width: 8, Count: -1},
		} {
			checkError(t, to.CopyFrom(t.Context(), from, l), fmt.Sprintf("%s, lines out of range: %+v", what, l))
			checkError(t, to.CopyFromAside(t.Context(), from, l), fmt.Sprintf("%s, aside, lines out of range: %+v", what, l))
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		one := backend.PeerLines{Pitch: 8, SrcPitch: 8, Width: 8, Count: 1}
		checkError(t, to.CopyFrom(done, from, one), what+", cancelled", context.Canceled)
		if err := from.Close(); err != nil {
			t.Error(err)
		}
		checkError(t, to.CopyFrom(t.Context(), from, one), what+", a closed buffer", backend.ErrClosed)
		checkError(t, to.CopyFromAside(t.Context(), from, one), what+", aside, a closed buffer", backend.ErrClosed)
	}
	r.works(t)
}

func copyFromPeer(t *testing.T, what string, to backend.PeerCopier, from backend.Buffer, l backend.PeerLines) {
	t.Helper()
	want, src, got := pattern(int(to.Size()), 99), make([]byte, from.Size()), make([]byte, to.Size())
	if err := errors.Join(to.Write(t.Context(), 0, want), from.Read(t.Context(), 0, src)); err != nil {
		t.Fatal(err)
	}
	for i := range int64(l.Count) {
		copy(want[l.Off+i*l.Pitch:][:l.Width], src[l.SrcOff+i*l.SrcPitch:])
	}
	begun := pattern(int(to.Size()), 99)
	for name, copies := range map[string]func(context.Context, backend.Buffer,
		backend.PeerLines) error{"CopyFrom": to.CopyFrom, "CopyFromAside": to.CopyFromAside} {
		if err := to.Write(t.Context(), 0, begun); err != nil {
			t.Fatal(err)
		}
		if err := copies(t.Context(), from, l); err != nil {
			t.Errorf("%s, %s, %+v: %v", name, what, l, err)
			return
		}
		if err := to.Read(t.Context(), 0, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s, %s, %+v: other bytes, or %v", name, what, l, err)
		}
	}
}

// shares says where buffers lie, and makes streams for others.
func shares(t *testing.T, r *rig) {
	d, ok := r.dev.(backend.Sharer)
	if !ok {
		return
	}
	again, err := r.drv.Open(t.Context(), r.info)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	one, err := d.Unique()
	two, err2 := again.(backend.Sharer).Unique()
	if err != nil || err2 != nil || one != two || one == [16]byte{} {
		t.Errorf("%x and %x, %v, %v: want what no other device has", one, two, err, err2)
	}
	want := pattern(4096, 3)
	a, b := r.alloc(t, 4096), r.alloc(t, 4096)
	if err := b.Write(t.Context(), 0, want); err != nil {
		t.Fatal(err)
	}
	at, err := d.Address(b)
	other, err2 := d.Address(a)
	if err != nil || err2 != nil || at == other {
		t.Fatalf("%#x and %#x, %v, %v", at, other, err, err2)
	}
	if i, ok := r.dev.(backend.Importer); ok {
		same, err := i.Import(at, 4096)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 4096)
		if err := same.Read(t.Context(), 0, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("another buffer lies there: %v", err)
		}
		same.Close()
	}
	a.Close()
	if _, err := d.Address(a); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("the address of a closed buffer: %v", err)
	}
	if _, err := again.(backend.Sharer).Address(b); err == nil {
		t.Error("the address of another device's buffer")
	}
	ours := errors.New("ours")
	if err := d.Within(func() error { return ours }); err != ours {
		t.Errorf("Within: %v", err)
	}
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	if done, err := s.Done(); !done || err != nil || s.Handle() == 0 {
		t.Errorf("an empty stream %#x: done %t, %v", s.Handle(), done, err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// writesAside writes a buffer while a kernel runs that does not use it, from memory of Go's and of the device's own.
func writesAside(t *testing.T, r *rig) {
	const size = 20<<20 + 12
	b, ok := r.alloc(t, size).(backend.SideWriter)
	if !ok {
		return
	}
	sources := [][]byte{make([]byte, size)}
	if h, ok := r.dev.(backend.HostAllocator); ok {
		sources = append(sources, allocHost(t, h, size))
	}
	for i, p := range sources {
		copy(p, pattern(size, byte(i+1)))
		for range 3 {
			if err := b.Write(t.Context(), 0, make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			var run errgroup.Group
			run.Go(func() error { return b.WriteAside(t.Context(), 8, p[8:]) })
			r.works(t)
			if err := run.Wait(); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, size)
			if err := b.Read(t.Context(), 0, got); err != nil || !bytes.Equal(got[8:], p[8:]) ||
				!bytes.Equal(got[:8], make([]byte, 8)) {
				t.Errorf("memory %d: other bytes, or %v", i, err)
			}
		}
	}
	checkError(t, b.WriteAside(t.Context(), 16, sources[0]), "out of range")
	done, cancel := context.WithCancel(t.Context())
	cancel()
	checkError(t, b.WriteAside(done, 0, sources[0]), "cancelled", context.Canceled)
	b.Close()
	checkError(t, b.WriteAside(t.Context(), 0, sources[0]), "a closed buffer", backend.ErrClosed)
}
