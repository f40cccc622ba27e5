// Command gcn infers with a graph convolutional network of two layers (Kipf and Welling, ICLR 2017),
//
//	H = ReLU(Â·(X·W1)),    Y = Â·(H·W2),    Â = D^-½·(A + I)·D^-½
//
// where A is the adjacency of a graph and D its nodes' degrees, themselves counted. The graph stands on the left,
// sparse, the weights on the right, dense. All four multiplications and ReLU are one submission, and between the upload
// of X and the download of Y everything stays on the device.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spmmrun/spmm"
	_ "github.com/spmmrun/spmm/backend/all"
	"github.com/spmmrun/spmm/examples/internal/demo"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
)

func main() { demo.Main(run) }

func run(ctx context.Context, args []string, out io.Writer) error {
	flags, device := demo.Flags("gcn")
	file := flags.String("graph", "testdata/matrices/ca-CondMat.mtx.gz",
		"`file` of a symmetric matrix, whose pattern is the graph")
	features := flags.Int("features", 128, "`number` of features of a node")
	hidden := flags.Int("hidden", 64, "`number` of hidden units of a node")
	classes := flags.Int("classes", 16, "`number` of outputs of a node")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *features < 1 || *hidden < 1 || *classes < 1 {
		return fmt.Errorf("%d features, %d hidden units, %d classes: want at least one of each", *features, *hidden, *classes)
	}
	graph, err := demo.Graph(ctx, *file)
	if err != nil {
		return err
	}
	normalise(graph)
	dev, err := spmm.Open(ctx, *device)
	if err != nil {
		return err
	}
	defer dev.Close()

	n := &network{graph: graph, w1: random(*features, *hidden, 1), w2: random(*hidden, *classes, 2)}
	if err := n.prepare(ctx, dev); err != nil {
		return err
	}
	x := random(graph.Rows, *features, 3)
	y := formats.NewDense[float32](graph.Rows, *classes)
	took, err := n.infer(ctx, x, y)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "device   %v\n", dev.Info())
	fmt.Fprintf(out, "graph    %d nodes, %d entries of Â as %s, chosen because %s\n", graph.Rows, graph.NNZ(), n.a.Info().Format, n.a.Info().Why)
	fmt.Fprintf(out, "layers   %d features, %d hidden units, %d classes; weights as %s\n", *features, *hidden, *classes, n.first.Info().Format)
	fmt.Fprintf(out, "inferred the device worked %v\n", took)
	fmt.Fprintf(out, "first    node 0: %.4f\n", y.Line(0)[:min(3, *classes)])
	worst := n.worst(x, y)
	fmt.Fprintf(out, "checked  all %d outputs: at most %.2g of the largest from those computed in float64\n", len(y.Data), worst)
	if !(worst < 1e-5) {
		return errors.New("the outputs are wrong")
	}
	return nil
}

// random returns a matrix of normally distributed numbers, scaled so that products with it keep their size.
func random(rows, cols int, seed uint64) *formats.Dense[float32] {
	d := gen.Dense(rows, cols, seed, gen.Values{})
	for i := range d.Data {
		d.Data[i] /= float32(math.Sqrt(float64(rows)))
	}
	return d
}

// normalise gives a graph the values of Â.
func normalise(a *formats.CSR[float32]) {
	degree := func(i int) float64 { return float64(a.RowPtr[i+1] - a.RowPtr[i]) }
	for i := range a.Rows {
		for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
			a.Val[e] = float32(1 / math.Sqrt(degree(i)*degree(int(a.ColIdx[e]))))
		}
	}
}

// network is the graph and the weights, on the host and on the device. Closing the device frees what lies there.
type network struct {
	graph         *formats.CSR[float32]
	w1, w2        *formats.Dense[float32]
	a             *spmm.Plan // on the left
	first, second *spmm.Plan // weights, on the right
	x, y          *spmm.Tensor[float32]
	steps         *spmm.Sequence
}

// prepare brings the matrices onto the device and records the multiplications.
func (n *network) prepare(ctx context.Context, dev *spmm.Device) error {
	var err error
	if n.a, err = spmm.Prepare(ctx, dev, n.graph, spmm.Options{Cols: n.w1.Cols}); err != nil {
		return err
	}
	right := spmm.Options{Right: true, Cols: n.graph.Rows}
	if n.first, err = spmm.Prepare(ctx, dev, n.w1, right); err != nil {
		return err
	}
	if n.second, err = spmm.Prepare(ctx, dev, n.w2, right); err != nil {
		return err
	}
	var tensors [5]*spmm.Tensor[float32] // X, X·W1, H, H·W2, Y: a node in each row
	for i, cols := range []int{n.w1.Rows, n.w1.Cols, n.w1.Cols, n.w2.Cols, n.w2.Cols} {
		if tensors[i], err = spmm.NewTensor[float32](dev, n.graph.Rows, cols, false); err != nil {
			return err
		}
	}
	n.x, n.y, n.steps = tensors[0], tensors[4], dev.NewSequence()
	for i, step := range []struct {
		plan     *spmm.Plan
		epilogue spmm.Epilogue
	}{{plan: n.first}, {n.a, spmm.Epilogue{Activation: spmm.ReLU}}, {plan: n.second}, {plan: n.a}} {
		if err := n.steps.Add(step.plan, 1, tensors[i], 0, tensors[i+1], step.epilogue); err != nil {
			return err
		}
	}
	return nil
}

// infer computes y for the features in x, and returns how long the device worked.
func (n *network) infer(ctx context.Context, x, y *formats.Dense[float32]) (time.Duration, error) {
	if err := n.x.Upload(ctx, x); err != nil {
		return 0, err
	}
	t, err := n.steps.Run(ctx)
	if err != nil {
		return 0, err
	}
	return t.Best(), n.y.Download(ctx, y)
}

// worst returns the largest distance of y from what the host computes in float64, over the largest output.
func (n *network) worst(x, y *formats.Dense[float32]) float64 {
	h := demo.Product(n.graph, times(demo.Wide(x.Data), n.w1), n.w1.Cols)
	for i := range h {
		h[i] = max(h[i], 0)
	}
	return demo.Distance(y.Data, demo.Product(n.graph, times(h, n.w2), n.w2.Cols))
}

// times returns x·w in float64, x having as many columns as w has rows.
func times(x []float64, w *formats.Dense[float32]) []float64 {
	rows := len(x) / w.Rows
	y := make([]float64, rows*w.Cols)
	for i := range rows {
		accumulate := y[i*w.Cols:][:w.Cols]
		for k, v := range x[i*w.Rows:][:w.Rows] {
			for j, b := range w.Line(k) {
				accumulate[j] += v * float64(b)
			}
		}
	}
	return y
}
