// Calls of plans in any order, with operands that fit and that do not.

package spmm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

// tape is a fuzzer's input, number by number; zeros after its end.
type tape []byte

func (t *tape) next(n int) int {
	if len(*t) == 0 {
		return 0
	}
	b := (*t)[0]
	*t = (*t)[1:]
	return int(b) % n
}

func (t *tape) factor() float64 { return []float64{1, 0, -2, 0.5, 3}[t.next(5)] }

// dense is a matrix of small whole numbers, in either order and with or without padding.
func (t *tape) dense(rows, cols int) *formats.Dense[float32] {
	seed, colMajor := t.next(256), t.next(2) == 1
	lines, ld := rows, cols
	if colMajor {
		lines, ld = cols, rows
	}
	ld += 3 * t.next(2)
	d := &formats.Dense[float32]{Rows: rows, Cols: cols, LD: ld, ColMajor: colMajor, Data: make([]float32, lines*ld)}
	for i := range d.Data {
		d.Data[i] = float32((i*7+seed)%17 - 8)
	}
	return d
}

// calls is a plan under test and what it must compute.
type calls struct {
	*testing.T
	tape
	dev  *spmm.Device
	a    *formats.CSR[float32]
	o    spmm.Options
	plan *spmm.Plan
	open bool
	sure bool // the options fit every matrix
}

// want is alpha·op(A)·b + beta·c + bias, or with Right that of b·op(A).
func (x *calls) want(alpha float64, b *formats.Dense[float32], beta float64, c *formats.Dense[float32],
	bias *formats.Dense[float32]) []float64 {
	out := make([]float64, c.Rows*c.Cols)
	for i := range x.a.Rows {
		for p := x.a.RowPtr[i]; p < x.a.RowPtr[i+1]; p++ {
			r, k, v := i, int(x.a.ColIdx[p]), float64(x.a.Val[p])
			if x.o.Transpose != x.o.Right {
				r, k = k, r
			}
			if x.o.Right {
				for n := range c.Rows {
					out[n*c.Cols+r] += v * float64(b.At(n, k))
				}
				continue
			}
			for n := range c.Cols {
				out[r*c.Cols+n] += v * float64(b.At(k, n))
			}
		}
	}
	for i := range c.Rows {
		for j := range c.Cols {
			y := &out[i*c.Cols+j]
			if *y *= alpha; beta != 0 {
				*y += beta * float64(c.At(i, j))
			}
			if bias != nil {
				*y += float64(bias.At(i, 0))
			}
		}
	}
	return out
}

func (x *calls) prepare() {
	x.close()
	formatsOf := append([]string{"", "csr"}, spmm.Formats()...)
	precisions := []dtype.Type{0, dtype.F32, dtype.F16, dtype.BF16, dtype.F64}
	x.o = spmm.Options{Format: formatsOf[x.next(len(formatsOf))], Precision: precisions[x.next(len(precisions))],
		Transpose: x.next(2) == 1,
		Right:     x.next(2) == 1, Cols: x.next(40)}
	if x.next(4) == 1 {
		x.o.Mode, x.o.P = spmm.Reproducible, []int{0, 31, spmm.AutoP}[x.next(3)]
	}
	x.sure = x.o.Format == "" || x.o.Format == "csr"
	var err error
	x.plan, err = spmm.Prepare(ctx, x.dev, x.a, x.o)
	x.open = err == nil
	if x.check(err); err != nil && x.sure && (x.o.Mode == spmm.Fast || x.o.Precision != dtype.F64) {
		x.Fatalf("%+v: %v", x.o, err)
	}
}

func (x *calls) close() {
	if x.open {
		if err := x.plan.Close(); err != nil {
			x.Fatal(err)
		}
	}
	x.open = false
}

// check looks at an error.
func (x *calls) check(err error) {
	if err != nil && (err.Error() == "" || strings.Contains(err.Error(), "\n")) {
		x.Fatalf("an error that is not one line: %q", err)
	}
}

// operands are B and C for n columns, or rows with Right; wrong says that one of them does not fit.
func (x *calls) operands() (b, c *formats.Dense[float32], wrong bool) {
	m, k := x.a.Rows, x.a.Cols
	if x.o.Transpose {
		m, k = k, m
	}
	n := x.next(12)
	shapes := [2][2]int{{k, n}, {m, n}}
	if x.o.Right {
		shapes = [2][2]int{{n, m}, {n, k}}
	}
	if x.next(8) == 7 {
		shapes[x.next(2)][x.next(2)]++
		wrong = true
	}
	return x.dense(shapes[0][0], shapes[0][1]), x.dense(shapes[1][0], shapes[1][1]), wrong
}

// compare holds C against what it must be, after a call that must have failed if wrong.
func (x *calls) compare(what string, err error, wrong bool, c *formats.Dense[float32], want []float64) {
	x.check(err)
	if wrong = wrong || !x.open; (err != nil) != wrong {
		x.Fatalf("%s, %+v, %d×%d: error %v", what, x.o, x.a.Rows, x.a.Cols, err)
	}
	for i := range want {
		if got := float64(c.At(i/c.Cols, i%c.Cols)); err == nil && got != want[i] {
			x.Fatalf("%s, %+v: element (%d, %d) is %v, want %v", what, x.o, i/c.Cols, i%c.Cols, got, want[i])
		}
	}
}

