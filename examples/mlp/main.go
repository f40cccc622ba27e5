// Command mlp serves a pruned network of two layers with bias and ReLU,
//
//	Y = W2·ReLU(W1·X + b1) + b2
//
// whose first layer is pruned 2:4 and whose second keeps its largest weights wherever they are. Activations stay on the
// device: only X is uploaded, and only Y comes back.
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
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/nm"
)

func main() { demo.Main(run) }

// sizes are those of the network and of one batch, whose samples are columns.
type sizes struct{ inputs, hidden, outputs, batch int }

func run(ctx context.Context, args []string, out io.Writer) error {
	flags, device := demo.Flags("mlp")
	kept := flags.Float64("kept", 0.1, "`share` of its weights that the second layer keeps")
	var s sizes
	flags.IntVar(&s.inputs, "inputs", 512, "`number` of inputs")
	flags.IntVar(&s.hidden, "hidden", 1024, "`number` of hidden units")
	flags.IntVar(&s.outputs, "outputs", 256, "`number` of outputs")
	flags.IntVar(&s.batch, "batch", 64, "`number` of samples at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dev, err := spmm.Open(ctx, *device)
	if err != nil {
		return err
	}
	defer dev.Close()

	n, err := newNetwork(ctx, dev, s, *kept)
	if err != nil {
		return err
	}
	x := formats.ConvertDense[half.F16](random(s.inputs, s.batch, 5, 1))
	y := formats.NewDense[float32](s.outputs, s.batch)
	took, err := n.infer(ctx, x, y)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "device   %v\n", dev.Info())
	for i, l := range []*layer{n.first, n.second} {
		info := l.plan.Info()
		dense := int64(info.Rows) * int64(info.Cols) * 2
		fmt.Fprintf(out, "layer %d  %d×%d, %.0f %% zeros, format %s: %d bytes, dense %d\n",
			i+1, info.Rows, info.Cols, 100*(1-float64(info.NNZ)/float64(dense/2)), info.Format, info.Stats.StoredBytes, dense)
	}
	fmt.Fprintf(out, "batch    %d samples: the device worked %v\n", s.batch, took)
	fmt.Fprintf(out, "first    sample 0: %.4f\n", []float32{y.At(0, 0), y.At(1, 0), y.At(2, 0)})
	worst := n.worst(x, y)
	fmt.Fprintf(out, "checked  all %d outputs: at most %.2g of the largest from those computed in float64\n", s.outputs*s.batch, worst)
	if !(worst < 1e-3) { // hidden units are rounded to 11 bits
		return errors.New("the outputs are wrong")
	}
	return nil
}

// random returns a matrix of normally distributed numbers.
func random(rows, cols int, seed uint64, scale float64) *formats.Dense[float32] {
	d := gen.Dense(rows, cols, seed, gen.Values{})
	for i := range d.Data {
		d.Data[i] *= float32(scale)
	}
	return d
}

// layer is a pruned layer: weights and bias, on the device and, to check with, on the host.
type layer struct {
	plan    *spmm.Plan
	bias    *spmm.Tensor[float32]
	weights *formats.CSR[half.F16]
	onHost  *formats.Dense[float32]
}

func newLayer(ctx context.Context, dev *spmm.Device, w *formats.CSR[float32], batch int, seed uint64) (*layer, error) {
	l := &layer{weights: formats.Convert[half.F16](w), onHost: random(w.Rows, 1, seed, 0.1)}
	var err error
	if l.plan, err = spmm.Prepare(ctx, dev, l.weights, spmm.Options{Cols: batch}); err != nil {
		return nil, err
	}
	if l.bias, err = spmm.NewTensor[float32](dev, w.Rows, 1, false); err != nil {
		return nil, err
	}
	return l, l.bias.Upload(ctx, l.onHost)
}

// network holds the layers, the tensors between them, and the multiplications, recorded once. Closing the
// device frees all of it.
type network struct {
	first, second *layer
	x, h          *spmm.Tensor[half.F16]
	y             *spmm.Tensor[float32]
	steps         *spmm.Sequence
}

func newNetwork(ctx context.Context, dev *spmm.Device, s sizes, kept float64) (*network, error) {
	w1, err := nm.PruneDense(random(s.hidden, s.inputs, 1, 1/math.Sqrt(float64(s.inputs))), nm.Sparse24)
	if err != nil {
		return nil, err
	}
	w2, err := random(s.outputs, s.hidden, 2, 1/math.Sqrt(float64(s.hidden))).Prune(kept)
	if err != nil {
		return nil, err
	}
	n := &network{}
	if n.first, err = newLayer(ctx, dev, w1, s.batch, 3); err != nil {
		return nil, err
	}
	if n.second, err = newLayer(ctx, dev, w2, s.batch, 4); err != nil {
		return nil, err
	}
	if n.x, err = spmm.NewTensor[half.F16](dev, s.inputs, s.batch, false); err != nil {
		return nil, err
	}
	if n.h, err = spmm.NewTensor[half.F16](dev, s.hidden, s.batch, false); err != nil {
		return nil, err
	}
	if n.y, err = spmm.NewTensor[float32](dev, s.outputs, s.batch, false); err != nil {
		return nil, err
	}
	n.steps = dev.NewSequence()
	if err := n.steps.Add(n.first.plan, 1, n.x, 0, n.h,
		spmm.Epilogue{RowBias: n.first.bias, Activation: spmm.ReLU}); err != nil {
		return nil, err
	}
	return n, n.steps.Add(n.second.plan, 1, n.h, 0, n.y, spmm.Epilogue{RowBias: n.second.bias})
}

// infer computes y for the samples in x, and returns how long the device worked.
func (n *network) infer(ctx context.Context, x *formats.Dense[half.F16], y *formats.Dense[float32]) (time.Duration,
	error) {
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
func (n *network) worst(x *formats.Dense[half.F16], y *formats.Dense[float32]) float64 {
	h := n.first.onHostInFloat64(demo.Wide(x.Data), x.Cols)
	for i := range h {
		h[i] = max(h[i], 0)
	}
	return demo.Distance(y.Data, n.second.onHostInFloat64(h, x.Cols))
}

// onHostInFloat64 returns the layer's weights times x, of `cols` columns, plus bias.
func (l *layer) onHostInFloat64(x []float64, cols int) []float64 {
	y := demo.Product(l.weights, x, cols)
	for i := range y {
		y[i] += float64(l.onHost.Data[i/cols])
	}
	return y
}
