// Contexts, streams and memory of others on the fake driver, and the calls that copies make.

//go:build cuda && cgo && linux && (amd64 || arm64)

package faketest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
	"github.com/spmmrun/spmm/backend/cuda/internal/foreigntest"
)

func TestForeign(t *testing.T) { foreigntest.Run(t, cuda(t)) }

// A program's contexts end with nothing of the device's left in them. Here an allocation looks like several side by
// side, as those of an allocator that maps memory in chunks.
func TestForeignFreed(t *testing.T) {
	t.Setenv("FAKE_RANGE", "1000")
	logged := calls(t)
	foreigntest.Run(t, cuda(t))
	ends := 0
	for _, s := range logged() {
		if strings.HasPrefix(s, "end ") {
			ends++
			if s != "end lost=0 blocks=0 events=0 streams=0 graphs=0 libraries=0" {
				t.Errorf("not freed: %q", s)
			}
		}
	}
	if ends < 5 {
		t.Errorf("%d contexts ended, want one for each part of the test at least", ends)
	}
}

// Page-locked memory is copied at once, ordinary memory block by block; lines with narrow gaps go as one where the gaps
// may be overwritten, others as lines.
func TestCopyCalls(t *testing.T) {
	d := open(t)
	const size = 9 << 20
	b := backendtest.Alloc(t, d, size).(backend.LineCopier)
	m, err := d.(backend.HostAllocator).AllocHost(size)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	locked, ordinary := m.Bytes(), make([]byte, size)
	whole := backend.Lines{Pitch: size, HostPitch: size, Width: size, Count: 1}
	tight := backend.Lines{Pitch: 1 << 20, HostPitch: 1 << 20, Width: 1 << 20, Count: 9}
	narrow := backend.Lines{Pitch: 1000, HostPitch: 996, Width: 996, Count: 9000}
	alike := backend.Lines{Pitch: 1000, HostPitch: 1000, Width: 996, Count: 9000}
	far := backend.Lines{Pitch: 9000, HostPitch: 1000, Width: 1000, Count: 1000}
	for _, c := range []struct {
		name   string
		l      backend.Lines
		host   []byte
		in     bool
		copies string // calls of cuMemcpyHtoDAsync, cuMemcpyDtoHAsync, cuMemcpy2DAsync
	}{
		{"whole, page-locked", whole, locked, true, "1 0 0"},
		{"whole, page-locked", whole, locked, false, "0 1 0"},
		{"whole", whole, ordinary, true, "3 0 0"},
		{"whole", whole, ordinary, false, "0 3 0"},
		{"tight, page-locked", tight, locked, true, "1 0 0"},
		{"tight, page-locked", tight, locked, false, "0 1 0"},
		{"narrow gaps, page-locked", narrow, locked, true, "0 0 1"},
		{"narrow gaps, page-locked", narrow, locked, false, "0 0 1"},
		{"the same gaps, page-locked", alike, locked, true, "1 0 0"},
		{"the same gaps, page-locked", alike, locked, false, "0 0 1"},
		{"narrow gaps", narrow, ordinary, true, "3 0 0"},
		{"narrow gaps", narrow, ordinary, false, "0 3 0"},
		{"wide gaps", far, ordinary, true, "0 0 1"},
		{"wide gaps", far, ordinary, false, "0 0 1"},
	} {
		t.Run(fmt.Sprintf("%s in=%t", c.name, c.in), func(t *testing.T) {
			logged := calls(t)
			err := b.ReadLines(t.Context(), c.l, c.host)
			if c.in {
				logged = calls(t)
				err = b.WriteLines(t.Context(), c.l, c.host)
			}
			if err != nil {
				t.Fatal(err)
			}
			l := logged()
			if got := fmt.Sprint(count(l, "cuMemcpyHtoDAsync_v2"), count(l, "cuMemcpyDtoHAsync_v2"),
				count(l, "cuMemcpy2DAsync_v2")); got != c.copies {
				t.Errorf("calls %s, want %s", got, c.copies)
			}
		})
	}
}

// Copies of what one core copies allocate nothing.
func TestCopyAllocatesNothing(t *testing.T) {
	d := open(t)
	b := backendtest.Alloc(t, d, 64<<10).(backend.LineCopier)
	p := make([]byte, 64<<10)
	ctx := t.Context()
	l := backend.Lines{Pitch: 640, HostPitch: 600, Width: 600, Count: 100}
	for name, f := range map[string]func() error{
		"Write": func() error { return b.Write(ctx, 0, p) }, "Read": func() error { return b.Read(ctx, 0, p) },
		"WriteLines": func() error { return b.WriteLines(ctx, l, p) },
		"ReadLines":  func() error { return b.ReadLines(ctx, l, p) },
	} {
		if err := f(); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(10, func() { f() }); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