func (x *calls) multiply() {
	b, c, wrong := x.operands()
	alpha, beta := x.factor(), x.factor()
	var want []float64
	if !wrong {
		want = x.want(alpha, b, beta, c, nil)
	}
	_, err := spmm.Multiply(ctx, x.plan, alpha, b, beta, c)
	x.compare("Multiply", err, wrong, c, want)
}

// tensors multiplies tensors: at once, started, repeated or in a sequence, with a bias or none.
func (x *calls) tensors() {
	b, c, wrong := x.operands()
	alpha, beta := x.factor(), x.factor()
	tb, tc := x.tensor(b), x.tensor(c)
	defer tb.Close()
	defer tc.Close()
	var e []spmm.Epilogue
	var bias *formats.Dense[float32]
	if x.next(3) == 1 {
		bias = x.dense(c.Rows, 1)
		row := x.tensor(bias)
		defer row.Close()
		e = append(e, spmm.Epilogue{RowBias: row})
	}
	var want []float64
	if !wrong {
		want = x.want(alpha, b, beta, c, bias)
	}
	closed := x.next(16) == 15
	if closed {
		tc.Close()
	}
	how := x.next(3)
	var err error
	switch how {
	case 0:
		_, err = x.plan.Run(ctx, alpha, tb, beta, tc, e...)
	case 1:
		var p *spmm.Pending
		if p, err = x.plan.Start(ctx, alpha, tb, beta, tc, e...); err == nil {
			_, err = p.Wait(ctx)
		}
	default:
		wrong = wrong || x.o.Mode == spmm.Reproducible && x.o.P == spmm.AutoP // which looks at B first
		s := x.dev.NewSequence()
		defer s.Close()
		if err = s.Add(x.plan, alpha, tb, beta, tc, e...); err == nil {
			_, err = s.Run(ctx)
		}
	}
	if err == nil && !closed {
		err = tc.Download(ctx, c)
	}
	x.compare(fmt.Sprint("tensors ", how), err, wrong || closed, c, want)
}

func (x *calls) tensor(d *formats.Dense[float32]) *spmm.Tensor[float32] {
	t, err := spmm.NewTensor[float32](x.dev, d.Rows, d.Cols, d.ColMajor)
	if err == nil {
		err = t.Upload(ctx, d)
	}
	if err != nil {
		x.Fatal(err)
	}
	return t
}

func (x *calls) setValues() {
	n := len(x.a.Val)
	wrong := x.next(8) == 7
	if wrong {
		n++
	}
	v := make([]float32, n)
	seed := x.next(16)
	for i := range v {
		v[i] = float32((i*5+seed)%15 - 7)
	}
	var err error
	if x.next(2) == 1 && n > 0 {
		t := x.tensor(&formats.Dense[float32]{Rows: 1, Cols: n, LD: n, Data: v})
		defer t.Close()
		err = x.plan.SetValues(ctx, t)
	} else {
		err = spmm.SetValues(ctx, x.plan, v)
	}
	if x.check(err); err == nil {
		if wrong || !x.open {
			x.Fatalf("%d values are taken for %d entries; open %t", n, len(x.a.Val), x.open)
		}
		x.a.Val = v
	} else if !wrong && x.open && x.o.Mode == spmm.Fast {
		x.Fatalf("%+v: SetValues: %v", x.o, err)
	}
}

func FuzzPlan(f *testing.F) {
	dev := openCPU(f)
	for format := range len(spmm.Formats()) + 2 {
		for prec := range 5 {
			f.Add([]byte{byte(9 + format), byte(16 - prec), 3, 100, byte(format), byte(prec), byte(format & 1), byte(prec & 1),
				0, byte(format % 4), 2,
				1, 5, 0, 1, 0, 0, 0, 0, 0, 0, 2, 3, 2, 7, 0, 9, 1, 1, 9, 0, 0, 0, 2, 1, 7, 2, 3, 0, 2, 1, 1, 4, 0, 0, 0, 4, 4, 1,
				5})
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x := &calls{T: t, tape: data, dev: dev}
		x.a = x.matrix()
		x.prepare()
		defer x.close()
		for range 8 {
			if len(x.tape) == 0 {
				return
			}
			if !x.open && x.plan == nil { // there is nothing to call
				x.prepare()
				continue
			}
			switch x.next(6) {
			case 0, 1:
				x.multiply()
			case 2, 3:
				x.tensors()
			case 4:
				x.setValues()
			default:
				if x.next(2) == 1 {
					x.close() // what is called then must fail
				} else {
					x.prepare()
				}
			}
		}
	})
}

// matrix has up to 24 rows and columns; some are empty, one may be full.
func (x *calls) matrix() *formats.CSR[float32] {
	a := &formats.COO[float32]{Rows: x.next(25), Cols: x.next(25)}
	every, seed := 1+x.next(9), x.next(256)
	for i := range a.Rows * a.Cols {
		if (i*31+seed)%every == 0 && (i/a.Cols)%5 != 4 {
			a.Row, a.Col = append(a.Row, int32(i/a.Cols)), append(a.Col, int32(i%a.Cols))
			a.Val = append(a.Val, float32((i*3+seed)%13-6))
		}
	}
	csr, err := a.ToCSR(formats.SumDuplicates)
	if err != nil {
		x.Fatal(err)
	}
	return csr
}
