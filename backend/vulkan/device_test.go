// What the contract does not ask: matrices, large and split buffers, staging, the garbage collector, the
// pipeline cache. Each test runs on the first device, where there is one.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan_test

import (
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
	"github.com/spmmrun/spmm/backend/vulkan"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/half"
)

//go:generate ../../tools/shaderc glslang --quiet -V --target-env vulkan1.2 -o testdata/zfill.spv testdata/fill.comp
//go:generate ../../tools/shaderc glslang --quiet -V --target-env vulkan1.2 -o testdata/zdot.spv testdata/dot.comp
//go:generate ../../tools/shaderc glslang --quiet -V --target-env vulkan1.2 -o testdata/zempty.spv testdata/empty.comp
//go:generate ../../tools/shaderc glslang --quiet -V --target-env vulkan1.2 -DAB=float16_t -DCD=float -o testdata/zgemm_f16.spv testdata/gemm.comp
//go:generate ../../tools/shaderc glslang --quiet -V --target-env vulkan1.2 -DAB=int8_t -DCD=int -o testdata/zgemm_s8.spv testdata/gemm.comp

//go:embed testdata/*.spv
var shaders embed.FS

// softvk is which software driver tools/softvk/run started the test on: "", "matrices", "plain", "amd".
var softvk = os.Getenv("SPMM_SOFTVK")

// open opens the first device; nil where there is none, which Require has judged. Devices that only compile
// are opened for those tests that ask for them.
func open(t testing.TB, compile bool) backend.Device {
	t.Helper()
	infos := backendtest.Require(t, driver(t))
	if len(infos) == 0 && softvk != "" {
		t.Fatal("no device on the software driver")
	}
	if len(infos) == 0 || compile != (infos[0].Memory == 0) {
		return nil
	}
	return backendtest.Open(t, driver(t))
}

func module(name string) []byte {
	code, err := shaders.ReadFile("testdata/z" + name + ".spv")
	if err != nil {
		panic(err)
	}
	return code
}

