// Command errors compares the errors of sums in float32 with those of reproducible products, on data that
// are kind to floating point and on data that are not. It prints the table of docs/reproducible.md.
//
//	go run ./tools/errors [-backend cpu]
//
// Each number is the root mean square of the errors of 64 × 64 outputs over that of the outputs, each a sum
// of about a thousand products of f16 numbers; in parentheses, the share of outputs that are the correctly
// rounded exact sum. All but the column of the device is a function of the data alone.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/spmmrun/spmm"
	_ "github.com/spmmrun/spmm/backend/all"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
)

func main() {
	name := flag.String("backend", "", "also multiply in fast mode on this `device`, such as cpu, cuda or vulkan:1")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *name); err != nil {
		fmt.Fprintln(os.Stderr, "errors:", err)
		os.Exit(1)
	}
}

// The size of the products.
const rows, inner, cols = 64, 4096, 64

// data is a kind of matrices.
type data struct {
	name string
	make func() (*formats.CSR[half.F16], *formats.Dense[half.F16], error)
}

var kinds = []data{
	{"normal", func() (*formats.CSR[half.F16], *formats.Dense[half.F16], error) { return product(0, false) }},
	{"wide exponents", func() (*formats.CSR[half.F16], *formats.Dense[half.F16], error) { return product(10, false) }},
	{"cancelling", func() (*formats.CSR[half.F16], *formats.Dense[half.F16], error) { return product(0, true) }},
}

// product makes matrices of about normal numbers, scaled by powers of two up to 2^±spread. If cancel is
// set, a row's second half is its first with other signs and some last bits, and so are B's columns but
// for that: little is left of their product.
func product(spread int, cancel bool) (*formats.CSR[half.F16], *formats.Dense[half.F16], error) {
	a, err := gen.CSR(fmt.Sprintf("gen:uniform,rows=%d,cols=%d,density=0.25,seed=1", rows, inner))
	if err != nil {
		return nil, nil, err
	}
	b := gen.Dense(inner, cols, 2, gen.Values{})
	if spread > 0 {
		exponents := gen.Values{Kind: gen.Int, Lo: -spread, Hi: spread}
		scale(a.Val, gen.Dense(1, len(a.Val), 3, exponents).Data)
		scale(b.Data, gen.Dense(inner, cols, 4, exponents).Data)
	}
	x, y := formats.Convert[half.F16](a), formats.NewDense[half.F16](inner, cols)
	formats.ConvertSlice(y.Data, b.Data)
	if cancel {
		x = mirrored(x)
		copy(y.Data[len(y.Data)/2:], y.Data[:len(y.Data)/2])
	}
	return x, y, nil
}

func scale(x, exponents []float32) {
	for i := range x {
		x[i] = float32(math.Ldexp(float64(x[i]), int(exponents[i])))
	}
}

// mirrored repeats the left half of a's columns in the right half, negated, every eighth entry a bit off.
func mirrored(a *formats.CSR[half.F16]) *formats.CSR[half.F16] {
	out := &formats.CSR[half.F16]{Rows: a.Rows, Cols: a.Cols, RowPtr: []int64{0}}
	for i := range a.Rows {
		lo, hi := a.RowPtr[i], a.RowPtr[i]
		for hi < a.RowPtr[i+1] && int(a.ColIdx[hi]) < a.Cols/2 {
			hi++
		}
		out.ColIdx, out.Val = append(out.ColIdx, a.ColIdx[lo:hi]...), append(out.Val, a.Val[lo:hi]...)
		for e := lo; e < hi; e++ {
			v := a.Val[e] ^ 0x8000
			if e%8 == 0 {
				v ^= 1
			}
			out.ColIdx, out.Val = append(out.ColIdx, a.ColIdx[e]+int32(a.Cols/2)), append(out.Val, v)
		}
		out.RowPtr = append(out.RowPtr, int64(len(out.Val)))
	}
	return out
}

