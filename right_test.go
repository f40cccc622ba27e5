// A matrix on the right of B, and dense matrices on either side.

package spmm_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// Every format, on the right of B, in both orders, transposed and not, gives what the transposed product on the left
// does.
func TestRight(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		for _, format := range append(spmm.Formats(), "auto") {
			t.Run(format, func(t *testing.T) {
				r := rand.New(rand.NewPCG(5, 6))
				for i := range 16 {
					o := spmm.Options{Format: format, Right: true, Transpose: i&4 != 0}
					if i >= 8 {
						o.Mode = spmm.Reproducible
					}
					rightCase[float32, float32, float32](t, dev, o, r, i&1 != 0, i&2 != 0)
					rightCase[half.F16, half.F16, half.F16](t, dev, o, r, i&1 != 0, i&2 != 0)
					rightCase[half.F16, float32, half.BF16](t, dev, o, r, i&1 != 0, i&2 != 0)
				}
			})
		}
	})
}

// rightCase multiplies by a small matrix on the right, from the host, as tensors with a bias, and with other values.
func rightCase[T, B, C formats.Value](t *testing.T, dev *spmm.Device, o spmm.Options, r *rand.Rand, bCol, cCol bool) {
	t.Helper()
	k, m, n := 1+r.IntN(70), 1+r.IntN(70), 1+r.IntN(40)
	w := sparse[T](r, k, m, 3) // what B is multiplied by
	if o.Format == "dense" {
		w = formats.Convert[T](dense[T](r, k, m, 0, false).Sparse())
	}
	var given formats.Encoded = w
	if o.Transpose {
		given = w.Transpose()
	}
	if d, err := formats.Convert[T](given.Sparse()).Full(); err == nil && r.IntN(2) == 0 {
		given = d.Layout(r.IntN(2) == 0, 0)
	}
	b, c := dense[B](r, n, k, 1, bCol), dense[C](r, n, m, 2, cCol)
	want := expected(2, w.Transpose(), b.Transpose(), 3, c.Transpose()).Transpose()
	kept := c.Layout(cCol, 0)

	plan, err := spmm.Prepare(ctx, dev, given, o)
	if errors.Is(err, spmm.ErrUnsupported) && o.Format != "csr" && o.Format != "auto" && dev.Info().Backend != "cpu" {
		return // a format need not have a kernel everywhere
	}
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	if i := plan.Info(); i.Rows != k || i.Cols != m || i.NNZ != w.NNZ() {
		t.Fatalf("%d×%d with %d entries, want %d×%d with %d", i.Rows, i.Cols, i.NNZ, k, m, w.NNZ())
	}
	must(t, second(spmm.Multiply(ctx, plan, 2, b, 3, c)))
	same(t, c, want)

	// As tensors, with a bias of each column of C, on a matrix whose values were replaced by their doubles.
	double := slices.Clone(formats.Convert[T](given.Sparse()).Val)
	for i, x := range double {
		double[i] = value[T](2 * float(x))
	}
	must(t, spmm.SetValues(ctx, plan, double))
	x, y, bias := upload(t, dev, b), upload(t, dev, kept), upload(t, dev, dense[float32](r, 1, m, 0, false))
	got, add := formats.NewDense[C](n, m), formats.NewDense[float32](1, m)
	must(t, second(plan.Run(ctx, 1, x, 3, y, spmm.Epilogue{ColBias: bias, Activation: spmm.ReLU})))
	must(t, errors.Join(y.Download(ctx, got), bias.Download(ctx, add)))
	for i := range n {
		for j := range m {
			sum := 3 * float(kept.At(i, j))
			for l := range k {
				sum += 2 * at(w, l, j) * float(b.At(i, l))
			}
			if z := float(value[C](max(0, sum+add.At(0, j)))); float(got.At(i, j)) != z {
				t.Fatalf("with a bias and ReLU C[%d,%d] is %v, want %v", i, j, float(got.At(i, j)), z)
			}
		}
	}
}

// at returns an element of a sparse matrix.
func at[T formats.Value](a *formats.CSR[T], i, j int) float32 {
	for p := a.RowPtr[i]; p < a.RowPtr[i+1]; p++ {
		if int(a.ColIdx[p]) == j {
			return float(a.Val[p])
		}
	}
	return 0
}

