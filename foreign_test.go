// Tensors over memory of others, on a device that has such memory in a table (backend/cuda's tests have CUDA's); and
// page-locked memory, which is ordinary where there is none.

package spmm_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// importing is the CPU with memory of others: buffers by their address.
type importing struct {
	backend.Device
	memory map[uintptr]backend.Buffer
}

// Import knows no addresses but those in the table.
func (d *importing) Import(address uintptr, bytes int64) (backend.Buffer, error) {
	b, ok := d.memory[address]
	if !ok {
		return nil, errors.New("no memory lies there")
	}
	if bytes > b.Size() {
		return nil, fmt.Errorf("only %d bytes lie there", b.Size())
	}
	return b, nil
}

func openImporting(t *testing.T) (*spmm.Device, *importing) {
	t.Helper()
	inner, err := spmm.OpenBackend(ctx, "cpu")
	if err != nil {
		t.Fatal(err)
	}
	d := &importing{inner, map[uintptr]backend.Buffer{}}
	dev := spmm.NewDevice(d)
	t.Cleanup(func() { dev.Close() })
	return dev, d
}

// over makes a tensor of memory with room for `more` elements past its own, all of them what fill says.
func over[T formats.Value](t *testing.T, dev *spmm.Device, d *importing, address uintptr, rows, cols, ld, more int,
	colMajor bool, fill T) (*spmm.Tensor[T], []T) {
	t.Helper()
	lines, width := rows, cols
	if colMajor {
		lines, width = cols, rows
	}
	all := make([]T, max(0, (lines-1)*ld+width+more))
	for i := range all {
		all[i] = fill
	}
	b, err := d.Alloc(int64(max(4, len(bytesOf(all))+3)) &^ 3)
	if err != nil {
		t.Fatal(err)
	}
	write(t, b, bytesOf(all))
	d.memory[address] = b
	x, err := spmm.TensorOver[T](dev, address, rows, cols, ld, colMajor)
	if err != nil {
		t.Fatal(err)
	}
	return x, all
}

func bytesOf[T formats.Value](s []T) []byte {
	switch s := any(s).(type) {
	case []half.F16:
		return backend.Bytes(s)
	case []half.BF16:
		return backend.Bytes(s)
	case []float32:
		return backend.Bytes(s)
	}
	panic("no elements")
}

func nan() float32 { return float32(math.NaN()) }

// write and contents copy to the start of a buffer and back, the last word as a whole.
func write(t *testing.T, b backend.Buffer, p []byte) {
	t.Helper()
	must(t, b.Write(ctx, 0, append(slices.Clone(p), make([]byte, -len(p)&3)...)))
}

func contents(t *testing.T, b backend.Buffer, n int) []byte {
	t.Helper()
	p := make([]byte, (n+3)&^3)
	must(t, b.Read(ctx, 0, p))
	return p[:n]
}

// Every leading dimension, order, address and type gives the product that tensors of the library's own give, and
// leaves what lies between the rows (columns) as it is.
func TestTensorOver(t *testing.T) {
	dev, d := openImporting(t)
	r := rand.New(rand.NewPCG(9, 2))
	for _, o := range []spmm.Options{{Format: "csr"}, {Format: "cvse"}, {Format: "dense"}, {Mode: spmm.Reproducible},
		{Mode: spmm.Reproducible, P: spmm.AutoP}} {
		a, m := prepared[half.F16](r, 37, 29, o.Format)
		plan := prepare(t, dev, m, o)
		for _, c := range []struct {
			address   uintptr
			n, pad    int // columns of B and C; elements between their rows (columns)
			more      int // elements past the last row (column)
			bCol, col bool
		}{
			{0x1000, 16, 0, 0, false, false}, // as kernels take it
			{0x1000, 16, 8, 8, false, false},
			{0x1000, 16, 8, 0, false, false}, // the last row lacks its padding
			{0x1004, 16, 0, 0, false, false},
			{0x1000, 13, 0, 0, false, false},
			{0x1000, 13, 3, 3, false, false}, // a leading dimension of 16
			{0x1000, 13, 4, 2, false, false},
			{0x1000, 1, 0, 0, false, false},
			{0x1008, 5, 2, 0, true, false},
			{0x1000, 5, 0, 0, false, true},
			{0x1000, 8, 3, 1, true, true},
			{0x1000, 0, 8, 0, false, false},
		} {
			t.Run(fmt.Sprintf("%+v %+v", o, c), func(t *testing.T) {
				testOver[half.F16, float32](t, dev, d, r, plan, a, c.address, c.n, c.pad, c.more, c.bCol, c.col)
				testOver[half.F16, half.F16](t, dev, d, r, plan, a, c.address, c.n, c.pad, c.more, c.bCol, c.col)
				testOver[float32, half.BF16](t, dev, d, r, plan, a, c.address, c.n, c.pad, c.more, c.bCol, c.col)
			})
		}
		plan.Close()
	}
}

