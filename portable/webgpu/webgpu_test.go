// The contract of backends, and what is WebGPU's own: shaders that are wrong, bindings, limits.

package webgpu_test

import (
	"encoding/binary"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
	"github.com/spmmrun/spmm/portable/webgpu"
)

func TestDriver(t *testing.T) { backendtest.Run(t, webgpu.Driver{}) }

// open returns the first device; nil, after a word about it, if there is none and none is required.
func open(t testing.TB) backend.Device {
	t.Helper()
	return backendtest.Open(t, webgpu.Driver{})
}

func wgsl(code string, args int) backend.Binary {
	return backend.Binary{Name: "test", Kind: backend.CodeWGSL, Code: []byte(code), Entry: "main", Args: args,
		Local: [3]uint32{1, 1, 1}}
}

// setOne is a kernel that writes 1.
const setOne = `@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(1) fn main() { a[0] = 1u; }`

// What is wrong with a shader is one line that says where or what: in the words of wgpu, or of a browser.
func TestBadShader(t *testing.T) {
	d := open(t)
	if d == nil {
		return
	}
	for _, c := range []struct{ code, want string }{
		{"not WGSL", "found 'not'|1:1: unexpected token"},
		{"@compute @workgroup_size(1) fn main() { let x = y; }", "'y'"},
		{"@compute @workgroup_size(1) fn main() { let x: u32 = 1.5; }", "x|1:54: cannot convert"},
		{"@compute @workgroup_size(100000) fn main() {}", "Workgroup size|workgroup_size"},
		{"@compute @workgroup_size(1) fn other() {}", "main"},
		{"enable f16; @compute @workgroup_size(1) fn main() {}", "enable|extension 'f16'"},
		{strings.Replace(setOne, "read_write", "read", 1), "a"},
		{strings.Repeat("é", 5000), ""},
	} {
		_, err := d.Load(wgsl(c.code, 1))
		if err == nil {
			t.Errorf("%.60q loads", c.code)
			continue
		}
		if s := err.Error(); !regexp.MustCompile(c.want).MatchString(s) || !strings.Contains(s, "test") ||
			strings.Contains(s, "\n") || len(s) > 1000 {
			t.Errorf("%.60q: error %q", c.code, s)
		}
	}
	// A binding that the table does not have, or has otherwise.
	if _, err := d.Load(wgsl(setOne, 0)); err == nil {
		t.Error("a shader with a binding more than arguments loads")
	}
	b := wgsl(setOne, 1)
	b.ReadOnly = 1
	if _, err := d.Load(b); err == nil {
		t.Error("a shader that writes a read-only argument loads")
	}
	runSetOne(t, d)
}

// Packed dot products compile where Caps.Dot4 says that they do, and nowhere else.
func TestDot4(t *testing.T) {
	d := open(t)
	if d == nil {
		return
	}
	k, err := d.Load(wgsl(strings.Replace(setOne, "= 1u", "= bitcast<u32>(dot4I8Packed(0x01ff80feu, 0x02030405u))", 1), 1))
	if dot4 := d.Caps().Dot4; (err == nil) != dot4 {
		t.Fatalf("Dot4 is %v, and a packed dot product: %v", dot4, err)
	}
	if err != nil {
		return
	}
	defer k.Close()
	b := backendtest.Alloc(t, d, 4)
	defer b.Close()
	if _, err := d.Run(t.Context(), backend.Launch{Kernel: k, Args: []backend.Buffer{b}, Groups: [3]uint32{1, 1, 1}}); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if err := b.Read(t.Context(), 0, got); err != nil {
		t.Fatal(err)
	}
	if want := int32(1*2 - 1*3 - 128*4 - 2*5); int32(binary.LittleEndian.Uint32(got)) != want {
		t.Errorf("a packed dot product is %v, want %d", got, want)
	}
}

// runSetOne fails the test unless the device computes.
func runSetOne(t *testing.T, d backend.Device) {
	t.Helper()
	k := backendtest.Load(t, d, wgsl(setOne, 1))
	defer k.Close()
	b := backendtest.Alloc(t, d, 4)
	defer b.Close()
	got := []byte{9, 9, 9, 9}
	if err := b.Write(t.Context(), 0, got); err != nil {
		t.Fatal(err)
	}
	backendtest.Do(t, d, backend.Launch{Kernel: k, Groups: [3]uint32{1, 1, 1}, Args: []backend.Buffer{b}})
	if err := b.Read(t.Context(), 0, got); err != nil || got[0] != 1 || got[3] != 0 {
		t.Fatalf("read %v, error %v", got, err)
	}
}