func upload[T formats.Value](t *testing.T, dev *spmm.Device, d *formats.Dense[T]) *spmm.Tensor[T] {
	t.Helper()
	x := newTensor[T](t, dev, d.Rows, d.Cols, d.ColMajor)
	t.Cleanup(func() { x.Close() })
	must(t, x.Upload(ctx, d))
	return x
}

// What does not fit a matrix on the right is refused in its terms; where a device binds little, B and C come in blocks
// of rows.
func TestRightRefusals(t *testing.T) {
	dev := openCPU(t)
	r := rand.New(rand.NewPCG(7, 8))
	plan := prepare(t, dev, sparse[float32](r, 5, 9, 2), spmm.Options{Right: true})
	defer plan.Close()
	_, err := spmm.Multiply(ctx, plan, 1, formats.NewDense[float32](9, 4), 0, formats.NewDense[float32](5, 4))
	if err == nil || !strings.Contains(err.Error(), "A, on the right, is 5×9, B is 9×4, C is 5×4; want B n×5 and C n×9") {
		t.Errorf("B of the left: %v", err)
	}
	x, y, bias := upload(t, dev, formats.NewDense[float32](4, 5)), upload(t, dev, formats.NewDense[float32](4, 9)),
		upload(t, dev, formats.NewDense[float32](9, 1))
	_, err = plan.Run(ctx, 1, x, 0, y, spmm.Epilogue{RowBias: bias})
	if err == nil || !strings.Contains(err.Error(), "C is 4×9, the row bias is 9×1; want 4×1") {
		t.Errorf("a row bias of as many elements as C has columns: %v", err)
	}
	if _, _, err := spmm.TensorsFor[float32, float32](plan, -1); err == nil ||
		!strings.Contains(err.Error(), "-1 rows of B") {
		t.Errorf("-1 rows: %v", err)
	}
	if _, err := plan.Run(ctx, 1, x, 0, x); err == nil {
		t.Error("B is C")
	}

	small, _ := openSmall(t, 30_000)
	for _, format := range []string{"csr", "dense"} {
		w := dense[float32](r, 100, 300, 0, false)
		plan := prepare(t, small, w, spmm.Options{Right: true, Format: format})
		b, c := dense[float32](r, 200, 100, 0, false), dense[half.F16](r, 200, 300, 0, false)
		want := expected(1, formats.Convert[float32](w.Transpose().Sparse()), b.Transpose(), 0, c.Transpose()).Transpose()
		x, y := tensorsFor[float32, half.F16](t, plan, 200)
		must(t, x.Upload(ctx, b))
		must(t, second(plan.Run(ctx, 1, x, 0, y)))
		must(t, y.Download(ctx, c))
		same(t, c, want)
		must(t, errors.Join(x.Close(), y.Close(), plan.Close()))
	}
}

// A dense matrix is multiplied as one, in whatever order it lies and precision it is asked for, and in another format
// where that is asked for; a sparse one only if it stores every element. In reproducible mode it is lowered like any
// other.
func TestDense(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		r := rand.New(rand.NewPCG(9, 10))
		for i, o := range []spmm.Options{
			{}, {Format: "dense"}, {Format: "csr"}, {Format: "cvse"}, {Precision: dtype.F16}, {Transpose: true},
			{Mode: spmm.Reproducible},
			{Format: "dense", Mode: spmm.Reproducible, P: spmm.AutoP}, {Tune: true},
		} {
			m, k, n := 75, 40, 23
			a := dense[float32](r, m, k, i%3, i%2 == 0)
			if o.Transpose {
				a = a.Transpose()
			}
			plan, err := spmm.Prepare(ctx, dev, a, o)
			if err != nil {
				t.Fatalf("%+v: %v", o, err)
			}
			if f := plan.Info().Format; o.Mode == spmm.Fast && !o.Tune &&
				f != map[bool]string{true: "dense", false: o.Format}[o.Format == ""] {
				t.Errorf("%+v: in format %s because %s", o, f, plan.Info().Why)
			}
			if o.Precision != 0 && plan.Info().Precision != o.Precision {
				t.Errorf("%+v: in %v", o, plan.Info().Precision)
			}
			x := a
			if o.Transpose {
				x = a.Transpose()
			}
			b, c := dense[float32](r, k, n, 0, false), dense[float32](r, m, n, 1, i%2 == 1)
			want := expected(1, formats.Convert[float32](x.Sparse()), b, 2, c)
			if _, err := spmm.Multiply(ctx, plan, 1, b, 2, c); err != nil {
				t.Fatalf("%+v: %v", o, err)
			}
			same(t, c, want)
			plan.Close()
		}
		plan, err := spmm.Prepare(ctx, dev, sparse[float32](r, 9, 9, 3), spmm.Options{Format: "dense"})
		if err != nil || plan.Info().Format != "dense" || plan.Info().NNZ == 81 {
			t.Fatalf("a sparse matrix as a dense one: %v", err)
		}
		plan.Close()
		if _, err := spmm.Prepare(ctx, dev, &formats.Dense[float32]{Rows: 3, Cols: 3, LD: 2}, spmm.Options{}); err == nil ||
			!strings.Contains(err.Error(), "leading dimension 2") {
			t.Errorf("a dense matrix that is invalid: %v", err)
		}
	})
}

