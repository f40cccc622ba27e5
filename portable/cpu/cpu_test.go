// The contract of backends, and what is the CPU's own: every group once, panics, memory.

package cpu_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
	"github.com/spmmrun/spmm/portable/cpu"
)

func TestDriver(t *testing.T) { backendtest.Run(t, cpu.Driver{}) }

func open(t testing.TB) backend.Device {
	return backendtest.Open(t, cpu.Driver{})
}

func load(t testing.TB, d backend.Device, args int, f backend.GroupFunc) backend.Kernel {
	k := backendtest.Load(t, d, backend.Binary{Name: "test", Kind: backend.CodeGo, Args: args, Func: f})
	return k
}

// Every group of a grid runs once, whatever its shape.
func TestEveryGroupOnce(t *testing.T) {
	d := open(t)
	var mu sync.Mutex
	var seen map[[3]uint32]int
	k := load(t, d, 0, func(_ [][]byte, _ []byte, g [3]uint32) {
		mu.Lock()
		seen[g]++
		mu.Unlock()
	})
	for _, g := range [][3]uint32{{1, 1, 1}, {7, 1, 1}, {1, 7, 1}, {1, 1, 7}, {3, 5, 7}, {1000, 1, 3}, {2, 333, 2}} {
		seen = map[[3]uint32]int{}
		backendtest.Do(t, d, backend.Launch{Kernel: k, Groups: g})
		if want := int(g[0] * g[1] * g[2]); len(seen) != want {
			t.Errorf("grid %v: %d of %d groups ran", g, len(seen), want)
		}
		for p, n := range seen {
			if n != 1 || p[0] >= g[0] || p[1] >= g[1] || p[2] >= g[2] {
				t.Errorf("grid %v: group %v ran %d times", g, p, n)
			}
		}
	}
}

func TestPanicIsAnError(t *testing.T) {
	d := open(t)
	b := backendtest.Alloc(t, d, 64)
	bad := load(t, d, 1, func(a [][]byte, _ []byte, g [3]uint32) { a[0][64+g[0]] = 1 })
	l := backend.Launch{Kernel: bad, Groups: [3]uint32{1000, 1, 1}, Args: []backend.Buffer{b}}
	for range 10 {
		_, err := d.Run(t.Context(), l)
		if err == nil || !strings.Contains(err.Error(), "out of range") || !strings.Contains(err.Error(), "test") {
			t.Fatalf("Run of a kernel that writes out of range: error %v", err)
		}
	}
	good := load(t, d, 1, func(a [][]byte, _ []byte, g [3]uint32) { a[0][g[0]] = 7 })
	if _, err := d.Run(t.Context(), backend.Launch{Kernel: good, Groups: [3]uint32{64, 1, 1},
		Args: []backend.Buffer{b}}); err != nil {
		t.Fatalf("Run after a panic: %v", err)
	}
}

func TestAlignment(t *testing.T) {
	d := open(t)
	var address uintptr
	k := load(t, d, 1, func(a [][]byte, _ []byte, _ [3]uint32) { address = uintptr(unsafe.Pointer(&a[0][0])) })
	for _, size := range []int64{1, 100, 4096, 1<<18 - 1, 1 << 18, 3<<20 + 1} {
		b := backendtest.Alloc(t, d, size)
		backendtest.Do(t, d, backend.Launch{Kernel: k, Groups: [3]uint32{1, 1, 1}, Args: []backend.Buffer{b}})
		if address%256 != 0 {
			t.Errorf("buffer of %d bytes lies at %#x", size, address)
		}
	}
}

// More than the machine has is refused at once; mapped memory is given back.
func TestMemory(t *testing.T) {
	d := open(t)
	if total := d.Info().Memory; total > 0 {
		if _, err := d.Alloc(total + 1); !errors.Is(err, backend.ErrOutOfMemory) ||
			!strings.Contains(err.Error(), "MiB available") {
			t.Errorf("Alloc(%d) of %d bytes of memory: error %v", total+1, total, err)
		}
	}
	for range 50 { // more in all than at once
		b := backendtest.Alloc(t, d, 64<<20)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A context cancelled by one launch stops those after it.
func TestCancelBetweenLaunches(t *testing.T) {
	d := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	runs := 0
	k := load(t, d, 0, func([][]byte, []byte, [3]uint32) { runs++; cancel() })
	l := backend.Launch{Kernel: k, Groups: [3]uint32{1, 1, 1}}
	if _, err := d.Run(ctx, l, l, l); err != context.Canceled || runs != 1 {
		t.Errorf("%d launches ran, error %v; want 1 and %v", runs, err, context.Canceled)
	}
}

func BenchmarkLaunch(b *testing.B) {
	d := open(b)
	k := load(b, d, 0, func([][]byte, []byte, [3]uint32) {})
	for _, c := range []struct {
		name   string
		groups uint32
	}{{"1", 1}, {"64", 64}, {"4096", 4096}} {
		b.Run("groups="+c.name, func(b *testing.B) {
			l := []backend.Launch{{Kernel: k, Groups: [3]uint32{c.groups, 1, 1}}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Run(context.Background(), l...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