// staysLost holds a device that is lost to its promise: every call but Close says so.
func staysLost(t *testing.T, d backend.Device, k backend.Kernel, b backend.Buffer) {
	t.Helper()
	l := backend.Launch{Kernel: k, Groups: [3]uint32{1, 1, 1}, Args: []backend.Buffer{b}}
	for _, again := range []string{"", " again"} {
		if _, err := d.Run(t.Context(), l); !errors.Is(err, backend.ErrDeviceLost) {
			t.Errorf("Run%s: error %v", again, err)
		}
	}
	if _, err := d.Alloc(64); !errors.Is(err, backend.ErrDeviceLost) {
		t.Errorf("Alloc: error %v", err)
	}
	if _, err := d.Load(wgsl(setOne, 1)); !errors.Is(err, backend.ErrDeviceLost) {
		t.Errorf("Load: error %v", err)
	}
	if err := b.Read(t.Context(), 0, make([]byte, 4)); !errors.Is(err, backend.ErrDeviceLost) {
		t.Errorf("Read: error %v", err)
	}
	if err := b.Write(t.Context(), 0, make([]byte, 4)); !errors.Is(err, backend.ErrDeviceLost) {
		t.Errorf("Write: error %v", err)
	}
	if err := errors.Join(b.Close(), k.Close(), d.Close(), d.Close()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// opensAgain fails the test unless the GPU of a lost device can be opened again.
func opensAgain(t *testing.T, d backend.Device) {
	t.Helper()
	second, err := webgpu.Driver{}.Open(t.Context(), d.Info())
	if err != nil {
		t.Fatalf("Open after a loss: %v", err)
	}
	defer second.Close()
	runSetOne(t, second)
}

// A buffer cannot be read-only and writable in one launch: wgpu finds that out while recording.
func TestReadAndWritten(t *testing.T) {
	d := open(t)
	if d == nil {
		return
	}
	b := wgsl(`@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> b: array<u32>;
@compute @workgroup_size(1) fn main() { b[0] = a[0]; }`, 2)
	b.ReadOnly = 1
	k := backendtest.Load(t, d, b)
	x := backendtest.Alloc(t, d, 64)
	_, err := d.Run(t.Context(), backend.Launch{Kernel: k, Groups: [3]uint32{1, 1, 1}, Args: []backend.Buffer{x, x}})
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("Run: error %v", err)
	}
	runSetOne(t, d)
}

// Buffers beyond the largest binding are refused by the limit's name; of the largest size, or nearly, they work
// at both ends.
func TestLargestBuffer(t *testing.T) {
	d := open(t)
	if d == nil {
		return
	}
	limit := d.Caps().MaxBinding
	_, err := d.Alloc(limit + 1)
	if err == nil || !strings.Contains(err.Error(), "maxStorageBufferBindingSize") {
		t.Errorf("Alloc(%d): error %v", limit+1, err)
	}
	size := min(limit, 256<<20)
	b := backendtest.Alloc(t, d, size)
	for _, off := range []int64{0, size - 64<<20 + 4} {
		in := make([]byte, 64<<20-4)
		for i := 0; i < len(in); i += 4093 {
			in[i] = byte(i)
		}
		if err := b.Write(t.Context(), off, in); err != nil {
			t.Fatal(err)
		}
		out := make([]byte, len(in))
		if err := b.Read(t.Context(), off, out); err != nil {
			t.Fatal(err)
		}
		if string(in) != string(out) {
			t.Errorf("%d bytes at %d read back differently", len(in), off)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	d := open(b)
	if d == nil {
		return
	}
	k := backendtest.Load(b, d, wgsl(setOne, 1))
	x := backendtest.Alloc(b, d, 64)
	ls := make([]backend.Launch, 100)
	for i := range ls {
		ls[i] = backend.Launch{Kernel: k, Groups: [3]uint32{1, 1, 1}, Args: []backend.Buffer{x}}
	}
	for _, n := range []int{1, 100} {
		b.Run(map[int]string{1: "launches=1", 100: "launches=100"}[n], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Run(b.Context(), ls[:n]...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// longLaunch opens a device and loads a long kernel: `groups` groups of a million steps each.
func longLaunch(t *testing.T, groups uint32) (backend.Device, backend.Kernel, backend.Buffer, backend.Launch) {
	d := open(t)
	k := backendtest.Load(t, d, wgsl(`@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(1) fn main() {
	var x = a[1];
	for (var i = 0u; i < 1000000u; i = i + 1u) { x = x * 1664525u + 1013904223u; }
	a[0] = x;
}`, 1))
	b := backendtest.Alloc(t, d, 64)
	return d, k, b, backend.Launch{Kernel: k, Groups: [3]uint32{groups, 1, 1}, Args: []backend.Buffer{b}}
}

// Bind groups are kept by a kernel, up to a number: those of a batch stay until it has been submitted.
func TestManyBindings(t *testing.T) {
	d := open(t)
	if d == nil {
		return
	}
	k := backendtest.Load(t, d, wgsl(setOne, 1))
	defer k.Close()
	const kept = 256
	var launches []backend.Launch
	var bufs []backend.Buffer
	for range 2*kept + 9 {
		b := backendtest.Alloc(t, d, 4)
		defer b.Close()
		bufs = append(bufs, b)
		launches = append(launches, backend.Launch{Kernel: k, Groups: [3]uint32{1, 1, 1}, Args: []backend.Buffer{b}})
	}
	for _, part := range [][]backend.Launch{launches[:kept-1], launches[kept-1 : kept+1], launches[kept+1:]} {
		backendtest.Do(t, d, part...)
	}
	for i, b := range bufs {
		got := make([]byte, 4)
		if err := b.Read(t.Context(), 0, got); err != nil || got[0] != 1 {
			t.Fatalf("buffer %d: read %v, error %v", i, got, err)
		}
	}
}
