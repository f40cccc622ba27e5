// Matrices that are encoded once, kept in a file, and multiplied as they are; and what Compare says of them.

package spmm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/cvse"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/load"
	"github.com/spmmrun/spmm/formats/safetensors"
)

// stored returns e as it comes out of a file.
func stored(t *testing.T, e formats.Encoded) formats.Encoded {
	t.Helper()
	var file bytes.Buffer
	must(t, safetensors.WriteMatrix(&file, e))
	m, err := safetensors.ReadMatrix(&file, safetensors.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := load.Format(m.Format)
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.Open(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const adopted = "the matrix comes packed for it"

// A matrix encoded for a device is taken there as it is, and gives the same result.
func TestPrepareTakesEncoded(t *testing.T) {
	infos, _ := spmm.Devices(ctx)
	for _, info := range infos {
		dev, err := spmm.Open(ctx, fmt.Sprintf("%s:%d", info.Backend, info.Index))
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range spmm.Formats() {
			t.Run(info.Backend+" "+format+" f16", func(t *testing.T) { encodeOnce[half.F16](t, dev, format) })
			t.Run(info.Backend+" "+format+" f32", func(t *testing.T) { encodeOnce[float32](t, dev, format) })
		}
		dev.Close()
	}
}

func encodeOnce[T formats.Value](t *testing.T, dev *spmm.Device, format string) {
	r := rand.New(rand.NewPCG(1, 2))
	a := formats.Convert[T](matrix(t, "gen:nm,rows=130,cols=96,n=2,m=4,values=ones"))
	if format == "dense" {
		a = formats.Convert[T](dense[T](r, a.Rows, a.Cols, 0, false).Sparse())
	}
	b, c := dense[T](r, a.Cols, 33, 0, false), formats.NewDense[float32](a.Rows, 33)
	want := expected(1, a, b, 0, c)
	e, err := spmm.Encode(ctx, dev, a, spmm.Options{Format: format, Cols: 33})
	if errors.Is(err, spmm.ErrUnsupported) && dev.Info().Backend != "cpu" {
		return // a format need not have a kernel everywhere
	}
	if err != nil {
		t.Fatal(err)
	}
	e = stored(t, e)
	if e.Format() != format {
		t.Fatalf("encoded as %s", e.Format())
	}
	plan := prepare(t, dev, e, spmm.Options{Cols: 33})
	defer plan.Close()
	if i := plan.Info(); format != "csr" && (i.Format != format || i.Why != adopted) {
		t.Errorf("picked %s because %s", i.Format, i.Why)
	}
	must(t, second(spmm.Multiply(ctx, plan, 1, b, 0, c)))
	same(t, c, want)
	if format == "csr" {
		return
	}
	anew := prepare(t, dev, a, spmm.Options{Format: format, Variant: plan.Info().Variant, Cols: 33})
	defer anew.Close()
	fromCSR := formats.NewDense[float32](a.Rows, 33)
	must(t, second(spmm.Multiply(ctx, anew, 1, b, 0, fromCSR)))
	if !fromCSR.Equal(c) {
		t.Error("the matrix from the file and the one in CSR give different bits")
	}
}

// Preparing a file's matrix allocates less than its CSR form would take: none is made of it.
func TestPrepareDecodesNothing(t *testing.T) {
	dev := openCPU(t)
	a := formats.Convert[half.F16](matrix(t, "gen:uniform,rows=512,cols=512,density=0.8"))
	enc, err := spmm.Encode(ctx, dev, a, spmm.Options{Format: "hrpb"})
	if err != nil {
		t.Fatal(err)
	}
	e := stored(t, enc)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	plan, err := spmm.Prepare(ctx, dev, e, spmm.Options{})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	i := plan.Info()
	csr := formats.CSRBytes(int64(i.Rows), i.NNZ) - 2*i.NNZ // of F16
	if took := int64(after.TotalAlloc - before.TotalAlloc); i.Format != "hrpb" || took > csr/2 {
		t.Errorf("as %s because %s: %d bytes were allocated; a CSR has %d", i.Format, i.Why, took, csr)
	}
}

func matrix(t *testing.T, spec string) *formats.CSR[float32] {
	t.Helper()
	a, err := gen.CSR(spec)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// What is packed otherwise than the options or the device ask for is packed anew.
func TestPrepareAnew(t *testing.T) {
	dev := openCPU(t)
	a := formats.Convert[half.F16](matrix(t, "gen:vector,rows=64,cols=64,v=8,density=0.2"))
	f, err := load.Format("cvse")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		packing map[string]int
		o       spmm.Options
		adopted bool
	}{
		{"as it is", nil, spmm.Options{}, true},
		{"requested", nil, spmm.Options{Format: "cvse"}, true},
		{"its other packing", map[string]int{"v": 16}, spmm.Options{}, true},
		{"another format", nil, spmm.Options{Format: "csr"}, false},
		{"another precision", nil, spmm.Options{Precision: dtype.F32}, false},
		{"tuned", nil, spmm.Options{Tune: true}, false},
		{"no variant's height", map[string]int{"v": 5}, spmm.Options{Format: "cvse"}, false},
		{"no variant's alignment", map[string]int{"align": 16}, spmm.Options{}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, err := f.Encode(a, test.packing)
			if err != nil {
				t.Fatal(err)
			}
			plan := prepare(t, dev, e, test.o)
			defer plan.Close()
			if why := plan.Info().Why; (why == adopted) != test.adopted {
				t.Errorf("picked because %s", why)
			}
			r := rand.New(rand.NewPCG(3, 4))
			b, c := dense[float32](r, 64, 5, 0, false), formats.NewDense[float32](64, 5)
			must(t, second(spmm.Multiply(ctx, plan, 1, b, 0, c)))
		})
	}
}

func TestPrepareRefuses(t *testing.T) {
	f, err := load.Format("cvse")
	if err != nil {
		t.Fatal(err)
	}
	e, err := f.Encode(matrix(t, "gen:uniform,rows=9,cols=9"), nil)
	if err != nil {
		t.Fatal(err)
	}
	e.(*cvse.Matrix[float32]).ColInd[0] = 1 << 31
	if _, err := spmm.Prepare(ctx, openCPU(t), e, spmm.Options{}); err == nil ||
		!strings.HasPrefix(err.Error(), "matrix A: cvse: ") {
		t.Error(err)
	}
}

// Compare tells of every format what Prepare would find, and predicts what Prepare decides by.
func TestCompare(t *testing.T) {
	dev, a := openCPU(t), matrix(t, "gen:banded,rows=300,band=9")
	ps, err := spmm.Compare(ctx, dev, a, spmm.Options{Cols: 64})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var best spmm.Packing
	for _, p := range ps {
		seen[p.Format] = true
		if p.Err != nil {
			continue // it cannot hold this matrix
		}
		if p.Predicted <= 0 || p.Predicted < p.Bound.Time() || p.Stats.StoredBytes <= 0 || p.Stats.MACs < a.NNZ() ||
			p.Precision != dtype.F32 {
			t.Errorf("%+v", p)
		}
		if best.Format == "" || p.Predicted < best.Predicted {
			best = p
		}
	}
	for _, f := range spmm.Formats() {
		if !seen[f] {
			t.Errorf("nothing about %s", f)
		}
	}
	plan := prepare(t, dev, a, spmm.Options{Cols: 64})
	defer plan.Close()
	if i := plan.Info(); i.Format != best.Format || i.Variant != best.Variant || i.Stats != best.Stats {
		t.Errorf("prepared as %s/%s %+v, and the best of all is %+v", i.Format, i.Variant, i.Stats, best)
	}
	if ps, err = spmm.Compare(ctx, dev, a, spmm.Options{Format: "cvse"}); err != nil || len(ps) < 2 ||
		ps[0].Format != "cvse" {
		t.Errorf("cvse alone: %+v, %v", ps, err)
	}
	if r, err := dev.Rates(ctx); err != nil || r.At.IsZero() {
		t.Errorf("measured at %v, %v", r.At, err)
	}
	a.ColIdx[0] = -1
	if _, err := spmm.Compare(ctx, dev, a, spmm.Options{}); err == nil {
		t.Error("an invalid matrix is compared")
	}
	if _, err := spmm.Encode(ctx, dev, a, spmm.Options{}); err == nil {
		t.Error("an invalid matrix is encoded")
	}
}

// A matrix is encoded for a device once, written to a file, and from then on multiplied from there.
func ExampleEncode() {
	ctx := context.Background()
	dev, err := spmm.Open(ctx, "cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	a := &formats.CSR[float32]{Rows: 2, Cols: 3, RowPtr: []int64{0, 2, 3}, ColIdx: []int32{0, 2, 1},
		Val: []float32{1, 2, 3}}
	e, err := spmm.Encode(ctx, dev, a, spmm.Options{Format: "cvse"})
	if err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer // or an *os.File, which load.Open reads
	if err := safetensors.WriteMatrix(&file, e); err != nil {
		log.Fatal(err)
	}

	plan, err := spmm.Prepare(ctx, dev, e, spmm.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()
	fmt.Println(plan.Info().Format, "because", plan.Info().Why)
	// Output: cvse because the matrix comes packed for it
}
