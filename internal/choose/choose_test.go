// What is picked for a large GPU. No such device is needed to pick: only its abilities and rates.

package choose

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/device/devicetest"
	"github.com/spmmrun/spmm/internal/work"
	_ "github.com/spmmrun/spmm/portable/cpu"
)

// largeGPU has what an NVIDIA H200 lists and what was measured on it, through CUDA, or through Vulkan without
// matrix units.
func largeGPU(code backend.Code) *device.Device {
	var shapes []backend.MatrixShape
	if code == backend.CodePTX {
		for _, s := range []struct {
			k uint32
			t dtype.Type
		}{{16, dtype.F16}, {8, dtype.F16}, {8, dtype.TF32}, {4, dtype.TF32}} {
			shapes = append(shapes, backend.MatrixShape{M: 16, N: 8, K: s.k, A: s.t, B: s.t, C: dtype.F32, D: dtype.F32})
		}
	}
	return devicetest.New(devicetest.H200(code, shapes...), devicetest.H200Rates(
		map[string]float64{"16×8×16 f16": 6.35e14, "16×8×8 f16": 4.83e14, "16×8×8 tf32": 3.15e14}))
}

// resolve returns work with a matrix.
func resolve(t *testing.T, a formats.Encoded, o work.Work) *work.Work {
	t.Helper()
	w, err := o.Resolve(a, work.Form{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// chosen returns the first candidate that can hold the matrix.
func chosen(t *testing.T, d *device.Device, a formats.Sparse, o work.Work) *Candidate {
	t.Helper()
	cs, err := Choose(t.Context(), d, resolve(t, a, o))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cs {
		if _, err := c.Pack(t.Context(), work.NewMatrix(a)); err == nil {
			return c
		}
	}
	t.Fatal("nothing can hold the matrix")
	return nil
}

// What is picked is, of what was measured on such a device, within a few percent of the fastest.
func TestChoice(t *testing.T) {
	for _, c := range []struct {
		name   string
		code   backend.Code
		matrix string
		prec   dtype.Type
		cols   int
		format string // any of these
	}{
		{"8-row vectors", backend.CodePTX, "gen:vector,rows=4096,v=8,density=0.02", dtype.F16, 512, "cvse tiledcsr jigsaw"},
		// 5.71 and 5.68
		{"16-row vectors", backend.CodePTX, "gen:vector,rows=2048,v=16,density=0.1", dtype.F16, 128, "hrpb dense"},
		// 24.8 µs, sparse24r 29.7
		{"scattered entries, many columns", backend.CodePTX, "gen:uniform,rows=4096,density=0.1", dtype.F16, 512, "dense"},
		{"few zeros", backend.CodePTX, "gen:uniform,rows=2048,density=0.7", dtype.F16, 512, "dense"},
		{"half zeros, many columns", backend.CodePTX, "gen:uniform,rows=4096,cols=2048,density=0.5", dtype.F16, 2048,
			"dense"},
		{"half zeros, few columns", backend.CodePTX, "gen:uniform,rows=28672,cols=2048,density=0.5", dtype.F16, 8,
			"lanestream"},
		{"few entries", backend.CodePTX, "gen:uniform,rows=4096,density=0.005", dtype.F16, 128, "csr"},
		// 6.2 µs, lanestream 9.4, dense 8.7
		{"a fifth of the entries, one column", backend.CodePTX, "gen:uniform,rows=4096,density=0.2", dtype.F16, 1, "csr"},
		// 8.7 and 8.9, csr 16.3
		{"a tenth of the entries, 16 columns", backend.CodePTX, "gen:uniform,rows=4096,density=0.1", dtype.F16, 16,
			"lanestream dense"},
		// 9.6, cvse 20
		{"8-row vectors, 64 columns", backend.CodePTX, "gen:vector,rows=4096,v=8,density=0.2", dtype.F16, 64, "dense"},
		// 9.8, 10.0 and 9.5
		{"few 8-row vectors, 128 columns", backend.CodePTX, "gen:vector,rows=4096,v=8,density=0.05", dtype.F16, 128,
			"cvse hrpb dense"},
		{"a tenth of the entries, one column", backend.CodePTX, "gen:uniform,rows=12288,cols=4096,density=0.1", dtype.F16, 1,
			"csr"},
		{"2:4, few columns", backend.CodePTX, "gen:nm,rows=4096,cols=2048,n=2,m=4", dtype.F16, 8, "nm"},
		{"2:4, many columns", backend.CodePTX, "gen:nm,rows=4096,cols=2048,n=2,m=4", dtype.F16, 512, "nm"},
		{"2:16 in tall units", backend.CodePTX, "gen:nm,rows=2048,cols=2048,n=2,m=16,v=32", dtype.F16, 512, "nm"},
		{"a graph", backend.CodePTX, "gen:powerlaw,rows=40000,nnz-per-row=8", dtype.F16, 128, "csr hrpb"},
		{"a row that is full", backend.CodePTX, "gen:onedense,rows=20000,nnz-per-row=4", dtype.F32, 128, "csr"},
		{"vectors in tf32", backend.CodePTX, "gen:vector,rows=2048,v=16,density=0.1", dtype.TF32, 128, "hrpb"},
		{"vectors in f32, which tensor cores do not compute", backend.CodePTX, "gen:vector,rows=2048,v=16,density=0.1",
			dtype.F32, 128, "csr hrpb"},
		{"vectors in f32, many columns", backend.CodePTX, "gen:vector,rows=4096,v=8,density=0.1", dtype.F32, 512,
			"cvse tiledcsr hrpb"},
		{"a graph without matrix units", backend.CodeSPIRV, "gen:powerlaw,rows=20000,nnz-per-row=8", dtype.F32, 128, "csr"},
		{"a mesh without matrix units", backend.CodeSPIRV, "gen:banded,rows=5000,band=20,density=0.3", dtype.F32, 128, "csr"},
		{"no entries", backend.CodeSPIRV, "gen:uniform,rows=100,nnz-per-row=0", dtype.F32, 128, "csr"},
	} {
		a, err := gen.CSR(c.matrix)
		if err != nil {
			t.Fatal(err)
		}
		got := chosen(t, largeGPU(c.code), a, work.Work{Precision: c.prec, Cols: c.cols})
		if !slices.Contains(strings.Fields(c.format), got.Kernel.Name) || c.prec == dtype.F32 && got.Variant.In != dtype.F32 {
			t.Errorf("%s: picked %s because %s; want one of %s", c.name, got.name(), got.Why, c.format)
		}
	}
}

// Of a graph nothing is packed that would store a slot for each few places of the matrix; of a matrix that is asked for
// in such a format, it is.
func TestHollow(t *testing.T) {
	a, err := gen.CSR("gen:powerlaw,rows=12000,nnz-per-row=8")
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cs, err := Choose(t.Context(), largeGPU(backend.CodePTX),
		resolve(t, formats.ConvertTo(a, dtype.F16), work.Work{Cols: 8}))
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 448<<20 { // sparse24r would make 650 MB
		t.Errorf("choosing allocates %d MB", n>>20)
	}
	if cs[0].Kernel.Slots != nil {
		t.Errorf("picked %s because %s", cs[0].name(), cs[0].Why)
	}
	if a, err = gen.CSR("gen:diagonal,rows=3000"); err != nil {
		t.Fatal(err)
	}
	cs, err = Choose(t.Context(), largeGPU(backend.CodePTX),
		resolve(t, formats.ConvertTo(a, dtype.F16), work.Work{Cols: 8, Format: "sparse24r"}))
	if err != nil || cs[0].cost == Unlikely {
		t.Errorf("asked for: %v, %v", cs, err)
	}
}

// On Vulkan B is brought to shared memory where panels are long enough to pay for it, as measured on such a device.
func TestChoiceOfWindows(t *testing.T) {
	var shapes []backend.MatrixShape
	for _, k := range []uint32{8, 16} {
		shapes = append(shapes, backend.MatrixShape{M: 16, N: 8, K: k, A: dtype.F16, B: dtype.F16, C: dtype.F32,
			D: dtype.F32})
	}
	d := devicetest.New(backend.Caps{
		Code: backend.CodeSPIRV, SubgroupMin: 32, SubgroupMax: 32, SharedBytes: 48 << 10, MaxInvocations: 1024,
		MaxLocal: [3]uint32{1024, 1024, 64}, F16: true, Int8: true, Lanes: true, Units: 132, Matrix: shapes,
	}, api.Rates{
		Copy:  devicetest.Bandwidths(1<<21, 0.81e12, 1<<23, 2.4e12, 1<<25, 5e12, 1<<27, 3.8e12, 1<<29, 3.9e12),
		Cache: 27e12, FMA: 5.9e13,
		Matrix: map[string]float64{"16×8×16 f16": 4.7e14, "16×8×8 f16": 4.06e14},
	})
	for _, c := range []struct {
		format, matrix string
		staged         bool
	}{
		{"cvse", "gen:vector,rows=4096,v=8,density=0.3", true},   // 73 µs against 122
		{"cvse", "gen:vector,rows=4096,v=8,density=0.02", false}, // 16 against 33
		{"tiledcsr", "gen:uniform,rows=4096,density=0.05", true}, // 76 against 134
		{"tiledcsr", "gen:uniform,rows=777,density=0.05", false}, // 10 against 22, of 1001 columns
	} {
		a, err := gen.CSR(c.matrix)
		if err != nil {
			t.Fatal(err)
		}
		got := chosen(t, d, a, work.Work{Format: c.format, Precision: dtype.F16, Cols: 512})
		if staged := strings.HasPrefix(got.Variant.Kernel(), "window"); staged != c.staged {
			t.Errorf("%s of %s: picked %s because %s", c.format, c.matrix, got.name(), got.Why)
		}
	}
}

// tf32 is computed by tensor cores where there are some, else in f32; csr has no tf32 at all.
func TestTF32(t *testing.T) {
	a, err := gen.CSR("gen:vector,rows=64,v=8")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code   backend.Code
		format string
		want   dtype.Type
	}{{backend.CodePTX, "cvse", dtype.TF32}, {backend.CodePTX, "csr", dtype.F32}, {backend.CodeSPIRV, "cvse", dtype.F32}} {
		got := chosen(t, largeGPU(c.code), a, work.Work{Format: c.format, Precision: dtype.TF32})
		if got.Variant.In != c.want {
			t.Errorf("%v %s: computed as %v by %s, want %v", c.code, c.format, got.Variant.In, got.Variant.Name, c.want)
		}
	}
}

// Of a large matrix a sample is packed; which variant multiplies, and by how many columns at a time, the whole decides.
func TestWholeDecides(t *testing.T) {
	a, err := gen.CSR("gen:block,rows=8192,cols=8192,block=16,density=0.03")
	if err != nil {
		t.Fatal(err)
	}
	got := chosen(t, largeGPU(backend.CodePTX), a, work.Work{Format: "hrpb", Precision: dtype.TF32, Cols: 128})
	if got.Variant.In != dtype.TF32 {
		t.Errorf("panels of blocks are multiplied by %s, because %s; want matrix units", got.Variant.Name, got.Why)
	}
}
