// Command diffusion takes a hundred steps of heat flowing through a graph whose edges change at every step: the same
// pattern with other values each time. The matrix of a step,
//
//	A(t) = I − dt·L(t),    X(t+1) = A(t)·X(t)
//
// has the Laplacian L(t) of the edges' conductances at time t. Its values are set in place; nothing is chosen, packed
// or compiled again, and the temperatures X, of several heat sources at once, stay on the device.
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
)

func main() { demo.Main(run) }

func run(ctx context.Context, args []string, out io.Writer) error {
	flags, device := demo.Flags("diffusion")
	file := flags.String("graph", "testdata/matrices/ca-CondMat.mtx.gz",
		"`file` of a symmetric matrix, whose pattern is the graph")
	steps := flags.Int("steps", 100, "`number` of steps")
	sources := flags.Int("sources", 32, "`number` of heat sources, each a column of X")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *sources < 1 {
		return fmt.Errorf("%d heat sources: want one or more", *sources)
	}
	graph, err := demo.Graph(ctx, *file)
	if err != nil {
		return err
	}
	f := &flow{a: graph, sources: *sources}
	dev, err := spmm.Open(ctx, *device)
	if err != nil {
		return err
	}
	defer dev.Close()

	s, err := f.simulate(ctx, dev, *steps)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "device   %v\n", dev.Info())
	fmt.Fprintf(out, "graph    %d nodes, %d edges; A as %s, chosen because %s\n", f.a.Rows, (f.a.NNZ()-int64(f.a.Rows))/2,
		s.info.Format, s.info.Why)
	fmt.Fprintf(out, "prepared in %v (%v of it packing)\n", s.prepared, s.info.EncodeTime)
	fmt.Fprintf(out, "steps    %d with new values: %v each on the host, including %v to set the values; the device multiplied %v in all\n",
		*steps, s.host/time.Duration(*steps), s.setting/time.Duration(*steps), s.device)
	heat, worst := f.check(s.x, *steps)
	fmt.Fprintf(out, "heat     %.6f of what was put in is there\n", heat)
	fmt.Fprintf(out, "checked  all %d temperatures: at most %.2g of the highest from those computed in float64\n", len(s.x.Data), worst)
	if !(worst < 1e-5) {
		return errors.New("the temperatures are wrong")
	}
	return nil
}

// flow is heat on a graph.
type flow struct {
	a       *formats.CSR[float32] // the pattern of A(t), diagonal included; its values are those of the last step
	sources int
}

// conductance of the edge from i to j at a step: it swings between 0 and 1, each edge in its own phase.
func conductance(i, j, step int) float64 {
	phase := float64((i*j + i + j) % 97)
	return 0.5 + 0.5*math.Sin(0.1*float64(step)+phase)
}

// values returns those of A at a step, in the order of f.a's entries. What flows out of a node in a step is at most
// half of what it has.
func (f *flow) values(step int) []float32 {
	val, a := f.a.Val, f.a
	for i := range a.Rows {
		var diagonal int64
		degree := a.RowPtr[i+1] - a.RowPtr[i] - 1
		var out float64
		for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
			j := int(a.ColIdx[e])
			if j == i {
				diagonal = e
				continue
			}
			most := max(degree, a.RowPtr[j+1]-a.RowPtr[j]-1)
			w := float32(conductance(min(i, j), max(i, j), step) / (2 * float64(most)))
			val[e] = w
			out += float64(w)
		}
		val[diagonal] = float32(1 - out)
	}
	return val
}

// start returns the temperatures at the beginning: each source heats one node.
func (f *flow) start() *formats.Dense[float32] {
	x := formats.NewDense[float32](f.a.Rows, f.sources)
	for j := range f.sources {
		x.Set(j*f.a.Rows/f.sources, j, 1)
	}
	return x
}

// simulation is the result of the steps.
type simulation struct {
	info                            spmm.PlanInfo
	x                               *formats.Dense[float32] // at the end
	prepared, host, setting, device time.Duration
}

// simulate takes the steps on a device.
func (f *flow) simulate(ctx context.Context, dev *spmm.Device, steps int) (*simulation, error) {
	f.values(0)
	begin := time.Now()
	p, err := spmm.Prepare(ctx, dev, f.a, spmm.Options{Cols: f.sources})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	s := &simulation{info: p.Info(), x: f.start(), prepared: time.Since(begin)}
	var x [2]*spmm.Tensor[float32] // now and after the step, by turns
	for i := range x {
		if x[i], err = spmm.NewTensor[float32](dev, f.a.Rows, f.sources, false); err != nil {
			return nil, err
		}
		defer x[i].Close()
	}
	if err := x[0].Upload(ctx, s.x); err != nil {
		return nil, err
	}
	begin = time.Now()
	for step := range steps {
		values := f.values(step)
		set := time.Now()
		if err := spmm.SetValues(ctx, p, values); err != nil {
			return nil, err
		}
		s.setting += time.Since(set)
		t, err := p.Run(ctx, 1, x[step%2], 0, x[(step+1)%2])
		if err != nil {
			return nil, err
		}
		s.device += t.Best()
	}
	s.host = time.Since(begin)
	return s, x[steps%2].Download(ctx, s.x)
}

// check returns the share of the heat that is there after the steps, and the largest distance from what the host
// computes in float64, over the highest temperature.
func (f *flow) check(x *formats.Dense[float32], steps int) (heat, worst float64) {
	want, n := demo.Wide(f.start().Data), f.sources
	for step := range steps {
		f.values(step)
		want = demo.Product(f.a, want, n)
	}
	for _, v := range x.Data {
		heat += float64(v) / float64(n)
	}
	return heat, demo.Distance(x.Data, want)
}
