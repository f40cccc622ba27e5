// Launches on the fake driver: what reaches it, batches in flight, cancellation, a device lost.

//go:build cuda && cgo && linux && (amd64 || arm64)

package faketest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
)

// The grid, the workgroup and its shared memory reach the driver as they are.
func TestLaunchGeometry(t *testing.T) {
	d := open(t)
	r := bin("record", 1, 0)
	r.Local, r.Shared = [3]uint32{8, 4, 2}, 100_000
	k, b := backendtest.Load(t, d, r), backendtest.Alloc(t, d, 28)
	l := launch(k, b)
	l.Groups = [3]uint32{7, 6, 5}
	if _, err := d.Run(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if got, want := words(t, b, 7), []uint32{7, 6, 5, 8, 4, 2, 100_000}; !slices.Equal(got, want) {
		t.Errorf("launched %d, want %d", got, want)
	}
}

// Kernels of one function may ask for more and less shared memory; none lowers another's limit.
func TestSharedMemory(t *testing.T) {
	d := open(t)
	b := backendtest.Alloc(t, d, 28)
	var ks []backend.Kernel
	for _, n := range []uint32{100, 200_000, 60_000, 0, 150_000} {
		r := bin("record", 1, 0)
		r.Shared = n
		ks = append(ks, backendtest.Load(t, d, r))
	}
	for i, k := range ks {
		if _, err := d.Run(t.Context(), launch(k, b)); err != nil {
			t.Errorf("kernel %d: %v", i, err)
		}
	}
}

// Tensor maps are made of the arguments that launches name, one for each launch, in lists and in recordings.
func TestTensorMaps(t *testing.T) {
	d := open(t)
	r := bin("maps", 2, 0)
	r.Code = []byte(strings.Replace(string(r.Code), ")", ", .param .align 64 .b8 m0[128], .param .align 64 .b8 m1[128])", 1))
	r.Maps = 2
	k := backendtest.Load(t, d, r)
	dst, other := [2]backend.Buffer{backendtest.Alloc(t, d, 256), backendtest.Alloc(t, d, 256)},
		backendtest.Alloc(t, d, 1024)
	ls := make([]backend.Launch, 2)
	for i := range ls {
		ls[i] = launch(k, dst[i], other)
		ls[i].Maps = []backend.TileMap{{Arg: 1, Rows: 5, Cols: 30 + uint32(i), Pitch: 40, TileRows: 3, TileCols: 64},
			{Arg: 0, Rows: 7, Cols: 8, Pitch: 8, TileRows: 64, TileCols: 8}}
	}
	check := func(what string) {
		t.Helper()
		for i, b := range dst {
			w := words(t, b, 64)
			if got, want := []uint32{w[2], w[4], w[6], w[8], w[10], w[12]},
				[]uint32{30 + uint32(i), 5, 80, 3, 3, 2}; !slices.Equal(got, want) {
				t.Errorf("%s: the first map of launch %d is of columns, rows, pitch, tile, swizzle and promotion %d, want %d", what, i, got, want)
			}
			if got, want := []uint32{w[34], w[36], w[38], w[40], w[42], w[46]}, []uint32{8, 7, 16, 64, 0, 8}; !slices.Equal(got,
				want) {
				t.Errorf("%s: the second map of launch %d is of %d, want %d", what, i, got, want)
			}
			if w[0] == w[32] && w[1] == w[33] {
				t.Errorf("%s: both maps of launch %d are of one buffer", what, i)
			}
			if err := b.Write(t.Context(), 0, make([]byte, 256)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := d.Run(t.Context(), ls...); err != nil {
		t.Fatal(err)
	}
	check("Run")
	rec := record(t, d, ls...)
	replay(t, rec)
	check("Recording.Run")
	if got := testing.AllocsPerRun(20, func() { d.Run(context.Background(), ls...) }); got != 0 {
		t.Errorf("Run allocates %v times", got)
	}
	for name, break_ := range map[string]func(*backend.Launch){
		"no maps":        func(l *backend.Launch) { l.Maps = nil },
		"one map":        func(l *backend.Launch) { l.Maps = l.Maps[:1] },
		"no argument":    func(l *backend.Launch) { l.Maps[0].Arg = 2 },
		"no rows":        func(l *backend.Launch) { l.Maps[0].Rows = 0 },
		"an odd pitch":   func(l *backend.Launch) { l.Maps[0].Pitch = 44 },
		"a short pitch":  func(l *backend.Launch) { l.Maps[0].Pitch = 24 },
		"too high tiles": func(l *backend.Launch) { l.Maps[1].TileRows = 257 },
		"odd tiles":      func(l *backend.Launch) { l.Maps[1].TileCols = 24 },
	} {
		l := backend.CloneLaunches(ls[:1])
		break_(&l[0])
		if _, err := d.Run(t.Context(), l...); err == nil || !strings.Contains(err.Error(), "map") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	t.Setenv("FAKE_FAIL", "cuTensorMapEncodeTiled=1")
	if _, err := d.Run(t.Context(), ls...); err == nil || !strings.Contains(err.Error(), "maps") {
		t.Errorf("what the driver makes no map of: error %v", err)
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	d := open(t)
	k, b := backendtest.Load(t, d, bin("record", 1, 0)), backendtest.Alloc(t, d, 28)
	ls := make([]backend.Launch, 200)
	for i := range ls {
		ls[i] = launch(k, b)
	}
	ctx := t.Context()
	for _, n := range []int{1, 200} {
		if got := testing.AllocsPerRun(20, func() {
			if _, err := d.Run(ctx, ls[:n]...); err != nil {
				t.Fatal(err)
			}
		}); got != 0 {
			t.Errorf("Run of %d launches allocates %v times", n, got)
		}
	}
}

func TestManyLaunches(t *testing.T) {
	d := open(t)
	k, b := backendtest.Load(t, d, bin("sleep", 1, 0)), backendtest.Alloc(t, d, 4)
	zero := func() {
		if err := b.Write(t.Context(), 0, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []int{0, 1, 63, 64, 65, 128, 129, 300} {
		zero()
		ls := make([]backend.Launch, 2*n) // every second one empty
		for i := range ls {
			ls[i] = launch(k, b)
			ls[i].Groups[i%3] *= uint32(i % 2)
		}
		tm, err := d.Run(t.Context(), ls...)
		if err != nil {
			t.Fatal(err)
		}
		if got := words(t, b, 1)[0]; got != uint32(n) {
			t.Errorf("%d launches ran, want %d", got, n)
		}
		if least := time.Duration(n-1) * 2 * time.Millisecond; n > 0 && (tm.Device < least || tm.Host < tm.Device) {
			t.Errorf("%d launches of 2 ms: device %v, host %v", n, tm.Device, tm.Host)
		}
	}
}

// Of a long run two batches are in flight at most, so that it can be cancelled.
func TestBatchesInFlight(t *testing.T) {
	d := open(t)
	k, b := backendtest.Load(t, d, bin("record", 1, 0)), backendtest.Alloc(t, d, 28)
	ls := slices.Repeat([]backend.Launch{launch(k, b)}, 5*64)
	if _, err := d.Run(t.Context(), ls[0]); err != nil { // the first launch of a kernel is a batch of its own
		t.Fatal(err)
	}
	logged := calls(t)
	if _, err := d.Run(t.Context(), ls...); err != nil {
		t.Fatal(err)
	}
	batch, batches, flying, waits := 0, 0, 0, 0
	for _, call := range logged() {
		switch call {
		case "cuLaunchKernel":
			batch++
		case "cuEventRecord":
			if batch > 64 {
				t.Errorf("%d launches in a batch", batch)
			}
			if batch > 0 {
				flying, batches = flying+1, batches+1
			}
			batch = 0
		case "cuEventQuery":
			flying, waits = flying-1, waits+1
		}
		if flying > 2 {
			t.Error("three batches in flight")
		}
	}
	// more where the machine was busy during the first launch, and others are thought to take as long
	if batches < 5 || waits != batches {
		t.Errorf("%d waits for %d batches, want one each, of 5 at least", waits, batches)
	}
}

// A cancelled run stops between batches, whose launches take some 25 ms once their time is known.
func TestRunCancelled(t *testing.T) {
	d := open(t)
	k, b := backendtest.Load(t, d, bin("sleep", 1, 0)), backendtest.Alloc(t, d, 4)
	if err := b.Write(t.Context(), 0, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	ls := slices.Repeat([]backend.Launch{launch(k, b)}, 1000)
	_, err := d.Run(&endsAfter{t.Context(), 5}, ls...)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled run: %v", err)
	}
	if n := words(t, b, 1)[0]; n == 0 || n > 100 {
		t.Errorf("%d launches of 2 ms ran before the run stopped", n)
	}
	if _, err := d.Run(t.Context(), ls[:3]...); err != nil {
		t.Errorf("after a cancelled run: %v", err)
	}
}

// What a cancelled run has left is awaited before memory is given back, and a loss then is reported.
func TestCancelledThenLost(t *testing.T) {
	d := open(t)
	k, b := backendtest.Load(t, d, bin("spin", 1, 4)), backendtest.Alloc(t, d, 256)
	long := launch(k, b)
	long.Params = []byte{0, 0, 0, 64} // some 70 ms
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := d.Run(ctx, long); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("cancelled run: %v", err)
	}
	logged := calls(t)
	t.Setenv("FAKE_FAIL", "cuEventQuery=719")
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if n := count(logged(), "cuMemFree_v2"); n != 0 {
		t.Error("memory was given back on a device that failed")
	}
	t.Setenv("FAKE_FAIL", "")
	if _, err := d.Alloc(4); !errors.Is(err, backend.ErrDeviceLost) {
		t.Errorf("after the loss: %v", err)
	}
}

// A launch whose kernel says what it reads early overlaps the one before, unless that writes it.
func TestOverlap(t *testing.T) {
	d := open(t)
	early := bin("record", 2, 0)
	early.ReadOnly, early.Early = 2, 2
	plain, k := backendtest.Load(t, d, bin("record", 2, 0)), backendtest.Load(t, d, early)
	a, b, c := backendtest.Alloc(t, d, 28), backendtest.Alloc(t, d, 28), backendtest.Alloc(t, d, 28)
	// the first launch of a kernel is a batch of its own
	if _, err := d.Run(t.Context(), launch(plain, a, c)); err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct {
		name     string
		launches []backend.Launch
		overlap  int
	}{
		{"alone", []backend.Launch{launch(k, a, b)}, 0},
		{"after each other", []backend.Launch{launch(k, a, b), launch(k, a, b), launch(k, a, b)}, 2},
		{"after an empty one", []backend.Launch{{Kernel: k}, launch(k, a, b)}, 0},
		{"after another kernel", []backend.Launch{launch(plain, a, c), launch(k, a, b)}, 1},
		{"after one that writes what is read early", []backend.Launch{launch(k, a, b), launch(plain, a, b), launch(k, a, b)},
			0},
		{"before another kernel", []backend.Launch{launch(k, a, b), launch(plain, a, c)}, 0},
	} {
		logged := calls(t)
		if _, err := d.Run(t.Context(), q.launches...); err != nil {
			t.Fatalf("%s: %v", q.name, err)
		}
		if got := count(logged(), "cuLaunchKernelEx"); got != q.overlap {
			t.Errorf("%s: %d launches overlap, want %d", q.name, got, q.overlap)
		}
	}
	t.Setenv("FAKE_FAIL", "cuLaunchKernelEx=302") // a driver without it
	logged := calls(t)
	if _, err := d.Run(t.Context(), launch(k, a, b), launch(k, a, b)); err != nil {
		t.Fatal(err)
	}
	if got := count(logged(), "cuLaunchKernel"); got != 2 {
		t.Errorf("%d plain launches on a driver that overlaps none, want 2", got)
	}
}

// A launch that the driver refuses is named, and is no loss of the device.
func TestRefusedLaunch(t *testing.T) {
	d := open(t)
	k, b := backendtest.Load(t, d, bin("record", 1, 0)), backendtest.Alloc(t, d, 28)
	t.Setenv("FAKE_FAIL", "cuLaunchKernel=701")
	_, err := d.Run(t.Context(), launch(k, b))
	if !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), "launching test/record") {
		t.Errorf("refused launch: %v", err)
	}
	t.Setenv("FAKE_FAIL", "")
	if _, err := d.Run(t.Context(), launch(k, b)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// After a fault on the device every call but Close returns ErrDeviceLost, and the next Open works.
func TestDeviceLost(t *testing.T) {
	logged := calls(t)
	d := open(t)
	k, fault := backendtest.Load(t, d, bin("record", 1, 0)), backendtest.Load(t, d, bin("fault", 1, 0))
	b := backendtest.Alloc(t, d, 28)
	_, err := d.Run(t.Context(), launch(k, b), launch(fault, b), launch(k, b))
	if !errors.Is(err, backend.ErrDeviceLost) ||
		!strings.Contains(err.Error(), "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered") {
		t.Errorf("fault: %v", err)
	}
	_, alloced := d.Alloc(100)
	_, loaded := d.Load(bin("step", 2, 16))
	_, ran := d.Run(t.Context())
	for name, err := range map[string]error{
		"Alloc": alloced, "Load": loaded, "Run": ran,
		"Write": b.Write(t.Context(), 0, make([]byte, 28)), "Read": b.Read(t.Context(), 0, make([]byte, 28)),
	} {
		if !errors.Is(err, backend.ErrDeviceLost) {
			t.Errorf("%s on a lost device: %v", name, err)
		}
	}
	for name, c := range map[string]interface{ Close() error }{"kernel": k, "buffer": b, "device": d} {
		if err := c.Close(); err != nil {
			t.Errorf("closing the %s: %v", name, err)
		}
	}
	if !slices.ContainsFunc(logged(), func(s string) bool { return strings.HasPrefix(s, "end lost=700") }) {
		t.Error("the lost context was not released")
	}
	again := open(t)
	if _, err := again.Run(t.Context(), launch(backendtest.Load(t, again, bin("record", 1, 0)),
		backendtest.Alloc(t, again, 28))); err != nil {
		t.Errorf("after opening the device again: %v", err)
	}
}

// Losing the device while copying is reported the same way.
func TestDeviceLostInCopy(t *testing.T) {
	d := open(t)
	b := backendtest.Alloc(t, d, 28)
	t.Setenv("FAKE_FAIL", "cuStreamSynchronize=719")
	if err := b.Write(t.Context(), 0, make([]byte, 28)); !errors.Is(err, backend.ErrDeviceLost) {
		t.Errorf("Write: %v", err)
	}
	t.Setenv("FAKE_FAIL", "")
	if _, err := d.Alloc(4); !errors.Is(err, backend.ErrDeviceLost) {
		t.Errorf("Alloc: %v", err)
	}
}

func BenchmarkRun(b *testing.B) {
	d := open(b)
	k, buf := backendtest.Load(b, d, bin("record", 1, 0)), backendtest.Alloc(b, d, 28)
	ls := []backend.Launch{launch(k, buf)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Run(b.Context(), ls...); err != nil {
			b.Fatal(err)
		}
	}
}