// method is a way to compute an output from the entries of a row and what they meet of a column.
type method struct {
	name string
	dot  func(row, col rfx.Range, a, b []float32) float32
}

// methods are those that depend on the data alone.
var methods = []method{
	{"f32, in order", chain},
	{"p = 15", at(rfx.P15)}, {"p = 23", at(rfx.P23)}, {"p = 31", at(rfx.P31)}, {"p = 47", at(rfx.P47)},
}

// chain adds products up in float32, one after the other.
func chain(_, _ rfx.Range, a, b []float32) float32 {
	var s float32
	for k := range a {
		s += float32(a[k] * b[k]) // exact: it cannot matter whether it is fused with the addition
	}
	return s
}

func at(p rfx.P) func(row, col rfx.Range, a, b []float32) float32 {
	return func(row, col rfx.Range, a, b []float32) float32 { return rfx.Dot(p, row, col, a, b) }
}

func run(ctx context.Context, w io.Writer, device string) error {
	fmt.Fprint(w, "| data |")
	if device != "" {
		fmt.Fprintf(w, " fast, %s |", device)
	}
	rule := "\n| --- |"
	for _, m := range methods {
		fmt.Fprintf(w, " %s |", m.name)
		rule += " --- |"
	}
	if device != "" {
		rule += " --- |"
	}
	fmt.Fprintln(w, rule)
	for _, d := range kinds {
		a, b, err := d.make()
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "| %s |", d.name)
		if device != "" {
			c, err := fast(ctx, device, a, b)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, " %v |", measure(a, b, func(i, j int, _, _ []float32) float32 { return c.At(i, j) }))
		}
		rs, cs := rfx.Rows(a), rfx.Cols(b)
		for _, m := range methods {
			fmt.Fprintf(
				w, " %v |",
				measure(a, b, func(i, j int, x, y []float32) float32 { return m.dot(rs[i], cs[j], x, y) }),
			)
		}
		fmt.Fprintln(w)
	}
	return nil
}

// fast multiplies on a device.
func fast(
	ctx context.Context, device string, a *formats.CSR[half.F16], b *formats.Dense[half.F16],
) (*formats.Dense[float32], error) {
	dev, err := spmm.Open(ctx, device)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	p, err := spmm.Prepare(ctx, dev, a, spmm.Options{})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	c := formats.NewDense[float32](a.Rows, b.Cols)
	_, err = spmm.Multiply(ctx, p, 1, b, 0, c)
	return c, err
}

// errors describes a method's outputs.
type errors struct {
	rms   float64 // of the errors, over that of the exact sums
	right float64 // share that are correctly rounded
}

func (e errors) String() string { return fmt.Sprintf("%.1e (%.0f %%)", e.rms, 100*e.right) }

// measure compares outputs, given by row, column, and the numbers to multiply, with exact sums.
func measure(
	a *formats.CSR[half.F16], b *formats.Dense[half.F16], output func(i, j int, x, y []float32) float32,
) errors {
	var lost, all float64
	var right int
	var x, y []float32
	for i := range a.Rows {
		lo, hi := a.RowPtr[i], a.RowPtr[i+1]
		for j := range b.Cols {
			x, y = x[:0], y[:0]
			var exact rfx.Int128 // in units of 2⁻⁴⁸: every f16 is a multiple of 2⁻²⁴
			for e := lo; e < hi; e++ {
				v, w := a.Val[e].Float32(), b.At(int(a.ColIdx[e]), j).Float32()
				x, y = append(x, v), append(y, w)
				exact = exact.AddProduct(rfx.Quantise(v, -24), rfx.Quantise(w, -24))
			}
			got := output(i, j, x, y)
			want := (float64(exact.Hi)*0x1p64 + float64(exact.Lo)) * 0x1p-48
			lost += (float64(got) - want) * (float64(got) - want)
			all += want * want
			if got == exact.Round(-48) {
				right++
			}
		}
	}
	return errors{math.Sqrt(lost / all), float64(right) / float64(a.Rows*b.Cols)}
}
