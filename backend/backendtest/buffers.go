// Buffers: sizes, copies at offsets, bounds.

package backendtest

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
)

var copying = []subtest{
	{"alloc sizes", allocSizes},
	{"alloc refuses", allocRefuses},
	{"copies at offsets", copiesAtOffsets},
	{"partial last word", partialWord},
	{"copies out of range", outOfRange},
	{"neighbours stay", neighboursStay},
	{"cancelled copy", cancelledCopy},
}

func allocSizes(t *testing.T, r *rig) {
	for _, size := range []int64{1, 3, 4, 5, 8, 100, 255, 256, 257, 4096, 65536 + 4, 1<<20 + 12, 5<<20 + 3} {
		b := r.alloc(t, size)
		if b.Size() != size {
			t.Errorf("Alloc(%d) has size %d", size, b.Size())
		}
		want := pattern(int(size), byte(size))
		copyIn(t, b, 0, want)
		if got := copyOut(t, b, 0, int(size)); !bytes.Equal(got, want) {
			t.Errorf("buffer of %d bytes reads back differently", size)
		}
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

func allocRefuses(t *testing.T, r *rig) {
	for _, size := range []int64{0, -1, math.MinInt64} {
		refuseAlloc(t, r, size)
	}
	huge := []int64{1 << 46, 1<<62 + 4, math.MaxInt64 - 4096, math.MaxInt64}
	if r.caps.MaxBinding > 0 {
		huge = append(huge, r.caps.MaxBinding+256)
	}
	for _, size := range huge {
		refuseAlloc(t, r, size, backend.ErrOutOfMemory, backend.ErrUnsupported)
	}
	r.works(t)
}

func refuseAlloc(t *testing.T, r *rig, size int64, kinds ...error) {
	b, err := r.dev.Alloc(size)
	checkError(t, err, fmt.Sprintf("Alloc(%d)", size), kinds...)
	if err == nil {
		b.Close()
	}
}

func copiesAtOffsets(t *testing.T, r *rig) {
	const size = 100_000
	b, want := r.alloc(t, size), pattern(size, 1)
	copyIn(t, b, 0, want)
	for i, c := range []struct{ off, n int }{{0, 4}, {4, 8}, {252, 8}, {256, 256}, {1000, 70_000}, {size - 4, 4}, {40, 0},
		{size, 0}} {
		p := pattern(c.n, byte(50+i))
		copyIn(t, b, int64(c.off), p)
		copy(want[c.off:], p)
		if got := copyOut(t, b, int64(c.off), c.n); !bytes.Equal(got, p) {
			t.Errorf("%d bytes at %d read back differently", c.n, c.off)
		}
	}
	if !bytes.Equal(copyOut(t, b, 0, size), want) {
		t.Error("writes at offsets changed other bytes")
	}
}

// A length that is no multiple of 4 is allowed at the buffer's end, and nowhere else.
func partialWord(t *testing.T, r *rig) {
	for _, size := range []int{1, 2, 3, 7, 1021, 4099} {
		b, want := r.alloc(t, int64(size)), pattern(size, 9)
		copyIn(t, b, 0, want)
		off := (size - 1) &^ 3
		tail := pattern(size-off, 77)
		copyIn(t, b, int64(off), tail)
		copy(want[off:], tail)
		if !bytes.Equal(copyOut(t, b, int64(off), size-off), tail) || !bytes.Equal(copyOut(t, b, 0, size), want) {
			t.Errorf("last partial word of %d bytes reads back differently", size)
		}
	}
	b := r.alloc(t, 11)
	copyIn(t, b, 0, make([]byte, 11))
	for _, c := range []struct {
		off int64
		n   int
	}{{0, 3}, {8, 2}, {1, 4}, {2, 9}, {6, 5}} {
		refuseCopy(t, b, c.off, c.n)
	}
	if !bytes.Equal(copyOut(t, b, 0, 11), make([]byte, 11)) {
		t.Error("a refused write wrote")
	}
}

func outOfRange(t *testing.T, r *rig) {
	b := r.alloc(t, 64)
	copyIn(t, b, 0, make([]byte, 64))
	for _, c := range []struct {
		off int64
		n   int
	}{{-4, 4}, {-4, 0}, {0, 68}, {64, 4}, {60, 8}, {68, 0}, {1 << 40, 4}, {math.MaxInt64 - 3, 4}, {math.MaxInt64 - 3, 8},
		{math.MinInt64, 4}} {
		refuseCopy(t, b, c.off, c.n)
	}
	if !bytes.Equal(copyOut(t, b, 0, 64), make([]byte, 64)) {
		t.Error("a refused write wrote")
	}
	r.works(t)
}

func refuseCopy(t *testing.T, b backend.Buffer, off int64, n int) {
	t.Helper()
	what := fmt.Sprintf("%d bytes at %d of a buffer of %d", n, off, b.Size())
	p := pattern(n, 3)
	checkError(t, b.Write(t.Context(), off, p), "Write of "+what)
	q := slices.Clone(p)
	checkError(t, b.Read(t.Context(), off, q), "Read of "+what)
	if !bytes.Equal(p, q) {
		t.Errorf("refused Read of %s wrote to the caller's memory", what)
	}
}

// Many small buffers, some of odd sizes, likely share pages: writing one whole, by copies and by a kernel,
// changes no other; and a Read does not write past the slice it was given.
func neighboursStay(t *testing.T, r *rig) {
	var bufs []backend.Buffer
	var want [][]byte
	for i := range 16 {
		size := 64 + 4*i + i%4
		bufs, want = append(bufs, r.alloc(t, int64(size))), append(want, pattern(size, byte(i)))
		copyIn(t, bufs[i], 0, want[i])
	}
	k, src := r.load(t, "step"), r.upload(t, ramp(16))
	for i := 1; i < len(bufs); i += 3 {
		r.run(t, stepLaunch(k, src, bufs[i], step{n: 16, mul: 1}))
		copy(want[i], backend.Bytes(ramp(16)))
		want[i+1] = pattern(len(want[i+1]), byte(200+i))
		copyIn(t, bufs[i+1], 0, want[i+1])
	}
	for i, b := range bufs {
		if got := copyOut(t, b, 0, len(want[i])); !bytes.Equal(got, want[i]) {
			t.Errorf("buffer %d was changed from outside", i)
		}
	}
	sentinel := pattern(64, 5)
	if err := bufs[0].Read(t.Context(), 0, sentinel[16:32:32]); err != nil ||
		!bytes.Equal(sentinel[32:], pattern(64, 5)[32:]) || !bytes.Equal(sentinel[:16], pattern(64, 5)[:16]) {
		t.Errorf("Read of 16 bytes wrote around them (error %v)", err)
	}
}

func cancelledCopy(t *testing.T, r *rig) {
	b, p := r.alloc(t, 64), pattern(64, 1)
	copyIn(t, b, 0, p)
	checkError(t, b.Write(cancelled(), 0, make([]byte, 64)), "cancelled Write", cancelled().Err())
	q := make([]byte, 64)
	checkError(t, b.Read(cancelled(), 0, q), "cancelled Read", cancelled().Err())
	if !bytes.Equal(copyOut(t, b, 0, 64), p) || !bytes.Equal(q, make([]byte, 64)) {
		t.Error("a cancelled copy copied")
	}
}

func copyIn(t testing.TB, b backend.Buffer, off int64, p []byte) {
	t.Helper()
	if err := b.Write(t.Context(), off, p); err != nil {
		t.Fatalf("Write of %d bytes at %d: %v", len(p), off, err)
	}
}

func copyOut(t testing.TB, b backend.Buffer, off int64, n int) []byte {
	t.Helper()
	p := make([]byte, n)
	if err := b.Read(t.Context(), off, p); err != nil {
		t.Fatalf("Read of %d bytes at %d: %v", n, off, err)
	}
	return p
}

func pattern(n int, seed byte) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i*31) ^ byte(i>>8) ^ seed
	}
	return p
}
