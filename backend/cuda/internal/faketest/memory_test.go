// Memory on the fake driver: the pool, copies in chunks, and that everything is freed.

//go:build cuda && cgo && linux && (amd64 || arm64)

package faketest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
)

func random(n int) []byte {
	p := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return p
}

func TestOutOfMemory(t *testing.T) {
	t.Setenv("FAKE_MEMORY", fmt.Sprint(1<<20))
	d := open(t)
	first := backendtest.Alloc(t, d, 600<<10)
	_, err := d.Alloc(600 << 10)
	if !errors.Is(err, backend.ErrOutOfMemory) ||
		!strings.Contains(err.Error(), "allocating 614400 bytes (0 MiB of 1 MiB are free)") {
		t.Errorf("second allocation: %v", err)
	}
	if err := first.Write(t.Context(), 0, random(600<<10)); err != nil {
		t.Errorf("the device is not usable any more: %v", err)
	}
}

// Blocks of closed buffers are kept for buffers of the same size, and given back before memory runs out.
func TestPool(t *testing.T) {
	t.Setenv("FAKE_MEMORY", fmt.Sprint(1<<20))
	d := open(t)
	logged := calls(t)
	for range 10 {
		backendtest.Alloc(t, d, 400<<10).Close()
		backendtest.Alloc(t, d, 100<<10).Close()
	}
	if n := count(logged(), "cuMemAlloc_v2"); n != 2 {
		t.Errorf("%d allocations for two sizes", n)
	}
	whole := backendtest.Alloc(t, d, 1<<20) // fits only without the blocks kept
	if n := count(logged(), "cuMemFree_v2"); n != 2 {
		t.Errorf("%d blocks given back, want both", n)
	}
	whole.Close()
}

// The pool does not keep more than its share.
func TestPoolBound(t *testing.T) {
	d := open(t)
	logged := calls(t)
	for i := range 20 {
		backendtest.Alloc(t, d, int64(30<<20+4*i)).Close()
	}
	backendtest.Alloc(t, d, 100<<20).Close()
	l := logged()
	if kept := count(l, "cuMemAlloc_v2") - count(l, "cuMemFree_v2"); kept < 1 || kept > 8 {
		t.Errorf("%d blocks of 30 MiB are kept", kept)
	}
}

// Sizes around the staging blocks. The stand-in copies as late as it may, so that a block used again
// too early shows.
func TestTransfers(t *testing.T) {
	d := open(t)
	const block = 4 << 20
	for _, n := range []int{1, 4, block - 4, block, block + 4, 2 * block, 3*block + 7, 5*block + 1} {
		want, got := random(n), make([]byte, n)
		b := backendtest.Alloc(t, d, int64(n))
		if err := b.Write(t.Context(), 0, want); err != nil {
			t.Fatal(err)
		}
		if err := b.Read(t.Context(), 0, got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%d bytes read back differently", n)
		}
		b.Close()
	}
}

// A context that ends during a copy ends it; the device is usable.
func TestTransferCancelled(t *testing.T) {
	d := open(t)
	b := backendtest.Alloc(t, d, 64<<20)
	p := random(64 << 20)
	for _, c := range []struct {
		name string
		copy func(context.Context) error
	}{
		{"write", func(ctx context.Context) error { return b.Write(ctx, 0, p) }},
		{"read", func(ctx context.Context) error { return b.Read(ctx, 0, p) }},
	} {
		ctx := &endsAfter{Context: t.Context(), calls: 5}
		if err := c.copy(ctx); err != context.Canceled {
			t.Errorf("%s: %v, want the context's error", c.name, err)
		}
		if err := c.copy(t.Context()); err != nil {
			t.Errorf("%s after a cancelled one: %v", c.name, err)
		}
	}
}

// endsAfter is a context that is cancelled when its Err has been called n times.
type endsAfter struct {
	context.Context
	calls int
}

func (c *endsAfter) Err() error {
	if c.calls--; c.calls < 0 {
		return context.Canceled
	}
	return nil
}

func TestTransferErrors(t *testing.T) {
	d := open(t)
	b := backendtest.Alloc(t, d, 64)
	t.Setenv("FAKE_FAIL", "cuMemHostAlloc=2")
	if err := b.Write(t.Context(), 0, make([]byte, 64)); !errors.Is(err, backend.ErrOutOfMemory) {
		t.Errorf("without page-locked memory: %v", err)
	}
	t.Setenv("FAKE_FAIL", "cuMemcpyHtoDAsync_v2=1")
	if err := b.Write(t.Context(), 0, make([]byte, 64)); err == nil ||
		!strings.Contains(err.Error(), "CUDA_ERROR_INVALID_VALUE (1): invalid argument") {
		t.Errorf("a copy that fails: %v", err)
	}
	t.Setenv("FAKE_FAIL", "")
	if err := b.Write(t.Context(), 0, make([]byte, 64)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Closing a device frees everything, whatever is still open.
func TestEverythingFreed(t *testing.T) {
	logged := calls(t)
	d := open(t)
	k := backendtest.Load(t, d, bin("record", 1, 0))
	b := backendtest.Alloc(t, d, 4096)
	backendtest.Alloc(t, d, 100).Close()
	if err := b.Write(t.Context(), 0, make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), launch(k, b)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if l := logged(); count(l, "end lost=0 blocks=0 events=0 streams=0 graphs=0 libraries=0") != 1 {
		t.Errorf("not freed: %q", l[len(l)-2])
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// Where memory of the program cannot be registered, the driver's own is page-locked.
func TestUnregistered(t *testing.T) {
	d := open(t)
	for _, fails := range []string{"", "cuMemHostRegister_v2=801"} {
		t.Setenv("FAKE_FAIL", fails)
		m, err := d.(backend.HostAllocator).AllocHost(9 << 20)
		if err != nil {
			t.Fatalf("%q: %v", fails, err)
		}
		p := m.Bytes()
		p[0], p[len(p)-1] = 1, 2
		if err := m.Close(); err != nil {
			t.Errorf("%q: %v", fails, err)
		}
	}
}