// prepared returns a matrix, and it as it is prepared for a format.
func prepared[T formats.Value](r *rand.Rand, rows, cols int, format string) (*formats.CSR[T], formats.Encoded) {
	if format == "dense" {
		d := dense[T](r, rows, cols, 0, false)
		return d.ToCSR(), d
	}
	a := sparse[T](r, rows, cols, 4)
	return a, a
}

func testOver[B, C formats.Value](t *testing.T, dev *spmm.Device, d *importing, r *rand.Rand, plan *spmm.Plan,
	a *formats.CSR[half.F16],
	address uintptr, n, pad, more int, bCol, cCol bool) {
	t.Helper()
	ld := func(rows int, colMajor bool) int {
		if colMajor {
			return rows + pad
		}
		return n + pad
	}
	x, _ := over(t, dev, d, address, a.Cols, n, ld(a.Cols, bCol), more, bCol, value[B](nan()))
	y, all := over(t, dev, d, address+1<<20, a.Rows, n, ld(a.Rows, cCol), more, cCol, value[C](nan()))
	under := d.memory[address+1<<20]
	b, c := dense[B](r, a.Cols, n, 1, !bCol), dense[C](r, a.Rows, n, 2, cCol)
	must(t, errors.Join(x.Upload(ctx, b), y.Upload(ctx, c)))
	for _, beta := range []float32{0, 2} {
		must(t, second(plan.Run(ctx, 3, x, float64(beta), y)))
		want := expected(3, a, b, beta, c)
		if err := errors.Join(y.Download(ctx, c), differ(c, want)); err != nil {
			t.Fatalf("beta %v: %v", beta, err)
		}
	}
	// The memory holds C in its place and is otherwise unchanged.
	view := formats.Dense[C]{Rows: a.Rows, Cols: n, LD: ld(a.Rows, cCol), ColMajor: cCol, Data: all}
	for i := range a.Rows {
		for j := range n {
			view.Set(i, j, c.At(i, j))
		}
	}
	if got := contents(t, under, len(bytesOf(all))); !slices.Equal(got, bytesOf(all)) {
		t.Error("what lies between the rows has changed")
	}
	if err := errors.Join(x.Close(), y.Close()); err != nil {
		t.Error(err)
	}
	if err := y.Upload(ctx, c); err == nil {
		t.Error("Upload after Close")
	}
}

// B and a bias of 16-bit elements that begin inside a word are read as others are; what would be written is refused.
func TestTensorOverOdd(t *testing.T) {
	dev, d := openImporting(t)
	r := rand.New(rand.NewPCG(9, 3))
	a := sparse[half.F16](r, 37, 29, 4)
	vector := formats.NewDense[half.F16](37, 1)
	for i := range vector.Data {
		vector.Data[i] = half.F16From(float32(i))
	}
	for _, o := range []spmm.Options{{Format: "csr"}, {Format: "dense"}, {Mode: spmm.Reproducible}} {
		plan := prepare(t, dev, a, o)
		for _, c := range []struct {
			n, ld  int
			bCol   bool
			offset int // elements of 16 bits from the word's start
		}{{16, 16, false, 1}, {13, 15, false, 1}, {5, 30, true, 1}, {1, 1, false, 1}, {16, 16, false, 0}} {
			b := dense[half.F16](r, 29, c.n, c.ld, c.bCol)
			b.LD = c.ld
			b.Data = make([]half.F16, 64*c.ld)
			for i := range b.Data {
				b.Data[i] = half.F16From(float32(i%13 - 6))
			}
			at := func(address uintptr, data []half.F16) uintptr {
				m, err := d.Alloc(int64(2*(len(data)+c.offset)+3) &^ 3)
				must(t, err)
				all := append(make([]half.F16, c.offset), data...)
				write(t, m, bytesOf(all))
				d.memory[address] = m
				return address + uintptr(2*c.offset)
			}
			x, err := spmm.TensorOver[half.F16](dev, at(0x1000, b.Data), 29, c.n, c.ld, c.bCol)
			must(t, err)
			bias, err := spmm.TensorOver[half.F16](dev, at(0x9000, vector.Data), 37, 1, 1, false)
			must(t, err)
			y, err := spmm.NewTensor[float32](dev, 37, c.n, false)
			must(t, err)
			got := formats.NewDense[float32](37, c.n)
			must(t, second(plan.Run(ctx, 1, x, 0, y, spmm.Epilogue{RowBias: bias})))
			must(t, y.Download(ctx, got))
			want := formats.NewDense[float32](37, c.n)
			for i := range want.Rows {
				for j := range want.Cols {
					want.Set(i, j, float32(i))
				}
			}
			if err := differ(got, expected(1, a, b, 1, want)); err != nil {
				t.Errorf("%+v %+v: %v", o, c, err)
			}
			if c.offset == 0 {
				continue
			}
			z, err := spmm.TensorOver[half.F16](dev, at(0x20000, make([]half.F16, 37*c.n)), 37, c.n, c.n, false)
			must(t, err)
			nnz := len(a.Val)
			v, err := spmm.TensorOver[half.F16](dev, at(0x30000, make([]half.F16, nnz)), 1, nnz, nnz, false)
			must(t, err)
			for name, err := range map[string]error{
				"C": second(plan.Run(ctx, 1, x, 0, z)), "Upload": x.Upload(ctx, b), "Download": x.Download(ctx, b),
				"SetValues": plan.SetValues(ctx, v),
			} {
				if !errors.Is(err, spmm.ErrUnsupported) || !strings.Contains(err.Error(), "a multiple of 4") {
					t.Errorf("%+v: %s of a tensor that begins inside a word: %v", c, name, err)
				}
			}
			if err := spmm.Move(x, 0x1000); err == nil || !strings.Contains(err.Error(), "make another") {
				t.Errorf("a tensor inside a word was moved to a word's start: %v", err)
			}
		}
		plan.Close()
	}
}

