// The guard itself: what it lets through and what it notices.

package conformance

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend/backendtest"
)

func cpuGuard(t *testing.T) *guard {
	t.Helper()
	dev := backendtest.Open(t, backendtest.Find(t, "cpu"))
	return newGuard(dev, newKernelCache())
}

// TestGuardTransfers: buffers behave as their requested sizes say, and stay intact.
func TestGuardTransfers(t *testing.T) {
	for _, bare := range []bool{false, true} {
		g := cpuGuard(t)
		g.bare = bare
		transfers(t, g)
	}
}

func transfers(t *testing.T, g *guard) {
	ctx := t.Context()
	for _, size := range []int{1, 4, 7, 16, 1023} {
		b, err := g.Alloc(int64(size))
		if err != nil {
			t.Fatal(err)
		}
		if b.Size() != int64(size) {
			t.Errorf("size %d, want %d", b.Size(), size)
		}
		got := make([]byte, size)
		if err := b.Read(ctx, 0, got); err != nil || !bytes.Equal(got, filled(size)) {
			t.Errorf("new memory of %d bytes is not the sentinel (%v)", size, err)
		}
		data := bytes.Repeat([]byte{7}, size)
		if err := b.Write(ctx, 0, data); err != nil {
			t.Fatal(err)
		}
		if err := b.Read(ctx, 0, got); err != nil || !bytes.Equal(got, data) {
			t.Errorf("read %v (%v)", got, err)
		}
		if err := b.Write(ctx, 0, make([]byte, size+1)); err == nil {
			t.Error("a write past the end is let through")
		}
		if err := b.Read(ctx, 0, make([]byte, size+1)); err == nil {
			t.Error("a read past the end is let through")
		}
		if size%2 == 1 {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := g.intact(ctx); err != nil {
		t.Error(err)
	}
	if _, err := g.Alloc(0); err == nil {
		t.Error("a buffer of no bytes")
	}
}

// TestGuardNotices: writes behind a buffer and to the memory next to it.
func TestGuardNotices(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		name, want string
		spoil      func(b *guarded) error
	}{
		{"the first byte behind", "byte 0 behind a buffer of 6", func(b *guarded) error {
			return b.Buffer.Write(ctx, 4, []byte{0x83, 0xff, 0, 0})
		}},
		{"far behind", "behind a buffer of 6", func(b *guarded) error { return b.Buffer.Write(ctx, 1000, make([]byte, 4)) }},
		{"the canary", "next to a buffer of 6", func(b *guarded) error { return b.canary.Write(ctx, 512, make([]byte, 4)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := cpuGuard(t)
			b, err := g.Alloc(6)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.spoil(b.(*guarded)); err != nil {
				t.Fatal(err)
			}
			if err := g.intact(ctx); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			if err := g.intact(ctx); err != nil {
				t.Errorf("a closed buffer is still looked at: %v", err)
			}
		})
	}
}
