// What the contract does not cover: programs that start anywhere, loading, clocks, long runs cancelled, kernels that
// fault.

//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
	"github.com/spmmrun/spmm/backend/cuda"
)

// The program needs no libcuda to start, and shows no cu* function to the libraries it loads: they
// would call it in place of the driver's.
func TestStartsAnywhere(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	libs, err := f.ImportedLibraries()
	if err != nil || len(libs) == 0 {
		t.Fatalf("needed libraries: %v, %v", libs, err)
	}
	if slices.ContainsFunc(libs, func(l string) bool { return strings.Contains(l, "cuda") }) {
		t.Errorf("the program needs %v", libs)
	}
	dynamic, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range dynamic {
		if strings.HasPrefix(s.Name, "cu") && len(s.Name) > 2 && s.Name[2] >= 'A' && s.Name[2] <= 'Z' {
			t.Errorf("dynamic symbol %s", s.Name)
		}
	}
}

// faultPTX stores outside every allocation; spinPTX takes p clocks on one thread.
const (
	faultPTX = `.version 7.0
.target sm_75
.address_size 64
.visible .entry fault(.param .u64 dst)
{
    .reg .b64 d;
    ld.param.u64 d, [dst];
    mov.u64 d, 64;
    st.global.u64 [d], d;
    ret;
}
`
	spinPTX = `.version 7.0
.target sm_75
.address_size 64
.visible .entry spin(.param .align 4 .b8 p[4])
{
    .reg .pred more;
    .reg .b32 n, from, t;
    ld.param.u32 n, [p];
    mov.u32 from, %clock;
again:
    mov.u32 t, %clock;
    sub.u32 t, t, from;
    setp.lt.u32 more, t, n;
    @more bra again;
    ret;
}
`
)

// first opens the first device, or returns nil where there is none.
func first(t testing.TB) backend.Device {
	t.Helper()
	return backendtest.Open(t, driver(t))
}

// spinOf is the kernel of spinPTX, or of a variation of that.
func spinOf(ptx string) backend.Binary {
	return backend.Binary{Name: "test/spin", Kind: backend.CodePTX, Code: []byte(ptx), Entry: "spin",
		ParamBytes: 4, Local: [3]uint32{1, 1, 1}}
}

// spin returns a launch that keeps the device busy for n clocks.
func spin(t testing.TB, d backend.Device, clocks uint32) backend.Launch {
	t.Helper()
	k, err := d.Load(spinOf(spinPTX))
	if err != nil {
		t.Fatal(err)
	}
	return backend.Launch{Kernel: k, Groups: [3]uint32{1, 1, 1}, Params: backend.Bytes([]uint32{clocks})}
}

// What the driver's compiler says of PTX reaches whoever loads it.
func TestCompilerLog(t *testing.T) {
	d := first(t)
	if d == nil {
		return
	}
	_, err := d.Load(spinOf(strings.Replace(spinPTX, "setp.lt.u32", "no.such.instruction", 1)))
	if !errors.Is(err, backend.ErrCompile) || !strings.Contains(err.Error(), "ptxas") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("Load: %v; want one line that ptxas wrote", err)
	}
}

// longPTX is spinPTX with 20,000 instructions more, which take the driver's compiler a while; no other has its number.
func longPTX() string {
	var more strings.Builder
	number := rand.Uint32()
	for i := range uint32(10_000) {
		fmt.Fprintf(&more, "    mad.lo.u32 n, n, %d, from;\n    xor.b32 n, n, from;\n", number+i*i)
	}
	return strings.Replace(spinPTX, "again:\n", more.String()+"again:\n", 1)
}

