// Pruned weights on a GPU beside cuBLAS's dense multiplication and cuSPARSELt's 2:4: what auto takes, its time and the floor
// that it has to reach; many columns also from the copy that was packed for few.

package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
)

// weights is a kind of pruned matrix, and the columns that it is multiplied by.
type weights struct {
	rows, cols int
	spec       string // without rows and cols
	n          []int
	us         []float64  // floors; 0: that of dense
	peer       string     // 24 where cuSPARSELt is a peer besides cuBLAS
	quantise   dtype.Type // the values' type, where they have 8 bits
	same       []int      // columns to multiply by from the copy that was packed for packedFor columns
}

// packedFor is the columns for which a server packs the weights that it generates text with.
const packedFor = 8

// slowerThanDense is how much longer than cuBLAS auto may take wherever there is no other floor.
const slowerThanDense = 1.15

// prunedWeights are the cases with their floors, in µs on an H200.
func prunedWeights() []weights {
	few, many, all := []int{1, 8, 16, 32, 512, 2048}, []int{512, 2048}, []int{512, 2048, 1, 8, 32, 64, 128, 256}
	ws := []weights{
		{rows: 28672, cols: 8192, spec: "uniform,density=0.5", n: few, us: []float64{88, 70, 71, 85}, same: many},
		{rows: 28672, cols: 8192, spec: "uniform,density=0.4", n: few, us: []float64{73, 60, 62, 74}, same: many},
		{rows: 28672, cols: 8192, spec: "uniform,density=0.3", n: few, us: []float64{57, 54, 59, 73}, same: many},
		{rows: 28672, cols: 8192, spec: "uniform,density=0.2", n: few, us: []float64{41, 42, 47, 64}, same: many},
		{rows: 28672, cols: 8192, spec: "uniform,density=0.1", n: few, us: []float64{25, 30, 36, 52}, same: many},
		{rows: 28672, cols: 8192, spec: "uniform,density=0.5", n: []int{8}, us: []float64{70 / 1.3}, quantise: dtype.S8},
		{rows: 28672, cols: 8192, spec: "uniform,density=0.5", n: []int{8}, us: []float64{70 / 1.3}, quantise: dtype.E4M3},
		{rows: 4096, cols: 4096, spec: "uniform,density=0.1", n: all, us: []float64{30, 85}},
		{rows: 4096, cols: 4096, spec: "uniform,density=0.05", n: all, us: []float64{28, 75}},
		{rows: 4096, cols: 4096, spec: "uniform,density=0.02", n: all, us: []float64{24, 70}},
		{rows: 4096, cols: 4096, spec: "vector,v=8,density=0.3", n: all, us: []float64{27, 93}},
		{rows: 4096, cols: 4096, spec: "vector,v=8,density=0.2", n: all, us: []float64{24, 80}},
		{rows: 4096, cols: 4096, spec: "vector,v=8,density=0.1", n: all, us: []float64{15, 50}},
		{rows: 4096, cols: 4096, spec: "vector,v=8,density=0.05", n: all, us: []float64{12, 36}},
		{rows: 4096, cols: 4096, spec: "vector,v=8,density=0.02", n: all, us: []float64{9, 26}},
		{rows: 4096, cols: 4096, spec: "nm,n=2,m=4", n: []int{512, 2048, 8, 32, 64, 128, 256}, us: []float64{22, 66}, peer: "24"},
	}
	for _, size := range [][2]int{{12288, 4096}, {4096, 4096}, {11008, 4096}, {4096, 11008}} { // of a transformer's block
		for _, density := range []string{"0.5", "0.4", "0.3", "0.2", "0.1"} {
			ws = append(ws, weights{rows: size[0], cols: size[1], spec: "uniform,density=" + density, n: []int{1, 8, 16, 32, 64, 128, 256}, same: []int{64, 256, 512}})
		}
	}
	for _, density := range []string{"1", "0.8", "0.6"} {
		ws = append(ws,
			weights{rows: 4096, cols: 4096, spec: "uniform,density=" + density, n: []int{1, 8, 32, 64, 128, 192, 256, 512, 1000, 2048, 4096}},
			weights{rows: 28672, cols: 8192, spec: "uniform,density=" + density, n: []int{1, 8, 32, 64, 128, 192, 512, 2048, 4096}})
	}
	return ws
}

// matrix returns what gen makes of it.
func (w weights) matrix() string {
	return fmt.Sprintf("gen:%s,rows=%d,cols=%d", w.spec, w.rows, w.cols)
}

// String is its name in tables.
func (w weights) String() string {
	if w.quantise == dtype.Invalid {
		return w.matrix()
	}
	return fmt.Sprintf("%s %v", w.matrix(), w.quantise)
}

