// Command block runs a transformer block whose four weight matrices are pruned by magnitude, and the same block with
// dense weights, for a few tokens and for many:
//
//	Y = X' + Wdown·SiLU(Wup·norm(X')),  X' = X + Wout·attention(Wqkv·norm(X))
//
// Tokens are columns. The device multiplies by weights, which it holds packed once for any number of tokens, adds to
// the residual stream and applies SiLU; normalisation and attention, in which there are no weights, are the host's
// here.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// config has the values of the flags.
type config struct {
	width, inner, heads int
	tokens              []int     // in each batch
	zeros               []float64 // shares that pruning leaves
	columns             int       // to pack for
	runs                int
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags, device := demo.Flags("block")
	tokens := flags.String("tokens", "1,8,512", "`numbers` of tokens at once, N")
	zeros := flags.String("zeros", "0.5", "`shares` of zeros to prune to")
	var c config
	flags.IntVar(&c.width, "width", 1024, "`size` of a token's vector; a large network has 4096")
	flags.IntVar(&c.inner, "inner", 2752, "`size` of the inner layer; a large network has 11008")
	flags.IntVar(&c.heads, "heads", 8, "`number` of attention heads")
	flags.IntVar(&c.columns, "pack-for", 8, "`number` of tokens to pack the weights for")
	flags.IntVar(&c.runs, "runs", 20, "`number` of timed runs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if c.tokens, err = list(*tokens, strconv.Atoi); err != nil {
		return err
	}
	if c.zeros, err = list(*zeros, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }); err != nil {
		return err
	}
	if c.width < 1 || c.inner < 1 || c.heads < 1 || c.width%c.heads != 0 || c.columns < 1 || c.runs < 1 ||
		slices.Min(c.tokens) < 1 {
		return errors.New("sizes must be positive, and heads share the width evenly")
	}
	dev, err := spmm.Open(ctx, *device)
	if err != nil {
		return err
	}
	defer dev.Close()
	return compare(ctx, dev, c, out)
}