func TestTensorOverRefused(t *testing.T) {
	dev, d := openImporting(t)
	b, err := d.Alloc(4096)
	if err != nil {
		t.Fatal(err)
	}
	d.memory[0x1000], d.memory[0x1040], d.memory[0x1800] = b, b, b
	for _, c := range []struct {
		address        uintptr
		rows, cols, ld int
		want           string
	}{
		{0x1000, 4, 8, 7, "a leading dimension of 7, at least 8 is needed"},
		{0x1000, 129, 8, 8, "only 4096 bytes lie there"},
		{0x3000, 4, 8, 8, "no memory lies there"},
		{0x1000, -1, 8, 8, "must be 0 or more"},
		{0x1000, 1 << 20, 8, 1 << 30, "kernels count up to"},
	} {
		_, err := spmm.TensorOver[float32](dev, c.address, c.rows, c.cols, c.ld, false)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := spmm.TensorOver[float32](openCPU(t), 0x1000, 4, 8, 8, false); !errors.Is(err, spmm.ErrUnsupported) ||
		!strings.Contains(err.Error(), "CUDA") {
		t.Errorf("on the CPU: %v", err)
	}
	if err := openCPU(t).UseStream(ctx, 1); !errors.Is(err, spmm.ErrUnsupported) ||
		!strings.Contains(err.Error(), "CUDA") {
		t.Errorf("UseStream on the CPU: %v", err)
	}

	// B and C in one memory: columns side by side do not overlap, others do.
	plan := prepare(t, dev, sparse[float32](rand.New(rand.NewPCG(1, 1)), 8, 8, 2), spmm.Options{Format: "csr"})
	for _, c := range []struct {
		address uintptr
		ld      int
		ok      bool
	}{{0x1000, 64, false}, {0x1040, 64, true}, {0x1040, 16, false}, {0x1800, 64, true}} {
		x, err := spmm.TensorOver[float32](dev, 0x1000, 8, 8, 32, false)
		if err != nil {
			t.Fatal(err)
		}
		y, err := spmm.TensorOver[float32](dev, c.address, 8, 8, c.ld/2, false)
		if err != nil {
			t.Fatal(err)
		}
		_, err = plan.Run(ctx, 1, x, 0, y)
		if refused := err != nil && strings.Contains(err.Error(), "the same memory"); refused == c.ok {
			t.Errorf("C at %#x, rows %d apart: %v", c.address, c.ld/2, err)
		}
		if _, err := plan.Run(ctx, 1, y, 0, x); (err != nil && strings.Contains(err.Error(), "the same memory")) == c.ok {
			t.Errorf("B at %#x, rows %d apart: %v", c.address, c.ld/2, err)
		}
	}
}

// Pinned matrices are as any others.
func TestPinned(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		r := rand.New(rand.NewPCG(3, 3))
		for _, shape := range [][2]int{{5, 13}, {64, 16}, {0, 4}, {4, 0}, {1000, 70}} {
			for _, colMajor := range []bool{false, true} {
				p, err := spmm.NewPinned[half.BF16](dev, shape[0], shape[1], colMajor)
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Validate(); err != nil || p.Rows != shape[0] || p.Cols != shape[1] || p.LD%8 != 0 {
					t.Fatalf("%d×%d, %d apart: %v", p.Rows, p.Cols, p.LD, err)
				}
				want := dense[half.BF16](r, shape[0], shape[1], 3, !colMajor)
				for i := range p.Rows {
					for j := range p.Cols {
						p.Set(i, j, want.At(i, j))
					}
				}
				x := newTensor[half.BF16](t, dev, shape[0], shape[1], false)
				got := dense[half.BF16](r, shape[0], shape[1], 3, !colMajor)
				if err := errors.Join(x.Upload(ctx, &p.Dense), x.Download(ctx, got), differ(got, want)); err != nil {
					t.Error(err)
				}
				clear(p.Data)
				if err := x.Download(ctx, &p.Dense); err != nil || !p.Equal(want) {
					t.Errorf("%v column-major %t is downloaded differently (%v)", shape, colMajor, err)
				}
				for range 2 {
					if err := errors.Join(x.Close(), p.Close()); err != nil {
						t.Error(err)
					}
				}
				if len(p.Data) > 0 {
					t.Error("a closed one has data")
				}
			}
		}
		for _, shape := range [][2]int{{-1, 3}, {1 << 30, 1 << 30}, {1 << 20, 1<<31 - 1}} {
			if _, err := spmm.NewPinned[float32](dev, shape[0], shape[1], false); err == nil {
				t.Errorf("%v is allocated", shape)
			}
		}
	})
}

