// What is picked for a large GPU. No such device is needed to pick: only its abilities and ceilings.

package plan

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/gen"
)

// described is a device of which only the description is looked at.
type described struct {
	backend.Device
	caps backend.Caps
}

func (d described) Caps() backend.Caps { return d.caps }
func (d described) Info() backend.Info { return backend.Info{Backend: "described", Name: "large GPU"} }

// largeGPU is a CUDA device of compute capability 9.0, or the same without matrix units through
// Vulkan.
func largeGPU(code backend.Code) *Device {
	var shapes []backend.MatrixShape
	if code == backend.CodePTX {
		for _, s := range []struct {
			k uint32
			t dtype.Type
		}{{16, dtype.F16}, {8, dtype.F16}, {8, dtype.TF32}} {
			shapes = append(shapes, backend.MatrixShape{M: 16, N: 8, K: s.k, A: s.t, B: s.t, C: dtype.F32, D: dtype.F32})
		}
	}
	d := NewDevice(described{caps: backend.Caps{
		Code: code, Arch: 90, SubgroupMin: 32, SubgroupMax: 32, SharedBytes: 227 << 10, MaxInvocations: 1024,
		MaxLocal: [3]uint32{1024, 1024, 64}, F16: true, Int8: true, Units: 132, Matrix: shapes,
	}})
	d.ceilings = &Ceilings{
		Stream: []Rate{{1 << 21, 8e12}, {1 << 29, 4.3e12}}, Gather: 6e12, FMA: 6e13,
		Matrix: map[string]float64{"16×8×16 f16": 4e14, "16×8×8 f16": 2e14, "16×8×8 tf32": 2e14},
	}
	return d
}

// keep takes whatever is packed.
func keep(*packed) error { return nil }

func TestChoice(t *testing.T) {
	for _, c := range []struct {
		name   string
		code   backend.Code
		matrix string
		prec   dtype.Type
		cols   int
		format string // any of these
		v      uint32 // of cvse
	}{
		{"8-row vectors on tensor cores", backend.CodePTX, "gen:vector,rows=2048,v=8,density=0.1", dtype.F16, 512, "cvse jigsaw tiledcsr", 8},
		{"16-row vectors on tensor cores", backend.CodePTX, "gen:vector,rows=2048,v=16,density=0.01", dtype.F16, 512, "cvse", 16},
		{"a graph on tensor cores", backend.CodePTX, "gen:powerlaw,rows=20000,nnz-per-row=8", dtype.F16, 128, "csr", 0},
		{"a graph without matrix units", backend.CodeSPIRV, "gen:powerlaw,rows=20000,nnz-per-row=8", dtype.F32, 128, "csr", 0},
		{"a mesh without matrix units", backend.CodeSPIRV, "gen:banded,rows=5000,band=20,density=0.3", dtype.F32, 128, "csr", 0},
		{"vectors without matrix units", backend.CodeSPIRV, "gen:vector,rows=2048,v=8,density=0.1", dtype.F32, 128, "cvse", 8},
		{"no entries", backend.CodeSPIRV, "gen:uniform,rows=100,nnz-per-row=0", dtype.F32, 128, "csr", 0},
	} {
		a, err := gen.CSR(c.matrix)
		if err != nil {
			t.Fatal(err)
		}
		got, err := choose(context.Background(), largeGPU(c.code), a, Options{Precision: c.prec, Cols: c.cols}, keep)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if !slices.Contains(strings.Fields(c.format), got.kernel.Name) || got.kernel.Name == "cvse" && got.variant.Const("V") != c.v {
			t.Errorf("%s: picked %s, %s; want %s with V=%d", c.name, got.kernel.Name, got.variant.Name, c.format, c.v)
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
		got, err := choose(context.Background(), largeGPU(c.code), a, Options{Format: c.format, Precision: dtype.TF32}, keep)
		if err != nil {
			t.Fatal(err)
		}
		if got.variant.In != c.want {
			t.Errorf("%v %s: computed as %v by %s, want %v", c.code, c.format, got.variant.In, got.variant.Name, c.want)
		}
	}
}

// Rows near each other that share columns fetch a row of B once.
func TestDistinct(t *testing.T) {
	for spec, want := range map[string][2]float64{
		"gen:diagonal,rows=1000":                               {1, 1},
		"gen:vector,rows=1024,cols=100000,v=128,nnz-per-row=5": {1.0 / 128, 1.0 / 128},
		"gen:uniform,rows=5000,cols=1000000,nnz-per-row=4":     {0.99, 1},
		"gen:uniform,rows=1000,cols=10,nnz-per-row=10":         {0.007, 0.01},
		"gen:uniform,rows=10,nnz-per-row=0":                    {1, 1},
	} {
		a, err := gen.CSR(spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(distinct(a)); got < want[0]*float64(a.NNZ()) || got > math.Ceil(want[1]*float64(a.NNZ())) {
			t.Errorf("%s: %v of %d entries, want %v of them", spec, got, a.NNZ(), want)
		}
	}
}
