// Life: use after Close, double Close, and many goroutines at once.

package backendtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/spmmrun/spmm/backend"
)

var living = []subtest{
	{"use of a closed buffer", closedBuffer},
	{"use of a closed kernel", closedKernel},
	{"use of a closed device", closedDevice},
	{"freed memory comes back", memoryComesBack},
	{"many goroutines", manyGoroutines},
	{"close while others work", closeWhileWorking},
}

// nobody is a buffer and a kernel of no device.
type nobody struct{}

func (nobody) Size() int64                                { return 256 }
func (nobody) Write(context.Context, int64, []byte) error { return errors.New("nobody's") }
func (nobody) Read(context.Context, int64, []byte) error  { return errors.New("nobody's") }
func (nobody) Close() error                               { return nil }

func closeTwice(t *testing.T, what string, c interface{ Close() error }) {
	t.Helper()
	for _, when := range []string{"first", "second"} {
		if err := c.Close(); err != nil {
			t.Errorf("%s: %s Close: %v", what, when, err)
		}
	}
}

func closedBuffer(t *testing.T, r *rig) {
	k, src, dst := r.load(t, "step"), r.upload(t, ramp(64)), r.alloc(t, 256)
	closeTwice(t, "buffer", src)
	checkError(t, src.Write(t.Context(), 0, make([]byte, 4)), "Write to a closed buffer", backend.ErrClosed)
	checkError(t, src.Read(t.Context(), 0, make([]byte, 4)), "Read from a closed buffer", backend.ErrClosed)
	refuseRun(t, r, "a closed buffer", stepLaunch(k, src, dst, step{n: 64, mul: 3}), backend.ErrClosed)
	r.works(t)
}

func closedKernel(t *testing.T, r *rig) {
	k, src, dst := r.load(t, "step"), r.upload(t, ramp(64)), r.alloc(t, 256)
	r.run(t, stepLaunch(k, src, dst, step{n: 64, mul: 3}))
	closeTwice(t, "kernel", k)
	refuseRun(t, r, "a closed kernel", stepLaunch(k, src, dst, step{n: 64, mul: 3}), backend.ErrClosed)
	r.works(t)
}

// Closing a device frees everything made from it; what is left over may still be closed.
func closedDevice(t *testing.T, r *rig) {
	o := r.another(t)
	k, src, dst := o.load(t, "step"), o.upload(t, ramp(64)), o.alloc(t, 256)
	l := stepLaunch(k, src, dst, step{n: 64, mul: 3})
	o.run(t, l)
	closeTwice(t, "device", o.dev)
	if _, err := o.dev.Alloc(256); err == nil {
		t.Error("Alloc on a closed device: no error")
	}
	if _, err := o.tryLoad("step"); err == nil {
		t.Error("Load on a closed device: no error")
	}
	refuseRun(t, o, "a closed device", l, backend.ErrClosed)
	checkError(t, src.Write(t.Context(), 0, make([]byte, 4)), "Write to a closed device", backend.ErrClosed)
	checkError(t, src.Read(t.Context(), 0, make([]byte, 4)), "Read from a closed device", backend.ErrClosed)
	closeTwice(t, "buffer of a closed device", src)
	closeTwice(t, "kernel of a closed device", k)
	r.works(t)
}

// 100 buffers of 16 MiB in turn: what is closed is freed, not kept until the device closes.
func memoryComesBack(t *testing.T, r *rig) {
	for i := range 100 {
		b, err := r.dev.Alloc(16 << 20)
		if err != nil {
			t.Fatalf("buffer %d of 16 MiB, the others closed: %v", i, err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func manyGoroutines(t *testing.T, r *rig) {
	k := r.load(t, "step")
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 10 {
				if err := r.roundTrip(t.Context(), k, 100+137*g, uint32(i)); err != nil {
					t.Errorf("goroutine %d, turn %d: %v", g, i, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// roundTrip allocates, writes, runs, reads and checks.
func (r *rig) roundTrip(ctx context.Context, k backend.Kernel, n int, seed uint32) error {
	a, err := r.dev.Alloc(int64(4 * n))
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := r.dev.Alloc(int64(4 * n))
	if err != nil {
		return err
	}
	defer b.Close()
	in, got := ramp(n), make([]uint32, n)
	in[0] = seed
	if err := a.Write(ctx, 0, backend.Bytes(in)); err != nil {
		return err
	}
	s := step{n: uint32(n), rot: seed, mul: 3, add: seed}
	if _, err := r.dev.Run(ctx, stepLaunch(k, a, b, s), stepLaunch(k, b, a, s)); err != nil {
		return err
	}
	if err := a.Read(ctx, 0, backend.Bytes(got)); err != nil {
		return err
	}
	if !slices.Equal(got, s.apply(s.apply(in))) {
		return fmt.Errorf("wrong result for %d words", n)
	}
	return nil
}

// Closing a device under working goroutines turns their calls into errors: no crash, no wrong result.
func closeWhileWorking(t *testing.T, r *rig) {
	o := r.another(t)
	k := o.load(t, "step")
	var wg sync.WaitGroup
	started := make(chan struct{}, 4)
	for g := range 4 {
		wg.Go(func() {
			for i := range uint32(50_000) {
				err := o.roundTrip(t.Context(), k, 500+g, i)
				if i == 0 {
					started <- struct{}{}
				}
				if err != nil {
					if i == 0 || err.Error() == fmt.Sprintf("wrong result for %d words", 500+g) {
						t.Errorf("goroutine %d, turn %d: %v", g, i, err)
					}
					return
				}
			}
			t.Errorf("goroutine %d never saw that the device was closed", g)
		})
	}
	for range 4 {
		<-started
	}
	if err := o.dev.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	wg.Wait()
}