// floor is what case i has to reach, given cuBLAS's time; 0 if neither is known.
func (w weights) floor(i int, dense float64) float64 {
	if i < len(w.us) && w.us[i] > 0 {
		return w.us[i]
	}
	return slowerThanDense * dense
}

// pruning is a run of the suite.
type pruning struct {
	r     *runner
	dev   *spmm.Device
	dense map[[3]int]float64 // cuBLAS's times, by rows, columns and columns of B
}

// pruned prints for each case what auto takes in f16, and the floor.
func pruned(r *runner) error {
	ctx := context.Background()
	only, err := regexp.Compile(r.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	dev, err := spmm.Open(ctx, "cuda")
	if err != nil {
		return err
	}
	defer dev.Close()
	s := &pruning{r: r, dev: dev, dense: map[[3]int]float64{}}
	columns := []string{"matrix", "packed for", "N", "cuBLAS", "cuSPARSELt", "auto", "one by one", "taken", "floor", ""}
	if r.formats != "" {
		columns = append(columns, "asked for")
	}
	table(fmt.Sprintf("%v, f16, µs", dev.Info()), columns...)
	ws := slices.DeleteFunc(prunedWeights(), func(w weights) bool { return !only.MatchString(w.String()) })
	made := make(chan packable) // the next matrix is made meanwhile
	go func() {
		defer close(made)
		for _, w := range ws {
			made <- w.make()
		}
	}()
	for _, w := range ws {
		a := <-made
		if err = a.err; err == nil {
			err = s.print(ctx, w, a)
		}
		if err != nil {
			return fmt.Errorf("%v: %w", w, err)
		}
	}
	fmt.Println()
	return nil
}

// packable is a matrix, and how to get some rows of it in f32.
type packable struct {
	formats.Encoded
	row func(i int) *formats.CSR[float32]
	err error
}

func (w weights) make() packable {
	a32, err := gen.CSR(w.matrix())
	if err != nil {
		return packable{err: err}
	}
	if w.quantise == dtype.Invalid {
		a := formats.Convert[half.F16](a32)
		return packable{Encoded: a, row: func(i int) *formats.CSR[float32] { return formats.Convert[float32](a.Range(i, i+1)) }}
	}
	a, _, err := formats.Quantise(a32, w.quantise)
	return packable{Encoded: a, row: func(i int) *formats.CSR[float32] { return a.RowRange(i, i+1).Float32() }, err: err}
}

// peers measures what was not measured before of a matrix's size.
func (s *pruning) peers(w weights) (sparse map[int]float64, err error) {
	var ns []int
	for _, n := range slices.Concat(w.n, w.same) {
		if s.dense[[3]int{w.rows, w.cols, n}] == 0 && !slices.Contains(ns, n) {
			ns = append(ns, n)
		}
	}
	if len(ns) > 0 {
		times, err := s.r.peerTimes(args("gemm", w, ns)...)
		if err != nil {
			return nil, err
		}
		for i, n := range ns {
			s.dense[[3]int{w.rows, w.cols, n}] = at(times, i)
		}
	}
	sparse = map[int]float64{}
	if w.peer != "" {
		times, err := s.r.peerTimes(args(w.peer, w, w.n)...)
		if err != nil {
			return nil, err
		}
		for i, n := range w.n {
			sparse[n] = at(times, i)
		}
	}
	return sparse, nil
}

// print prints the lines of a matrix. What fails is said, as the other lines are worth having.
func (s *pruning) print(ctx context.Context, w weights, a packable) error {
	sparse, err := s.peers(w)
	if err != nil {
		return err
	}
	line := func(packed, n int, floor float64, us, apart float64, taken, others string) {
		cells := []any{w, packed, n, s.dense[[3]int{w.rows, w.cols, n}], sparse[n], us, apart, taken, floor, met(us, floor)}
		if s.r.formats != "" {
			cells = append(cells, others)
		}
		row(cells...)
	}
	for i, n := range w.n {
		ns := []int{n}
		if n == packedFor {
			ns = append(ns, w.same...)
		}
		plan, err := s.prepare(ctx, a, n, "")
		if err != nil {
			fmt.Fprintf(os.Stderr, "bench: %v, N=%d: %v\n", w, n, err)
			continue
		}
		for _, m := range ns {
			us, apart, err := s.measure(ctx, plan, a, m)
			if err != nil {
				fmt.Fprintf(os.Stderr, "bench: %v, packed for %d columns, N=%d: %v\n", w, n, m, err)
				continue
			}
			floor, others := slowerThanDense*s.dense[[3]int{w.rows, w.cols, m}], ""
			if m == n {
				floor, others = w.floor(i, s.dense[[3]int{w.rows, w.cols, m}]), s.others(ctx, a, n)
			}
			line(n, m, floor, us, apart, plan.Info().Format+"/"+plan.Info().Variant, others)
		}
		if err := plan.Close(); err != nil {
			return err
		}
	}
	return nil
}

// others says what other formats take, those of -formats.
func (s *pruning) others(ctx context.Context, a packable, n int) string {
	var all []string
	for _, f := range strings.Split(s.r.formats, ",") {
		if f == "" {
			continue
		}
		said := func() string {
			plan, err := s.prepare(ctx, a, n, f)
			if err != nil {
				return "-"
			}
			defer plan.Close()
			us, _, err := s.measure(ctx, plan, a, n)
			if err != nil {
				return err.Error()
			}
			return fmt.Sprintf("%.1f", us)
		}()
		all = append(all, f+" "+said)
	}
	return strings.Join(all, ", ")
}

// prepare packs for n columns in a format, or FORMAT/VARIANT; "": what auto takes.
func (s *pruning) prepare(ctx context.Context, a packable, n int, format string) (*spmm.Plan, error) {
	started := time.Now()
	o := spmm.Options{Cols: n}
	o.Format, o.Variant, _ = strings.Cut(format, "/")
	plan, err := spmm.Prepare(ctx, s.dev, a.Encoded, o)
	if err == nil {
		fmt.Fprintf(os.Stderr, "N=%d prepared in %v\n", n, time.Since(started).Round(time.Millisecond))
	}
	return plan, err
}

// measure returns the time of a product in µs, of many back to back and of such as do not overlap. Some rows of the output are checked.
func (s *pruning) measure(ctx context.Context, plan *spmm.Plan, a packable, n int) (us, apart float64, err error) {
	rows, cols := a.Dims()
	x, y, err := spmm.TensorsFor[half.F16, float32](plan, n)
	if err != nil {
		return 0, 0, err
	}
	defer x.Close()
	defer y.Close()
	b, c := formats.ConvertDense[half.F16](gen.Dense(cols, n, 1, gen.Values{})), formats.NewDense[float32](rows, n)
	if err := x.Upload(ctx, b); err != nil {
		return 0, 0, err
	}
	if _, err := plan.Run(ctx, 1, x, 0, y); err != nil {
		return 0, 0, err
	}
	if err := y.Download(ctx, c); err != nil {
		return 0, 0, err
	}
	if err := a.check(ctx, b, c, plan.Info().Precision); err != nil {
		return 0, 0, err
	}
	e := &entrant{plan: plan, b: x, c: y, close: func() {}}
	e.again = func(batch int) (time.Duration, error) {
		t, err := plan.Repeat(ctx, batch, 1, x, 0, y)
		return t.Best(), err
	}
	if s.r.recorded {
		e.record(ctx, s.dev)
		defer func() { e.close() }()
	}
	if err := measure([]*entrant{e}); err != nil {
		return 0, 0, err
	}
	apart, err = oneByOne(ctx, plan, x, y)
	return e.us, apart, err
}

// oneByOne is the median time in µs of products that are started by themselves, while those before still run: such do not overlap.
func oneByOne(ctx context.Context, plan *spmm.Plan, x *spmm.Tensor[half.F16], y *spmm.Tensor[float32]) (float64, error) {
	started := make([]*spmm.Pending, 60) // fewer than may wait
	for i := range started {
		var err error
		if started[i], err = plan.Start(ctx, 1, x, 0, y); err != nil {
			return 0, err
		}
	}
	times := make([]float64, len(started))
	for i, p := range started {
		t, err := p.Wait(ctx)
		if err != nil {
			return 0, err
		}
		times[i] = micros(t.Best())
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// check holds some rows of C against the bound of the conformance suite.
func (a packable) check(ctx context.Context, b *formats.Dense[half.F16], c *formats.Dense[float32], compute dtype.Type) error {
	const sample = 32
	some, got := &formats.CSR[float32]{Rows: sample, Cols: b.Rows, RowPtr: []int64{0}}, formats.NewDense[float32](sample, c.Cols)
	for i := range sample {
		from := i * (c.Rows - 1) / (sample - 1)
		r := a.row(from)
		some.ColIdx, some.Val = append(some.ColIdx, r.ColIdx...), append(some.Val, r.Val...)
		some.RowPtr = append(some.RowPtr, int64(len(some.Val)))
		copy(got.Line(i), c.Line(from))
	}
	return right(ctx, some, formats.ConvertDense[float32](b), got, compute)
}

// args are those of peers.
func args(name string, w weights, ns []int) []any {
	words := []any{name, w.rows, w.cols}
	for _, n := range ns {
		words = append(words, n)
	}
	return words
}

// at returns element i, or 0 if nothing was measured.
func at(times []float64, i int) float64 {
	if i < len(times) {
		return times[i]
	}
	return 0
}
