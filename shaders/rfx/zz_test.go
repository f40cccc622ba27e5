package rfx_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/csr"
	"github.com/spmmrun/spmm/shaders/quantise"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

func best(f func()) time.Duration {
	m := time.Hour
	end := time.Now().Add(time.Duration(600) * time.Millisecond)
	for i := 0; i < 5 || time.Now().Before(end); i++ {
		t := time.Now()
		f()
		m = min(m, time.Since(t))
	}
	return m
}

func runAll(prog *spec.Program, ps []spec.Pass, args [][]byte) func() {
	return func() {
		for _, p := range ps {
			for z := range p.Groups[2] {
				for y := range p.Groups[1] {
					for x := range p.Groups[0] {
						p.Variant.Func(args, p.Params, [3]uint32{x, y, z})
					}
				}
			}
		}
	}
}

func scatter(r *rand.Rand, rows, k int, d float64) *formats.CSR[float32] {
	a := &formats.CSR[float32]{Rows: rows, Cols: k, RowPtr: []int64{0}}
	for range rows {
		for j := range k {
			if r.Float64() < d {
				a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, float32(r.NormFloat64()))
			}
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	return a
}

func zz[T formats.Value](t *testing.T, a32 *formats.CSR[float32], n int, name string) {
	a := formats.Convert[T](a32)
	r := rand.New(rand.NewPCG(1, 2))
	ldb := (n + 7) &^ 7
	b := make([]T, a.Cols*ldb)
	x := make([]float32, len(b))
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	formats.ConvertSlice(b, x)
	caps := backend.Caps{Code: backend.CodeGo, Units: 2}
	prob := spec.Problem{M: a.Rows, K: a.Cols, N: n, LDB: ldb, LDC: n, Out: dtype.F32, Alpha: 1, Caps: caps}
	var fv *spec.Variant
	for _, v := range csr.Format.Variants {
		if v.Code == backend.CodeGo && v.In == formats.TypeOf[T]() {
			fv = v
		}
	}
	fe, err := csr.Format.Encode(a, fv)
	if err != nil {
		t.Fatal(err)
	}
	fl, err := csr.Format.Launch(fv, fe, prob)
	if err != nil {
		t.Fatal(err)
	}
	fargs := make([][]byte, len(csr.Format.Args))
	for i, arg := range csr.Format.Args {
		for _, y := range fe.Arrays {
			if y.Name == arg.Name {
				fargs[i] = y.Data
			}
		}
		switch arg.Name {
		case "b":
			fargs[i] = backend.Bytes(b)
		case "c":
			fargs[i] = make([]byte, 4*a.Rows*n)
		}
		if fargs[i] == nil {
			fargs[i] = make([]byte, max(64, fl.Workspace))
		}
	}
	fast := best(runAll(csr.Format.Program, fl.Passes, fargs))
	fmt.Printf("%s n=%d %v: csr %v", name, n, formats.TypeOf[T](), fast)
	for _, p := range []rfx.P{23, 31} {
		v, _ := kernel.Variant(caps, p, kernel.Rows)
		e, err := kernel.Format.Encode(a, v)
		if err != nil {
			t.Fatal(err)
		}
		l, err := kernel.Format.Launch(v, e, prob)
		if err != nil {
			t.Fatal(err)
		}
		lay := kernel.Layout(v, a.Cols, n)
		qv, _ := quantise.Variant(caps)
		ql, err := quantise.Launch(qv, lay, formats.TypeOf[T](), ldb)
		if err != nil {
			t.Fatal(err)
		}
		q := make([]byte, lay.Bytes()+64)
		qargs := [][]byte{backend.Bytes(b), q}
		q0 := best(runAll(quantise.Program, ql.Passes[:1], qargs))
		q1 := best(runAll(quantise.Program, ql.Passes[1:], qargs))
		args := [][]byte{e.Arrays[0].Data, e.Arrays[1].Data, e.Arrays[2].Data, backend.Bytes(b), q, make([]byte, 64), make([]byte, 4*a.Rows*n), make([]byte, max(64, l.Workspace))}
		k := best(runAll(kernel.Format.Program, l.Passes, args))
		fmt.Printf(" | p%d scan %v quant %v mul %v = %.2fx", p, q0, q1, k, float64(q0+q1+k)/float64(fast))
	}
	fmt.Println()
}

func TestZZ(t *testing.T) {
	if os.Getenv("ZZ") == "" {
		t.Skip()
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range []struct {
		size int
		d    float64
	}{{1024, .1}, {1024, .5}, {4096, .1}, {20000, .0005}} {
		a := scatter(r, s.size, s.size, s.d)
		for _, n := range []int{8, 128} {
			name := fmt.Sprintf("%d %g", s.size, s.d)
			zz[float32](t, a, n, name)
			zz[half.F16](t, a, n, name)
		}
	}
	_ = slices.Clone[[]int]
}