func words(v ...uint32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

// fillBinary writes dst[i] = i·mul + add.
func fillBinary() backend.Binary {
	return backend.Binary{Name: "fill", Kind: backend.CodeSPIRV, Code: module("fill"), Entry: "main", Args: 1,
		ParamBytes: 12, Local: [3]uint32{64, 1, 1}}
}

func fillLaunch(k backend.Kernel, dst backend.Buffer, n, mul, add uint32) backend.Launch {
	return backend.Launch{Kernel: k, Groups: [3]uint32{256, 1, 1}, Args: []backend.Buffer{dst}, Params: words(n, mul, add)}
}

// checkFill samples a filled buffer, its ends included.
func checkFill(t testing.TB, b backend.Buffer, n, mul, add uint32) {
	t.Helper()
	some := min(1000, n)
	for _, first := range []uint32{0, (n - some) / 2, n - some} {
		for i, got := range backendtest.Download[uint32](t, b, 4*int64(first), int(some)) {
			if want := (first+uint32(i))*mul + add; got != want {
				t.Fatalf("word %d of %d is %d, want %d", first+uint32(i), n, got, want)
			}
		}
	}
}

// Packed dot products compile where Caps.Dot4 says that they do, and nowhere else.
func TestDot4(t *testing.T) {
	d := open(t, false)
	if d == nil {
		return
	}
	bin := fillBinary()
	bin.Name, bin.Code = "dot", module("dot")
	k, err := d.Load(bin)
	if dot4 := d.Caps().Dot4; (err == nil) != dot4 {
		t.Fatalf("Dot4 is %v, and a packed dot product: %v", dot4, err)
	}
	if err != nil {
		if !errors.Is(err, backend.ErrUnsupported) || softvk != "" {
			t.Error(err)
		}
		return
	}
	defer k.Close()
	b := backendtest.Alloc(t, d, 4)
	defer b.Close()
	backendtest.Do(t, d, fillLaunch(k, b, 1, 0x01ff80fe, 0x02030405))
	if got, want := backendtest.Download[int32](t, b, 0, 1)[0], int32(1*2-1*3-128*4-2*5); got != want {
		t.Errorf("a packed dot product is %v, want %d", got, want)
	}
}

// gemmBinary multiplies in tiles of the shape by subgroups of the size.
func gemmBinary(s backend.MatrixShape, subgroup uint32) backend.Binary {
	name := map[dtype.Type]string{dtype.F16: "gemm_f16", dtype.S8: "gemm_s8"}[s.A]
	return backend.Binary{
		Name: fmt.Sprint(s), Kind: backend.CodeSPIRV, Code: module(name), Entry: "main", Args: 3, ReadOnly: 3, ParamBytes: 8,
		Local: [3]uint32{subgroup, 1, 1}, Subgroup: subgroup, Matrix: true,
		Spec: []backend.SpecConst{{ID: 0, Value: subgroup}, {ID: 1, Value: s.M}, {ID: 2, Value: s.N}, {ID: 3, Value: s.K}},
	}
}

// wide is the AMD and NVIDIA tile.
var wide = backend.MatrixShape{M: 16, N: 16, K: 16, A: dtype.F16, B: dtype.F16, C: dtype.F32, D: dtype.F32}

// Every listed shape with types that the test has code for multiplies small integers exactly.
func TestMatrices(t *testing.T) {
	d := open(t, false)
	if d == nil {
		return
	}
	c := d.Caps()
	var shapes []backend.MatrixShape
	for _, s := range c.Matrix {
		f16 := s.A == dtype.F16 && s.B == dtype.F16 && s.C == dtype.F32 && s.D == dtype.F32
		s8 := s.A == dtype.S8 && s.B == dtype.S8 && s.C == dtype.S32 && s.D == dtype.S32
		if (f16 || s8) && !s.Saturating {
			shapes = append(shapes, s)
		}
	}
	switch softvk {
	case "matrices": // Mesa's CPU driver computes other vendors' tiles, too
		if len(shapes) < 2 {
			t.Fatalf("the device lists %v", c.Matrix)
		}
		if os.Getenv(underValidation) == "" {
			shapes = append(shapes, wide)
		}
	case "plain":
		if c.Matrix != nil {
			t.Fatalf("a driver without matrices lists %v", c.Matrix)
		}
	}
	if len(c.Matrix) == 0 {
		if _, err := d.Load(gemmBinary(wide, c.SubgroupMin)); !errors.Is(err, backend.ErrUnsupported) {
			t.Errorf("matrices on a device without: %v, want ErrUnsupported", err)
		}
	}
	for _, s := range shapes {
		t.Run(s.String(), func(t *testing.T) {
			if s.A == dtype.F16 {
				gemm(t, d, s, func(x int) half.F16 { return half.F16From(float32(x)) }, func(x float32) int { return int(x) })
			} else {
				gemm(t, d, s, func(x int) int8 { return int8(x) }, func(x int32) int { return int(x) })
			}
		})
	}
}

func gemm[AB, CD backend.Plain](t *testing.T, d backend.Device, s backend.MatrixShape, from func(int) AB,
	to func(CD) int) {
	m, n, k := 3*int(s.M), 2*int(s.N), 4*int(s.K)
	ai, bi := make([]int, m*k), make([]int, k*n)
	a, b := make([]AB, m*k), make([]AB, k*n)
	for i := range a {
		ai[i] = i*7%13 - 6
		a[i] = from(ai[i])
	}
	for i := range b {
		bi[i] = i*5%11 - 5
		b[i] = from(bi[i])
	}
	kern := backendtest.Load(t, d, gemmBinary(s, d.Caps().SubgroupMax))
	out := backendtest.Upload(t, d, make([]CD, m*n))
	backendtest.Do(t, d, backend.Launch{Kernel: kern, Groups: [3]uint32{2, 3, 1},
		Args:   []backend.Buffer{backendtest.Upload(t, d, a), backendtest.Upload(t, d, b), out},
		Params: words(uint32(n), uint32(k))})
	for i, v := range backendtest.Download[CD](t, out, 0, m*n) {
		want := 0
		for x := range k {
			want += ai[i/n*k+x] * bi[x*n+i%n]
		}
		if to(v) != want {
			t.Fatalf("C[%d,%d] = %v, want %d", i/n, i%n, v, want)
		}
	}
}

// On a device that only compiles, kernels load and everything else is refused.
func TestCompileOnly(t *testing.T) {
	d := open(t, true)
	if d == nil {
		if softvk == "amd" {
			t.Fatal("no device that only compiles")
		}
		return
	}
	if !slices.Contains(d.Caps().Matrix, wide) {
		t.Errorf("the device lists %v", d.Caps().Matrix)
	}
	backendtest.Load(t, d, fillBinary())
	for _, subgroup := range []uint32{32, 64} {
		b := gemmBinary(wide, subgroup)
		b.Local[0], b.Spec[0].Value = 64, 64 // the validation layer wants a multiple of the default size
		backendtest.Load(t, d, b)
	}
	if _, err := d.Load(gemmBinary(wide, 16)); !errors.Is(err, backend.ErrUnsupported) {
		t.Errorf("a subgroup size the device lacks: %v, want ErrUnsupported", err)
	}
	if _, err := d.Alloc(64); !errors.Is(err, backend.ErrUnsupported) {
		t.Errorf("Alloc: %v, want ErrUnsupported", err)
	}
	empty := backend.Binary{Name: "empty", Kind: backend.CodeSPIRV, Code: module("empty"), Entry: "main",
		Local: [3]uint32{1, 1, 1}}
	if _, err := d.Run(t.Context(), backend.Launch{Kernel: backendtest.Load(t, d, empty),
		Groups: [3]uint32{1, 1, 1}}); !errors.Is(err, backend.ErrUnsupported) {
		t.Errorf("Run: %v, want ErrUnsupported", err)
	}
}

// A storage buffer binding ends at 128 MiB on Mesa's CPU driver; an address does not.
func TestLargeBuffer(t *testing.T) {
	d := open(t, false)
	if d == nil {
		return
	}
	const n = 160 << 20 / 4
	b := backendtest.Alloc(t, d, 4*n)
	backendtest.Do(t, d, fillLaunch(backendtest.Load(t, d, fillBinary()), b, n, 3, 7))
	checkFill(t, b, n, 3, 7)
}

// A buffer beyond the largest allocation is made of several, where the device can.
func TestSplitBuffer(t *testing.T) {
	d := open(t, false)
	if d == nil {
		return
	}
	const n = 20<<20/4 + 5
	vulkan.LimitAllocations(d, 3<<20)
	if !vulkan.HasSparse(d) {
		if _, err := d.Alloc(4 * n); !errors.Is(err, backend.ErrUnsupported) {
			t.Errorf("a buffer beyond the limit: %v, want ErrUnsupported", err)
		}
		return
	}
	before := vulkan.PoolBytes(d)
	b := backendtest.Alloc(t, d, 4*n)
	k := backendtest.Load(t, d, fillBinary())
	backendtest.Do(t, d, fillLaunch(k, b, n, 5, 11))
	checkFill(t, b, n, 5, 11)
	in := slices.Repeat([]uint32{1, 2, 3, 4}, n/4)
	if err := b.Write(t.Context(), 4, backend.Bytes(in)); err != nil {
		t.Fatal(err)
	}
	if got := backendtest.Download[uint32](t, b, 0, len(in)+1); got[0] != 11 || !slices.Equal(got[1:], in) {
		t.Error("a split buffer reads back differently")
	}
	b.Close()
	if after := vulkan.PoolBytes(d); after != before {
		t.Errorf("%d bytes of memory after the buffer was closed, %d before", after, before)
	}
}

// The whole contract again through staging, which devices without shared memory use always.
func TestContractStaged(t *testing.T) {
	if compilesOnly(t) {
		return
	}
	vulkan.StagedOnly(t)
	backendtest.Run(t, runs{driver(t)})
}

// Copies of several staging slots, at an odd place.
func TestStagedChunks(t *testing.T) {
	vulkan.StagedOnly(t)
	d := open(t, false)
	if d == nil {
		return
	}
	const size, off = 50<<20 + 3, 12
	b, p := backendtest.Alloc(t, d, size), make([]byte, size-off)
	for i := range p {
		p[i] = byte(i>>16) ^ byte(i)
	}
	if err := b.Write(t.Context(), off, p); err != nil {
		t.Fatal(err)
	}
	if got := backendtest.Download[byte](t, b, off, len(p)); !slices.Equal(got, p) {
		t.Error("50 MiB read back differently")
	}
	if got := backendtest.Download[byte](t, b, 40<<20, 8); !slices.Equal(got, p[40<<20-off:][:8]) {
		t.Error("8 bytes read back differently")
	}
	// Cancelled on the way: an error, and nothing in flight that disturbs what follows.
	ctx := &countdown{Context: t.Context(), n: 3}
	if err := b.Read(ctx, off, make([]byte, len(p))); !errors.Is(err, context.Canceled) {
		t.Errorf("Read cancelled after some chunks: %v", err)
	}
	ctx.n = 3
	if err := b.Write(ctx, off, p); !errors.Is(err, context.Canceled) {
		t.Errorf("Write cancelled after some chunks: %v", err)
	}
	if got := backendtest.Download[byte](t, b, off, len(p)); !slices.Equal(got, p) {
		t.Error("50 MiB read back differently after a cancelled copy")
	}
}

// countdown is a context that is cancelled when its Err has been called n times.
type countdown struct {
	context.Context
	n int
}

func (c *countdown) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

// The context is looked at between batches, and what ran before stays right.
func TestCancelBetweenBatches(t *testing.T) {
	d := open(t, false)
	if d == nil {
		return
	}
	k, b := backendtest.Load(t, d, fillBinary()), backendtest.Alloc(t, d, 4*1000)
	var ls []backend.Launch
	for i := range uint32(1000) {
		ls = append(ls, fillLaunch(k, b, 1000, 1, i))
	}
	backendtest.Do(t, d, ls[0]) // a kernel's first launch is a batch of its own
	if _, err := d.Run(&countdown{Context: t.Context(), n: 6}, ls...); !errors.Is(err, context.Canceled) {
		t.Fatalf("Run: %v, want a cancellation", err)
	}
	if got := backendtest.Download[uint32](t, b, 0, 1)[0]; got == 0 || got >= 999 {
		t.Errorf("the last launch that ran is %d of 1000", got)
	}
	backendtest.Do(t, d, ls...)
	checkFill(t, b, 1000, 1, 999)
}

// Nothing that C holds may be the collector's: open, load, run and copy under constant collection.
func TestGarbageCollection(t *testing.T) {
	if open(t, false) == nil {
		return
	}
	stop, collecting := make(chan struct{}), sync.WaitGroup{}
	collecting.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	for turn := range 3 {
		d := open(t, false)
		k := backendtest.Load(t, d, fillBinary())
		for i := range uint32(100) {
			n := 1000 + 64*i
			b := backendtest.Alloc(t, d, int64(4*n))
			backendtest.Do(t, d, fillLaunch(k, b, n, i, uint32(turn)), fillLaunch(k, b, n, i+1, i))
			checkFill(t, b, n, i+1, i)
		}
	}
	close(stop)
	collecting.Wait()
}

func TestRunAllocatesNothing(t *testing.T) {
	d := open(t, false)
	if d == nil {
		return
	}
	k, b, ctx := backendtest.Load(t, d, fillBinary()), backendtest.Alloc(t, d, 4*1000), t.Context()
	ls := []backend.Launch{fillLaunch(k, b, 1000, 1, 1), fillLaunch(k, b, 1000, 2, 2)}
	n := uint32(0)
	if got := testing.AllocsPerRun(20, func() {
		binary.LittleEndian.PutUint32(ls[1].Params[8:], n) // another launch each time: nothing is recorded twice
		n++
		if _, err := d.Run(ctx, ls...); err != nil {
			t.Fatal(err)
		}
	}); got > 0 {
		t.Errorf("a repeated Run makes %v heap allocations", got)
	}
	checkFill(t, b, 1000, 2, n-1)
}

// A kernel that is closed takes the command buffer that was recorded with it along, even if another one gets
// its handle.
func TestRecordedKernelClosed(t *testing.T) {
	d := open(t, false)
	if d == nil {
		return
	}
	b := backendtest.Alloc(t, d, 4*1000)
	for i := range uint32(20) {
		k := backendtest.Load(t, d, fillBinary())
		backendtest.Do(t, d, fillLaunch(k, b, 1000, i, i))
		backendtest.Do(t, d, fillLaunch(k, b, 1000, i, i))
		checkFill(t, b, 1000, i, i)
		k.Close()
	}
}

func TestTimestamps(t *testing.T) {
	d := open(t, false)
	if d == nil {
		return
	}
	const n = 4 << 20
	k, b := backendtest.Load(t, d, fillBinary()), backendtest.Alloc(t, d, 4*n)
	tm := backendtest.Do(t, d, fillLaunch(k, b, n, 1, 1))
	if softvk != "" && tm.Device <= 0 {
		t.Error("no device time")
	}
	if tm.Device > tm.Host {
		t.Errorf("the device worked %v of %v", tm.Device, tm.Host)
	}
	if double := backendtest.Do(t, d, fillLaunch(k, b, n, 1, 1), fillLaunch(k, b, n, 1, 2)); tm.Device > 0 &&
		double.Device <= 0 {
		t.Errorf("two launches took %v", double.Device)
	}
}

// Memory of closed buffers is reused, whatever the order; blocks that are empty go back.
func TestPool(t *testing.T) {
	d := open(t, false)
	if d == nil {
		return
	}
	var bufs []backend.Buffer
	for i := range 300 {
		bufs = append(bufs, backendtest.Alloc(t, d, int64(i*7919%100_000+1)))
	}
	shared := vulkan.PoolBytes(d)
	if shared > 80<<20 {
		t.Errorf("15 MB of buffers take %d bytes", shared)
	}
	large := backendtest.Alloc(t, d, 40<<20)
	if got := vulkan.PoolBytes(d); got < shared+40<<20 {
		t.Errorf("%d bytes with a large buffer, %d without", got, shared)
	}
	large.Close()
	for i := range bufs {
		bufs[i*7%len(bufs)].Close()
	}
	if got := vulkan.PoolBytes(d); got != shared {
		t.Errorf("%d bytes when all buffers are closed, want the one shared block of %d", got, shared)
	}
	if b := backendtest.Alloc(t, d, 12<<20); vulkan.PoolBytes(d) != shared {
		t.Errorf("a buffer of %d bytes did not fit into an empty block", b.Size())
	}
}

func TestModuleChecks(t *testing.T) {
	d := open(t, false)
	if d == nil {
		return
	}
	for what, c := range map[string]struct {
		change func(code []byte)
		want   error
	}{
		"newer SPIR-V": {func(c []byte) { c[5], c[6] = 9, 1 }, backend.ErrUnsupported},
		// No lack of the device: whoever adds a capability to a kernel must see that the backend does not enable it.
		// Geometry
		"a capability never used": {func(c []byte) { binary.LittleEndian.PutUint32(c[24:], 2) }, backend.ErrCompile},
		"an unknown capability":   {func(c []byte) { binary.LittleEndian.PutUint32(c[24:], 987654) }, backend.ErrCompile},
	} {
		b := fillBinary()
		b.Code = slices.Clone(b.Code)
		c.change(b.Code)
		if _, err := d.Load(b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	for n := range len(fillBinary().Code) {
		b := fillBinary()
		b.Code = b.Code[:n]
		if _, err := d.Load(b); err == nil {
			t.Fatalf("a module cut to %d bytes loads", n)
		}
	}
}

func TestCacheFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SPMM_CACHE", "")
	t.Setenv("XDG_CACHE_HOME", dir)
	use := func() backend.Device {
		d := open(t, false)
		if d != nil {
			k, b := backendtest.Load(t, d, fillBinary()), backendtest.Alloc(t, d, 4000)
			backendtest.Do(t, d, fillLaunch(k, b, 1000, 2, 3))
			checkFill(t, b, 1000, 2, 3)
			d.Close()
		}
		return d
	}
	d := use()
	if d == nil {
		return
	}
	file := vulkan.CacheFile(d)
	good, err := os.ReadFile(file)
	if err != nil || len(good) < 60 || filepath.Dir(filepath.Dir(file)) != dir {
		t.Fatalf("cache file %s: %d bytes, %v", file, len(good), err)
	}
	if vulkan.CacheLoaded(use()) != len(good)-40 {
		t.Error("the cache file was not used")
	}
	for what, bad := range map[string][]byte{
		"empty": {}, "short": good[:20], "truncated": good[:len(good)-1], "longer": append(slices.Clone(good), 0),
		"a flipped bit": append(slices.Clone(good[:len(good)-1]), good[len(good)-1]^4), "other": make([]byte, 5000),
	} {
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if vulkan.CacheLoaded(use()) != 0 {
			t.Errorf("%s cache file was used", what)
		}
		if now, _ := os.ReadFile(file); len(now) != len(good) {
			t.Errorf("%s cache file was not replaced", what)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("left in the cache: %v, %v", left, err)
	}
	// No directory to be had is no error.
	t.Setenv("XDG_CACHE_HOME", filepath.Join(file, "x"))
	use()
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	use()
}

func BenchmarkRun(b *testing.B) {
	d := open(b, false)
	if d == nil {
		b.Skip("no device")
	}
	k, dst, ctx := backendtest.Load(b, d, fillBinary()), backendtest.Alloc(b, d, 4000), b.Context()
	for _, n := range []int{1, 10, 100} {
		for _, same := range []bool{true, false} {
			name := fmt.Sprintf("%d launches, recorded each time", n)
			if same {
				name = fmt.Sprintf("%d launches, recorded once", n)
			}
			b.Run(name, func(b *testing.B) {
				ls := make([]backend.Launch, n)
				for i := range ls {
					ls[i] = fillLaunch(k, dst, 1, 1, 1)
					ls[i].Groups[0] = 1
				}
				i := uint32(0)
				b.ReportAllocs()
				for b.Loop() {
					if i++; !same {
						binary.LittleEndian.PutUint32(ls[0].Params[8:], i%math.MaxUint32)
					}
					if _, err := d.Run(ctx, ls...); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkCopy(b *testing.B) {
	for _, staged := range []bool{false, true} {
		b.Run(map[bool]string{false: "mapped if possible", true: "staged"}[staged], func(b *testing.B) {
			if staged {
				vulkan.StagedOnly(b)
			}
			d := open(b, false)
			if d == nil {
				b.Skip("no device")
			}
			const n = 64 << 20
			buf, p := backendtest.Alloc(b, d, n), make([]byte, n)
			for name, f := range map[string]func(context.Context, int64, []byte) error{"write": buf.Write, "read": buf.Read} {
				b.Run(name, func(b *testing.B) {
					b.SetBytes(n)
					for b.Loop() {
						if err := f(b.Context(), 0, p); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}