// A tensor over somebody else's memory brings new values, wherever it lies.
func TestTensorOverValues(t *testing.T) {
	dev, d := openImporting(t)
	r := rand.New(rand.NewPCG(5, 5))
	a := sparse[half.F16](r, 37, 29, 4)
	n := len(a.Val)
	b, c := dense[half.F16](r, 29, 8, 0, false), dense[float32](r, 37, 8, 0, false)
	for _, format := range []string{"csr", "cvse"} {
		plan := prepare(t, dev, a, spmm.Options{Format: format})
		defer plan.Close()
		for _, l := range []struct {
			address        uintptr
			rows, cols, ld int
		}{{0x1000, 1, n, n}, {0x1004, 1, n, n}, {0x1000, n, 1, 1}, {0x1000, n, 1, 3}} {
			x, _ := over(t, dev, d, l.address, l.rows, l.cols, l.ld, 0, false, value[half.F16](nan()))
			v := dense[half.F16](r, l.rows, l.cols, 0, false)
			must(t, errors.Join(x.Upload(ctx, v), plan.SetValues(ctx, x)))
			must(t, second(spmm.Multiply(ctx, plan, 1, b, 0, c)))
			a.Val = v.Data
			if err := errors.Join(differ(c, expected(1, a, b, 0, c)), x.Close()); err != nil {
				t.Errorf("%s, %+v: %v", format, l, err)
			}
		}
	}
}

// With A on the right, B and C are transposed where they lie.
func TestTensorOverRight(t *testing.T) {
	dev, d := openImporting(t)
	r := rand.New(rand.NewPCG(6, 6))
	b := dense[float32](r, 17, 23, 0, false)
	want := formats.NewDense[float32](17, 31)
	got := dense[float32](r, 17, 31, 1, false)
	for _, format := range []string{"csr", "dense"} {
		_, m := prepared[float32](r, 23, 31, format)
		plan := prepare(t, dev, m, spmm.Options{Format: format, Right: true})
		must(t, second(spmm.Multiply(ctx, plan, 2, b, 0, want)))
		for _, pad := range []int{0, 1, 9, 16} {
			for _, colMajor := range []bool{false, true} {
				ldB, ldC := 23+pad, 31+pad
				if colMajor {
					ldB, ldC = 17+pad, 17+pad
				}
				x, _ := over(t, dev, d, 0x1000, 17, 23, ldB, 0, colMajor, nan())
				y, _ := over(t, dev, d, 0x2000, 17, 31, ldC, 0, colMajor, nan())
				must(t, x.Upload(ctx, b))
				_, err := plan.Run(ctx, 2, x, 0, y)
				if err := errors.Join(err, y.Download(ctx, got)); err != nil || !got.Equal(want) {
					t.Errorf("%s, %d of padding, column-major %t: the product differs (%v)", format, pad, colMajor, err)
				}
				if err := errors.Join(x.Close(), y.Close()); err != nil {
					t.Error(err)
				}
			}
		}
		plan.Close()
	}
}
