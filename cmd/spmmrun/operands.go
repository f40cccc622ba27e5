// The data of a job: A, B, C before the product, and the epilogue.

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dist"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
)

// operands are the data of a job, with A and B of T, and C, whose elements hold sums, of S: alpha·A·B + beta·C0, with
// an epilogue. With --transpose all that is said of A is of the transpose.
type operands[T formats.Value, S oracle.Number] struct {
	rows   int         // of A
	bounds dist.Bounds // between the rows of C that each rank has
	// csr decodes A when it is first called: verifying needs that, a kernel that takes A as its file has it does not.
	csr func() *formats.CSR[T]
	b   *formats.Dense[T]
	c0  *formats.Dense[S] // nil if beta is 0
	// quantised is A if that has values of 8 bits, else nil; original is the matrix as it came.
	quantised *formats.Quantised
	original  formats.Encoded

	epilogue oracle.EpilogueOf[S]
}

// matrixRead is A as this process has read it: all of it, or what a rank has at first. Of a matrix that is generated or
// read in parts that is some rows; any other file rank 0 has read, and the other ranks nothing.
type matrixRead struct {
	a      formats.Encoded // nil: nothing
	first  int             // number of the first row
	shared bool            // every rank has rows
	typ    dtype.Type      // that the file was made for: to multiply with, unless the command line says another
	took   time.Duration

	values    *formats.Quantised // A, if its values have 8 bits
	quantised *quantisedReport   // of them
}

// read reads A, or makes it, and transposes and quantises it if that is asked for. Ranks transpose their shares.
func (j *job) read(ctx context.Context, r *ranks, dev *spmm.Device, p *progress) (m matrixRead, err error) {
	start := time.Now()
	if r.Size() > 1 {
		m, err = r.load(ctx, j.matrix, j.seed, p)
		m.took = time.Since(start)
		return m, err
	}
	if err := j.generatedFits(dev.Info()); err != nil {
		return m, err
	}
	if m.a, err = openMatrix(ctx, j.matrix, j.seed, typeOf(j.precision), p); err != nil {
		return m, err
	}
	if err := j.transposable(m.a); err != nil {
		return m, err
	}
	if j.transpose {
		p.step("transposing", -1)
		m.a = formats.Transpose(m.a)
	}
	m.a = byRows(m.a)
	m.took = time.Since(start)
	m.values, m.quantised, m.typ, err = j.bring(m.a, p)
	return m, err
}

// newOperands brings A into type T and makes or reads B.
func newOperands[T formats.Value, S oracle.Number](ctx context.Context, j *job, dev spmm.Info, m matrixRead,
	p *progress) (*operands[T, S], error) {
	a, values := m.a, m.values
	rows, cols := a.Dims()
	fits := func(n int) error {
		return newNeed(j, dev, rows, cols, n, a.NNZ(), formats.TypeOf[T]().Size()).check()
	}
	b, err := newB[S](ctx, j, rows, cols, fits, p)
	if err != nil {
		return nil, err
	}
	if formats.TypeOf[T]() == dtype.F16 {
		err := fitsF16(j.bFile, convertDense[float32](b).Data)
		if a.Type() != dtype.F16 && values == nil {
			err = errors.Join(fitsF16(j.matrix, float32CSR(a).Val), err)
		}
		if err != nil {
			return nil, err
		}
	}
	q := &operands[T, S]{
		rows: rows, bounds: dist.Bounds{0, rows}, b: convertDense[T](b),
		csr:       sync.OnceValue(func() *formats.CSR[T] { return formats.Convert[T](a.Sparse()) }),
		quantised: values, original: a,
	}
	if values != nil {
		q.csr = sync.OnceValue(func() *formats.CSR[T] { return levels[T](values) }) // whose pattern alone is looked at
	}
	if j.beta != 0 {
		q.c0 = convertDense[S](gen.Dense(rows, b.Cols, j.seed+1, gen.Values{}))
	}
	if q.epilogue, err = readEpilogue[S](ctx, &j.epilogue, rows, b.Cols); err != nil {
		return nil, err
	}
	return q, ctx.Err()
}

// newB makes or reads B for an A of rows×cols; fits returns an error if there is no memory for n columns of B.
func newB[S oracle.Number](ctx context.Context, j *job, rows, cols int, fits func(n int) error,
	p *progress) (*formats.Dense[S], error) {
	if j.bFile == "" {
		if err := fits(j.cols); err != nil {
			return nil, err
		}
		p.step("making B", -1)
		return convertDense[S](gen.Dense(cols, j.cols, j.seed, gen.Values{})), nil
	}
	p.step("reading B", -1)
	b, err := loadDense[S](ctx, j.bFile)
	if err != nil {
		return nil, err
	}
	want := "n"
	if j.colsGiven {
		want = fmt.Sprint(j.cols)
	}
	switch {
	case b.Rows != cols || j.colsGiven && b.Cols != j.cols:
		return nil, fmt.Errorf("%s: B is %d×%d, but %s is %d×%d: want B %d×%s", j.bFile, b.Rows, b.Cols, j.a(), rows, cols,
			cols, want)
	case b.Cols == 0:
		return nil, fmt.Errorf("%s: B has no columns", j.bFile)
	}
	return b, fits(b.Cols)
}

// a names the matrix that B is multiplied by.
func (j *job) a() string {
	if j.transpose {
		return "Aᵀ"
	}
	return "A"
}

// convertDense is formats.ConvertDense, but returns d itself if it has the type.
func convertDense[T, S formats.Value](d *formats.Dense[S]) *formats.Dense[T] {
	if same, ok := any(d).(*formats.Dense[T]); ok {
		return same
	}
	return formats.ConvertDense[T](d)
}

// fitsF16 refuses finite values that binary16 would make infinite.
func fitsF16(name string, values []float32) error {
	const least = 65520 // the smallest that rounds beyond the largest, 65504
	for _, x := range values {
		if (x >= least || x <= -least) && !math.IsInf(float64(x), 0) {
			return fmt.Errorf("%s: the value %g is beyond f16's range of ±65504: use --precision bf16, tf32 or f32", name, x)
		}
	}
	return nil
}