// loadAll loads n long kernels from n goroutines.
func loadAll(t testing.TB, d backend.Device, n, goroutines int) {
	code := make(chan string, n)
	for range n {
		code <- longPTX()
	}
	close(code)
	var loads sync.WaitGroup
	for range goroutines {
		loads.Go(func() {
			for c := range code {
				if _, err := d.Load(spinOf(c)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	loads.Wait()
}

// Kernels are loaded by several goroutines while launches go on.
func TestLoadAtOnce(t *testing.T) {
	d := first(t)
	if d == nil {
		return
	}
	l := spin(t, d, 1000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		loadAll(t, d, 16, 8)
	}()
	for loading := true; loading; {
		select {
		case <-done:
			loading = false
		default:
		}
		if _, err := d.Run(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
}

// What it takes to compile 16 kernels, by the goroutines that load them.
func BenchmarkLoad(b *testing.B) {
	for _, goroutines := range []int{1, 4, 16} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			d := first(b)
			if d == nil {
				return
			}
			for b.Loop() {
				loadAll(b, d, 16, goroutines)
			}
		})
	}
}

// Device time grows with the work, and a run on a real device allocates nothing.
func TestTiming(t *testing.T) {
	d := first(t)
	if d == nil {
		return
	}
	one := []backend.Launch{spin(t, d, 1_000_000)}
	ten := slices.Repeat(one, 10)
	var times [2]time.Duration
	for i, ls := range [][]backend.Launch{one, ten} {
		for range 3 {
			tm, err := d.Run(t.Context(), ls...)
			if err != nil {
				t.Fatal(err)
			}
			if tm.Device <= 0 || tm.Device > tm.Host {
				t.Errorf("device %v of host %v", tm.Device, tm.Host)
			}
			times[i] = tm.Device
		}
	}
	if r := float64(times[1]) / float64(times[0]); r < 5 || r > 20 {
		t.Errorf("ten launches take %v, one takes %v", times[1], times[0])
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(10, func() { d.Run(ctx, ten...) }); n != 0 {
		t.Errorf("Run allocates %v times", n)
	}
}

// A run of about 20 seconds ends soon after its context.
func TestCancelLongRun(t *testing.T) {
	d := first(t)
	if d == nil {
		return
	}
	ls := slices.Repeat([]backend.Launch{spin(t, d, 1_000_000)}, 30_000)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := d.Run(ctx, ls...); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Run: %v", err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the run went on for %v", took)
	}
}

const faultEnv = "SPMM_CUDA_TEST_FAULT"

// A fault in a kernel is a lost device. CUDA is lost to the process with it, so the test has one of its
// own: opening the device again must say so.
func TestFault(t *testing.T) {
	if first(t) == nil {
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), faultEnv+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(faultEnv) == "" {
		os.Exit(m.Run())
	}
	if err := fault(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func fault() error {
	ctx := context.Background()
	drv, err := backend.Find("cuda")
	if err != nil {
		return err
	}
	if err := faultOnce(ctx, drv); err != nil {
		return err
	}
	d, err := drv.Open(ctx, backend.Info{Backend: "cuda"})
	if err == nil {
		return d.Close()
	}
	if !errors.Is(err, backend.ErrUnavailable) || !strings.Contains(err.Error(), "start the program again") {
		return fmt.Errorf("opening the device again: %w", err)
	}
	return nil
}

func faultOnce(ctx context.Context, drv backend.Driver) error {
	d, err := drv.Open(ctx, backend.Info{Backend: "cuda"})
	if err != nil {
		return err
	}
	b, err := d.Alloc(64)
	if err != nil {
		return err
	}
	k, err := d.Load(backend.Binary{Name: "test/fault", Kind: backend.CodePTX, Code: []byte(faultPTX), Entry: "fault",
		Args: 1, Local: [3]uint32{1, 1, 1}})
	if err != nil {
		return err
	}
	if _, err := d.Run(ctx, backend.Launch{Kernel: k, Groups: [3]uint32{1, 1, 1},
		Args: []backend.Buffer{b}}); !errors.Is(err, backend.ErrDeviceLost) {
		return fmt.Errorf("run of a fault: %v", err)
	}
	if err := b.Write(ctx, 0, make([]byte, 4)); !errors.Is(err, backend.ErrDeviceLost) {
		return fmt.Errorf("write after a fault: %v", err)
	}
	return d.Close()
}

// What a run costs, by the number of launches, of a kernel that does nothing.
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := first(b)
			if d == nil {
				return
			}
			ls := slices.Repeat([]backend.Launch{spin(b, d, 0)}, n)
			var device time.Duration
			b.ReportAllocs()
			for b.Loop() {
				t, err := d.Run(b.Context(), ls...)
				if err != nil {
					b.Fatal(err)
				}
				device += t.Device
			}
			b.ReportMetric(float64(device.Nanoseconds())/float64(b.N*n), "device-ns/launch")
		})
	}
}

func BenchmarkCopy(b *testing.B) {
	for _, size := range []int{4, 64 << 10, 1 << 20, 16 << 20, 256 << 20} {
		d := first(b)
		if d == nil {
			return
		}
		buf, err := d.Alloc(int64(size))
		if err != nil {
			b.Fatal(err)
		}
		p := make([]byte, size)
		for name, f := range map[string]func(context.Context, int64, []byte) error{"write": buf.Write, "read": buf.Read} {
			b.Run(fmt.Sprintf("%s-%d", name, size), func(b *testing.B) {
				b.SetBytes(int64(size))
				for b.Loop() {
					if err := f(b.Context(), 0, p); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		buf.Close()
	}
}

// recorded returns a recording of 16 launches that take next to nothing, once it has run.
func recorded(t testing.TB, d backend.Device) (backend.Recording, []backend.Launch) {
	t.Helper()
	ls := slices.Repeat([]backend.Launch{spin(t, d, 100)}, 16)
	r, err := d.Record(ls...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	for range 2 {
		if _, err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return r, ls
}

// The driver takes a recording as a graph: nothing says so if it does not, since launches one by one do as well.
func TestRecordingIsAGraph(t *testing.T) {
	d := first(t)
	if d == nil {
		return
	}
	if r, _ := recorded(t, d); cuda.Graphs(r) != 1 {
		t.Errorf("16 short launches are %d graphs, want 1 (drivers before CUDA 11.4 make none)", cuda.Graphs(r))
	}
}

// 16 launches that take next to nothing, as a list and as a recording.
func BenchmarkSixteen(b *testing.B) {
	d := first(b)
	if d == nil {
		return
	}
	r, ls := recorded(b, d)
	for name, run := range map[string]func() (backend.Timing, error){
		"list":      func() (backend.Timing, error) { return d.Run(b.Context(), ls...) },
		"recording": func() (backend.Timing, error) { return r.Run(b.Context()) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