// A dense layer of a network: Y = ReLU(X·W + b), samples in rows.
func ExampleOptions_right() {
	ctx := context.Background()
	dev, err := spmm.Open(ctx, "cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	w := &formats.Dense[float32]{Rows: 3, Cols: 2, LD: 2, Data: []float32{
		1, 0,
		0, 1,
		2, -2,
	}}
	layer, err := spmm.Prepare(ctx, dev, w, spmm.Options{Right: true}) // or a pruned W, as a *formats.CSR
	if err != nil {
		log.Fatal(err)
	}
	defer layer.Close()
	bias, err := spmm.NewTensor[float32](dev, 1, 2, false)
	if err != nil {
		log.Fatal(err)
	}
	defer bias.Close()
	if err := bias.Upload(ctx, &formats.Dense[float32]{Rows: 1, Cols: 2, LD: 2, Data: []float32{10, 20}}); err != nil {
		log.Fatal(err)
	}

	x := &formats.Dense[float32]{Rows: 2, Cols: 3, LD: 3, Data: []float32{
		1, 2, 3,
		4, 5, -60,
	}}
	y := formats.NewDense[float32](2, 2)
	if _, err := spmm.Multiply(ctx, layer, 1, x, 0, y, spmm.Epilogue{ColBias: bias, Activation: spmm.ReLU}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(layer.Info().Format, y.Data)
	// Output: dense [17 16 0 145]
}

// A layer of a graph network, H = ReLU(Â·(X·W)): the graph on the left, the weights on the right, and nothing leaves
// the device in between.
func Example_graphLayer() {
	ctx := context.Background()
	dev, err := spmm.Open(ctx, "cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	// Three nodes in a path, each with itself as a neighbour; two features of each, one of the output.
	graph := &formats.CSR[float32]{Rows: 3, Cols: 3, RowPtr: []int64{0, 2, 5, 7}, ColIdx: []int32{0, 1, 0, 1, 2, 1, 2},
		Val: []float32{1, 1, 1, 1, 1, 1, 1}}
	weights := &formats.Dense[float32]{Rows: 2, Cols: 1, LD: 1, Data: []float32{1, -1}}
	a, err := spmm.Prepare(ctx, dev, graph, spmm.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	w, err := spmm.Prepare(ctx, dev, weights, spmm.Options{Right: true})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	x, xw, err := spmm.TensorsFor[float32, float32](w, 3) // 3×2 and 3×1
	if err != nil {
		log.Fatal(err)
	}
	defer x.Close()
	defer xw.Close()
	h, err := spmm.NewTensor[float32](dev, 3, 1, false)
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()

	if err := x.Upload(ctx, &formats.Dense[float32]{Rows: 3, Cols: 2, LD: 2,
		Data: []float32{3, 1, 1, 4, 9, 5}}); err != nil {
		log.Fatal(err)
	}
	if _, err := w.Run(ctx, 1, x, 0, xw); err != nil {
		log.Fatal(err)
	}
	if _, err := a.Run(ctx, 1, xw, 0, h, spmm.Epilogue{Activation: spmm.ReLU}); err != nil {
		log.Fatal(err)
	}
	out := formats.NewDense[float32](3, 1)
	if err := h.Download(ctx, out); err != nil {
		log.Fatal(err)
	}
	fmt.Println(out.Data)
	// Output: [0 3 1]
}