// list reads numbers that commas separate.
func list[T any](s string, parse func(string) (T, error)) ([]T, error) {
	var all []T
	for _, word := range strings.Split(s, ",") {
		x, err := parse(word)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}

// pruning makes of a weight matrix what is packed.
type pruning struct {
	name  string
	prune func(w *formats.Dense[half.F16]) (formats.Encoded, error)
}

// prunings returns none, those to shares of zeros wherever they are, and 2:4.
func prunings(zeros []float64) []pruning {
	all := []pruning{{"dense", func(w *formats.Dense[half.F16]) (formats.Encoded, error) { return w, nil }}}
	for _, z := range zeros {
		all = append(all, pruning{fmt.Sprintf("%.3g %% zeros", 100*z), func(w *formats.Dense[half.F16]) (formats.Encoded,
			error) {
			return w.Prune(1 - z)
		}})
	}
	return append(all, pruning{"2:4", func(w *formats.Dense[half.F16]) (formats.Encoded,
		error) {
		return nm.PruneDense(w, nm.Sparse24)
	}})
}

// compare prints a line for each pruning: bytes of the weights, and the device's time for each number of tokens.
func compare(ctx context.Context, dev *spmm.Device, c config, out io.Writer) error {
	fmt.Fprintf(out, "device   %v\n", dev.Info())
	fmt.Fprintf(out, "block    %d wide, %d inner, %d heads; weights in f16, packed for %d tokens\n\n", c.width, c.inner, c.heads, c.columns)
	line := func(weights, formats, mb string, times []string) {
		fmt.Fprintf(out, "%-12s %-24s %8s", weights, formats, mb)
		for _, t := range times {
			fmt.Fprintf(out, " %12s", t)
		}
		fmt.Fprintln(out)
	}
	var head []string
	for _, n := range c.tokens {
		head = append(head, fmt.Sprintf("N = %d", n))
	}
	line("weights", "formats", "MB", head)
	worst, weights := 0.0, c.weights()
	for _, p := range prunings(c.zeros) {
		b, err := newBlock(ctx, dev, c, p, weights)
		if err != nil {
			return err
		}
		var times []string
		for _, n := range c.tokens {
			took, distance, err := b.measure(ctx, n, c.runs)
			if err != nil {
				return errors.Join(err, b.close())
			}
			worst = max(worst, distance)
			times = append(times, took.String())
		}
		line(p.name, strings.Join(b.formats(), " "), fmt.Sprintf("%.1f", float64(b.bytes())/1e6), times)
		if err := b.close(); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\ntimes    the median of %d runs of all four multiplications, by the device's clock\n", c.runs)
	fmt.Fprintf(out, "checked  outputs of each, in float64: at most %.2g of the largest away\n", worst)
	if !(worst < 2e-3) { // what is multiplied next was rounded to 11 bits
		return errors.New("the outputs are wrong")
	}
	return nil
}

// layer is a weight matrix on the device and, to check with, on the host.
type layer struct {
	plan    *spmm.Plan
	weights *formats.CSR[half.F16]
}

// block is the four layers on a device.
type block struct {
	dev                *spmm.Device
	width, heads       int
	inner              int
	qkv, out, up, down *layer
}

// weights are random ones of the four layers: queries, keys and values; what attention gives; up; down.
func (c config) weights() [4]*formats.Dense[half.F16] {
	var all [4]*formats.Dense[half.F16]
	var wg sync.WaitGroup
	for i, size := range [4][2]int{{3 * c.width, c.width}, {c.width, c.width}, {c.inner, c.width}, {c.width, c.inner}} {
		wg.Go(func() {
			w := gen.Dense(size[0], size[1], uint64(i+1), gen.Values{})
			scale := float32(1 / math.Sqrt(float64(size[1])))
			for i := range w.Data {
				w.Data[i] *= scale
			}
			all[i] = formats.ConvertDense[half.F16](w)
		})
	}
	wg.Wait()
	return all
}

func newBlock(ctx context.Context, dev *spmm.Device, c config, p pruning, weights [4]*formats.Dense[half.F16]) (*block,
	error) {
	b := &block{dev: dev, width: c.width, heads: c.heads, inner: c.inner}
	var pruned [4]formats.Encoded
	var errs [4]error
	var wg sync.WaitGroup
	for i, w := range weights {
		wg.Go(func() { pruned[i], errs[i] = p.prune(w) })
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	for i, to := range []**layer{&b.qkv, &b.out, &b.up, &b.down} {
		plan, err := spmm.Prepare(ctx, dev, pruned[i], spmm.Options{Cols: c.columns})
		if err != nil {
			return nil, errors.Join(err, b.close())
		}
		*to = &layer{plan, pruned[i].Sparse().(*formats.CSR[half.F16])}
	}
	return b, nil
}

func (b *block) layers() []*layer {
	return slices.DeleteFunc([]*layer{b.qkv, b.out, b.up, b.down}, func(l *layer) bool { return l == nil })
}

func (b *block) close() error {
	var errs []error
	for _, l := range b.layers() {
		errs = append(errs, l.plan.Close())
	}
	return errors.Join(errs...)
}

// formats returns the formats of the layers, each once.
func (b *block) formats() []string {
	var names []string
	for _, l := range b.layers() {
		if f := l.plan.Info().Format; !slices.Contains(names, f) {
			names = append(names, f)
		}
	}
	return names
}

// bytes returns what the weights take on the device.
func (b *block) bytes() (n int64) {
	for _, l := range b.layers() {
		n += l.plan.Info().Stats.StoredBytes
	}
	return n
}

// tensors are the operands for a number of tokens: inputs of the four multiplications, and what they write.
type tensors struct {
	x, attended, hidden, inner *spmm.Tensor[half.F16]
	qkv, stream                *spmm.Tensor[float32]
}

func (t *tensors) close() error {
	return errors.Join(t.x.Close(), t.attended.Close(), t.hidden.Close(), t.inner.Close(), t.qkv.Close(), t.stream.Close())
}

// newTensors leaves those that it made to the device's Close after an error.
func (b *block) newTensors(n int) (*tensors, error) {
	t := &tensors{}
	for _, x := range []struct {
		to   **spmm.Tensor[half.F16]
		rows int
	}{{&t.x, b.width}, {&t.attended, b.width}, {&t.hidden, b.width}, {&t.inner, b.inner}} {
		var err error
		if *x.to, err = spmm.NewTensor[half.F16](b.dev, x.rows, n, false); err != nil {
			return nil, err
		}
	}
	var err error
	if t.qkv, err = spmm.NewTensor[float32](b.dev, 3*b.width, n, false); err != nil {
		return nil, err
	}
	t.stream, err = spmm.NewTensor[float32](b.dev, b.width, n, false)
	return t, err
}

// measure runs the block for n tokens: the median of the device's time for the four multiplications, and the worst
// distance of their outputs from those in float64.
func (b *block) measure(ctx context.Context, n, runs int) (took time.Duration, worst float64, err error) {
	t, err := b.newTensors(n)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if worst, err = b.forward(ctx, t, gen.Dense(b.width, n, 9, gen.Values{})); err != nil {
		return 0, 0, err
	}
	took, err = b.time(ctx, t, runs)
	return took, worst, err
}

// forward computes the block's output for x, checking each multiplication.
func (b *block) forward(ctx context.Context, t *tensors, x *formats.Dense[float32]) (worst float64, err error) {
	n := x.Cols
	qkv, stream := formats.NewDense[float32](3*b.width, n), x
	in := normalised(x)
	if err := t.x.Upload(ctx, in); err != nil {
		return 0, err
	}
	if _, err := b.qkv.plan.Run(ctx, 1, t.x, 0, t.qkv); err != nil {
		return 0, err
	}
	if err := t.qkv.Download(ctx, qkv); err != nil {
		return 0, err
	}
	worst = b.qkv.distance(qkv, in, nil)

	in = attention(qkv, b.heads)
	if err := errors.Join(t.attended.Upload(ctx, in), t.stream.Upload(ctx, stream)); err != nil {
		return 0, err
	}
	if _, err := b.out.plan.Run(ctx, 1, t.attended, 1, t.stream); err != nil {
		return 0, err
	}
	before, stream := stream, formats.NewDense[float32](b.width, n)
	if err := t.stream.Download(ctx, stream); err != nil {
		return 0, err
	}
	worst = max(worst, b.out.distance(stream, in, before))

	if err := t.hidden.Upload(ctx, normalised(stream)); err != nil {
		return 0, err
	}
	if _, err := b.up.plan.Run(ctx, 1, t.hidden, 0, t.inner, spmm.Epilogue{Activation: spmm.SiLU}); err != nil {
		return 0, err
	}
	if _, err := b.down.plan.Run(ctx, 1, t.inner, 1, t.stream); err != nil {
		return 0, err
	}
	in, before = formats.NewDense[half.F16](b.inner, n), stream
	stream = formats.NewDense[float32](b.width, n)
	if err := errors.Join(t.inner.Download(ctx, in), t.stream.Download(ctx, stream)); err != nil {
		return 0, err
	}
	return max(worst, b.down.distance(stream, in, before)), nil
}

// time runs the four multiplications as one sequence.
func (b *block) time(ctx context.Context, t *tensors, runs int) (time.Duration, error) {
	s := b.dev.NewSequence()
	defer s.Close()
	if err := errors.Join(
		s.Add(b.qkv.plan, 1, t.x, 0, t.qkv),
		s.Add(b.out.plan, 1, t.attended, 1, t.stream),
		s.Add(b.up.plan, 1, t.hidden, 0, t.inner, spmm.Epilogue{Activation: spmm.SiLU}),
		s.Add(b.down.plan, 1, t.inner, 1, t.stream),
	); err != nil {
		return 0, err
	}
	var took []time.Duration
	for range runs + 2 { // two to warm up
		timing, err := s.Run(ctx)
		if err != nil {
			return 0, err
		}
		took = append(took, timing.Best())
	}
	took = took[2:]
	slices.Sort(took)
	return took[len(took)/2], nil
}
