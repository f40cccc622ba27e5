package benchmark

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
)

// asPeer makes the test's program a peer of some behaviour.
const asPeer = "SPMM_TEST_PEER"

func TestMain(m *testing.M) {
	if how := os.Getenv(asPeer); how != "" {
		servePeer(how)
		return
	}
	folder, err := os.MkdirTemp("", "spmm-benchmark")
	if err != nil {
		panic(err)
	}
	os.Setenv("SPMM_CACHE", folder)
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// servePeer answers as the protocol says, or not, as the word tells. It sums in the order of A's entries.
func servePeer(how string) {
	var c []float32
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			panic(err)
		}
		switch {
		case r.Op == "hello" && how == "dumb":
			fmt.Println("what?")
		case r.Op == "hello" && how == "nameless":
			fmt.Println("{}")
		case r.Op == "hello":
			fmt.Println(`{"name":"go","description":"rows in Go"}`)
		case (r.Op == "prepare" || r.Op == "sample") && r.Precision != "f32":
			fmt.Println(`{"error":"f32 only"}`)
		case r.Op == "sample":
			c = samplesOf(r.File)
			fmt.Println(`{"algorithms":["one","two"]}`)
		case r.Op == "prepare":
			c = productOf(r.File)
			rounded := "[]"
			if how == "coarse" {
				rounded = `["f16","f32"]`
				narrow := make([]half.F16, len(c))
				formats.ConvertSlice(narrow, c)
				formats.ConvertSlice(c, narrow)
			}
			fmt.Println(`{"algorithms":["one","two"],"rounded":` + rounded + `,"prepare_us":[0,3000]}`)
		case r.Op == "output":
			if how == "wrong" && r.Algorithm == 1 {
				c[len(c)-1]++
			}
			if how == "short" {
				c = c[:len(c)-1]
			}
			if err := os.WriteFile(r.File, backend.Bytes(c), 0o600); err != nil {
				panic(err)
			}
			fmt.Println("{}")
		case r.Op == "run" && how == "dies":
			return
		case r.Op == "run" && how == "instant":
			fmt.Println(`{"us":0}`)
		case r.Op == "run" && how == "host":
			fmt.Println(`{"us":100}`)
		case r.Op == "run" && how == "slow":
			fmt.Printf(`{"us":%d,"clock":"device"}`+"\n", 100+2000*r.Algorithm)
		case r.Op == "run":
			fmt.Printf(`{"us":%d,"clock":"device"}`+"\n", 100*(r.Algorithm+1))
		default:
			fmt.Println("{}")
		}
	}
}

// productOf computes the product of a file of prepare.
func productOf(name string) []float32 {
	p := readProduct(name, false)
	c := make([]float32, p.m*p.n)
	for i := range p.m {
		for e := p.starts[i]; e < p.starts[i+1]; e++ {
			for j := range p.n {
				c[i*p.n+j] += p.val[e] * p.b[int64(p.cols[e])*p.n+j]
			}
		}
	}
	return c
}

// samplesOf computes the sampled product of a file of sample.
func samplesOf(name string) []float32 {
	p := readProduct(name, true)
	s := make([]float32, len(p.cols))
	for i := range p.m {
		for e := p.starts[i]; e < p.starts[i+1]; e++ {
			for j := range p.n {
				s[e] += p.x[i*p.n+j] * p.b[int64(p.cols[e])*p.n+j]
			}
		}
	}
	return s
}

// peersProduct is the content of a file of prepare or sample.
type peersProduct struct {
	m, n         int64
	starts, cols []int32
	val, b, x    []float32
}

// readProduct reads a file of prepare, or of sample.
func readProduct(name string, sampled bool) (p peersProduct) {
	text, err := os.ReadFile(name)
	if err != nil {
		panic(err)
	}
	in := bytes.NewReader(text)
	read := func(x any) {
		if err := binary.Read(in, binary.LittleEndian, x); err != nil {
			panic(err)
		}
	}
	var size [4]int64
	read(&size)
	m, k, nnz, n := size[0], size[1], size[2], size[3]
	p = peersProduct{m, n, make([]int32, m+1), make([]int32, nnz), make([]float32, nnz), make([]float32, k*n), nil}
	if sampled {
		p.x = make([]float32, m*n)
	}
	for _, x := range []any{p.starts, p.cols, p.val, p.b, p.x} {
		read(x)
	}
	if in.Len() > 0 {
		panic("the file is longer")
	}
	return p
}

// small is a sweep that takes a moment on the CPU.
func small(peers ...string) *Sweep {
	return &Sweep{
		Products: []Products{{
			Matrices: []string{"gen:uniform,rows=67,cols=41,density=0.1"}, Columns: []int{5}, Backends: []string{"cpu"},
			Formats:    []string{"csr"},
			Precisions: []dtype.Type{dtype.F32}, Modes: []string{Fast}, Ways: []Way{{}},
		}},
		Peers: peers, Turns: Turns{Interval: 0.02, Limit: 5 * time.Millisecond},
		Open: func(_ context.Context, name string) (*formats.CSR[float32], error) { return gen.CSR(name) },
		Verify: func(ctx context.Context, p oracle.Problem, _ int, c *formats.Dense[float32]) error {
			return whole(ctx, p, c)
		},
		Verify64: whole[float64],
		Fits:     func([]spmm.Info, *formats.CSR[float32], int, int) error { return nil },
		Progress: func(int64, int64) {},
	}
}

// whole checks all of an output.
func whole[T oracle.Number](ctx context.Context, p oracle.ProblemOf[T], c *formats.Dense[T]) error {
	r, err := oracle.Check(ctx, p, c, 0)
	if err == nil && !r.OK() {
		err = r.First
	}
	return err
}

// In f64 C is of f64, and is held to what f64 must keep.
func TestFloat64(t *testing.T) {
	s := small()
	s.Products[0].Precisions = []dtype.Type{dtype.F64}
	s.Fits = func(_ []spmm.Info, _ *formats.CSR[float32], _, size int) error {
		if size != 8 {
			t.Errorf("elements of %d bytes", size)
		}
		return nil
	}
	r, err := s.Run(t.Context())
	if err != nil || len(r.Results) != 1 || !r.Results[0].Measured() || r.Results[0].Bytes < 8*5*(67+41) {
		t.Errorf("%+v, %v", r.Results, err)
	}
	s.Verify64 = func(ctx context.Context, p oracle.ProblemOf[float64], c *formats.Dense[float64]) error {
		c.Data[0] += 0x1p-30
		return whole(ctx, p, c)
	}
	if r, err = s.Run(t.Context()); err != nil || !r.Results[0].Wrong {
		t.Errorf("an error of 2⁻³⁰ is not noticed: %+v, %v", r.Results, err)
	}
}

func TestSweep(t *testing.T) {
	s := small()
	s.Products[0].Columns, s.Products[0].Formats = []int{1, 5}, []string{"auto", "cvse"}
	s.Products[0].Precisions = []dtype.Type{dtype.F32, dtype.F16, dtype.BF16}
	last := int64(-1)
	s.Progress = func(done, total int64) {
		if total != 600 || done < last || done > total {
			t.Errorf("progress %d of %d after %d", done, total, last)
		}
		last = done
	}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Results) != 12 || last != 600 {
		t.Fatalf("%d results, want 12; %d of 600 done", len(r.Results), last)
	}
	seen := map[Case]bool{}
	for _, x := range r.Results {
		if seen[x.Case] {
			t.Errorf("%v twice", x.Case)
		}
		seen[x.Case] = true
		if !x.Measured() || len(x.Samples) < leastSamples || x.Low > x.Median || x.High < x.Median ||
			x.AttainableUS <= 0 || x.Bytes <= 0 || x.Variant == "" {
			t.Errorf("%+v", x)
		}
	}
}

// All that compute a product have as many samples: they took turns.
func TestPeers(t *testing.T) {
	t.Setenv(asPeer, "right")
	s := small(os.Args[0])
	s.Products[0].Precisions = append(s.Products[0].Precisions, dtype.F16)
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var by []string
	for _, x := range r.Results {
		by = append(by, x.Precision+" "+x.By())
		if x.Measured() && x.Precision == "f32" && len(x.Samples) != len(r.Results[0].Samples) {
			t.Errorf("%v has %d samples, the first %d", x.Case, len(x.Samples), len(r.Results[0].Samples))
		}
	}
	if want := []string{"f32 cpu csr", "f32 go one", "f32 go two", "f16 cpu csr", "f16 go -"}; !slices.Equal(by, want) {
		t.Fatalf("%q, want %q", by, want)
	}
	if x := r.Results[2]; x.Median != 200 || !x.Settled || x.Clock != "device" || x.EncodeS != 0.003 {
		t.Errorf("the second algorithm: %+v", x)
	}
	if x := r.Results[4]; x.Error != "f32 only" {
		t.Errorf("a precision that the peer lacks: %+v", x)
	}
	if !slices.Equal(r.Environment.Peers, []string{"rows in Go"}) {
		t.Errorf("peers %q", r.Environment.Peers)
	}
}

// An algorithm that is far slower than the peers' best is measured once, and the others as often as ever.
func TestSlowPeer(t *testing.T) {
	t.Setenv(asPeer, "slow")
	r, err := small(os.Args[0]).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Results {
		slow := x.By() == "go two"
		if x.Once != slow || slow && (len(x.Samples) != 1 || x.Median != 2100) || !slow && len(x.Samples) < leastSamples {
			t.Errorf("%+v: want one sample of 2100 µs of go two, and at least %d of others", x, leastSamples)
		}
	}
	if len(r.Results) != 3 {
		t.Errorf("%d results, want 3", len(r.Results))
	}
	if err := r.Write(io.Discard); err != nil { // one time has no interval
		t.Error(err)
	}
}

// A peer on the host has time to become quiet before another computes.
func TestRest(t *testing.T) {
	t.Setenv(asPeer, "host")
	start := time.Now()
	r, err := small(os.Args[0]).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if x := r.Results[1]; x.Clock != "host" || time.Since(start) < time.Duration(2*len(x.Samples))*peerRest {
		t.Errorf("%d samples by the %s's clock of each of two in %v", len(x.Samples), x.Clock, time.Since(start))
	}
}

// What a peer does wrong is said of it, and the others' times are there.
func TestFaultyPeers(t *testing.T) {
	for how, want := range map[string][]string{
		"wrong":   {"", "wrong answer: C[66,4] is "},
		"coarse":  {"", "wrong answer: C["}, // it says of the first algorithm alone that C is rounded to f16
		"short":   {"its output: unexpected EOF", "its output: unexpected EOF"},
		"dies":    {`it does not answer "run" as the protocol says: EOF`, `it does not answer "run" as the protocol says`},
		"instant": {"it took 0 µs", "it took 0 µs"},
	} {
		t.Run(how, func(t *testing.T) {
			t.Setenv(asPeer, how)
			r, err := small(os.Args[0]).Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Results) != 3 || !r.Results[0].Measured() {
				t.Fatalf("results %+v", r.Results)
			}
			for i, x := range r.Results[1:] {
				if x.Measured() != (want[i] == "") || !strings.HasPrefix(x.Error, want[i]) ||
					x.Wrong != strings.HasPrefix(want[i], "wrong") {
					t.Errorf("algorithm %d: error %q, want %q", i, x.Error, want[i])
				}
			}
		})
	}
	for _, how := range []string{"dumb", "nameless"} {
		t.Run(how, func(t *testing.T) {
			t.Setenv(asPeer, how)
			if _, err := small(os.Args[0]).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "peer ") {
				t.Errorf("error %v", err)
			}
		})
	}
	if _, err := small("/nonexistent/peer").Run(t.Context()); err == nil {
		t.Error("no error for a program that is not there")
	}
}

func TestWrongAnswer(t *testing.T) {
	s := small()
	s.Verify = func(context.Context, oracle.Problem, int, *formats.Dense[float32]) error { return errors.New("C[0,0]") }
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if x := r.Results[0]; !x.Wrong || x.Measured() || x.Error != "wrong answer: C[0,0]" {
		t.Errorf("%+v", x)
	}
}

// A group of devices is measured together with one of them, and is right in every precision and mode.
func TestGroups(t *testing.T) {
	s := small()
	s.Products[0].Backends, s.Products[0].Columns = []string{"cpu", "cpu+cpu", "cpu:all"}, []int{256}
	s.Products[0].Modes = []string{Fast, Reproducible}
	s.Products[0].Precisions = []dtype.Type{dtype.F32, dtype.F16, dtype.BF16, dtype.F64}
	seen := map[string]int{}
	s.Fits = func(on []spmm.Info, _ *formats.CSR[float32], _, _ int) error {
		seen["devices"] = max(seen["devices"], len(on))
		return nil
	}
	s.Verify = func(ctx context.Context, p oracle.Problem, bits int, c *formats.Dense[float32]) error {
		if bits != 0 {
			seen["reproducible"]++
			return nil
		}
		return whole(ctx, p, c)
	}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Results {
		switch {
		case x.Precision == "f64" && x.Mode == Reproducible: // which refuses it
		case !x.Measured() || x.AttainableUS <= 0 || (x.Split != "") != (x.Backend != "cpu"):
			t.Errorf("%+v", x)
		}
	}
	if len(r.Results) != 24 || seen["devices"] != 2 || seen["reproducible"] != 9 {
		t.Errorf("%d results, %v", len(r.Results), seen)
	}
	if d := r.Environment.Devices; len(d) != 3 || d[1].Flops != 2*d[0].Flops || d[1].Copy != 2*d[0].Copy ||
		d[1].Backend != "cpu+cpu" || d[0].Peaks["f32"] <= 0 {
		t.Errorf("devices %+v", d)
	}
}

// A device under two names is not measured twice, and auto has the name of what it is.
func TestAuto(t *testing.T) {
	s := small()
	s.Products[0].Backends, s.Products[0].Precisions = []string{"auto"}, []dtype.Type{dtype.F64}
	r, err := s.Run(t.Context())
	if err != nil || r.Results[0].Backend != "cpu" {
		t.Fatalf("%+v, %v", r.Results, err)
	}
	for _, name := range []string{"auto", "cpu:0"} {
		s.Products[0].Backends = []string{"cpu", name}
		if _, err := s.Run(t.Context()); err == nil || err.Error() != "device cpu is measured twice: as "+name+" too" {
			t.Errorf("error %v for a device that is cpu and %s", err, name)
		}
	}
}

// Every way is a case of its own, and right; a way is not measured where it is the plain one, or for other columns
// than its own.
func TestWays(t *testing.T) {
	s := small()
	s.Products[0].Columns, s.Products[0].Precisions = []int{5, 8}, []dtype.Type{dtype.F16}
	s.Products[0].Formats = []string{"lanestream"}
	s.Products[0].Ways = []Way{
		{}, {Packed: 8}, {Calls: Recorded}, {Calls: Listed, Columns: []int{8}}, {Calls: Apart}, {Quantise: "s8"},
		{Quantise: "e4m3", Packed: 8}, {Split: "rows"}, {Right: true},
	}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ways []string
	for _, x := range r.Results {
		if x.N == 5 {
			ways = append(ways, x.Way)
		}
		if x.Way == "by rows" && !strings.Contains(x.Error, "several devices") || x.Way != "by rows" && !x.Measured() {
			t.Errorf("%v: %s", x.Case, x.Error)
		}
	}
	want := []string{"", "packed for 8", "recorded", "apart", "s8", "packed for 8, e4m3", "by rows", "X·Aᵀ"}
	if !slices.Equal(ways, want) || len(r.Results) != 15 {
		t.Errorf("%d results, ways %q, want %q", len(r.Results), ways, want)
	}
	s.Verify = func(ctx context.Context, p oracle.Problem, _ int, c *formats.Dense[float32]) error {
		p.Quantised = nil // the matrix before it was quantised
		return whole(ctx, p, c)
	}
	if r, err = s.Run(t.Context()); err != nil ||
		!slices.ContainsFunc(r.Results, func(x Result) bool { return x.Way == "s8" && x.Wrong }) {
		t.Errorf("what quantising loses is not noticed: %v", err)
	}
}

// Several devices by columns and by rows, with B where it is needed or on the first, and with little memory.
func TestWaysOfGroups(t *testing.T) {
	s := small()
	s.Products[0].Backends, s.Products[0].Columns = []string{"cpu+cpu"}, []int{130}
	s.Products[0].Ways = []Way{
		{Split: "columns"}, {Split: "rows"}, {Split: "columns", First: true}, {Split: "rows", First: true},
		{Memory: 1 << 20},
	}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const little = "0.00105 GB of memory"
	for i, want := range []string{
		"by columns", "by rows", "by columns, B on the first", "by rows, B on the first", little,
	} {
		x := r.Results[i]
		if !x.Measured() || x.Way != want || want != little && strings.Contains(want, "rows") != (x.Split == "rows") {
			t.Errorf("%+v", x)
		}
	}
}

// A matrix streams to a device whose memory may hardly be used.
func TestStreams(t *testing.T) {
	s := small()
	s.Products[0].Matrices, s.Products[0].Columns = []string{"gen:uniform,rows=3000,density=0.1"}, []int{8}
	s.Products[0].Ways = []Way{{Memory: 1 << 20}}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if x := r.Results[0]; !x.Measured() || x.Way != "0.00105 GB of memory" || x.By() != "cpu csr 0.00105 GB of memory" {
		t.Errorf("%+v", x)
	}
}

// A time that is asked for is in the result, whether in microseconds or as a multiple of a peer's.
func TestLimits(t *testing.T) {
	t.Setenv(asPeer, "right")
	s := small(os.Args[0])
	s.Products[0].Columns, s.Products[0].Formats = []int{5, 6, 7}, []string{"auto", "csr"}
	s.Products[0].Limits = []Limit{
		{Columns: []int{5}, US: 3}, {Columns: []int{6}, Times: 1.5, Of: "go two"},
		{Columns: []int{7}, Times: 2, Of: "nobody"}, {Format: "csr", US: 4},
	}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Results {
		want := 0.
		switch {
		case x.Format == "csr":
			want = 4
		case x.Format == "auto":
			want = map[int]float64{5: 3, 6: 300}[x.N]
		}
		if x.AskedUS != want {
			t.Errorf("%v: %v µs are asked for, want %v", x.Case, x.AskedUS, want)
		}
	}
}

// What was measured before an interrupt is there.
func TestInterruptedLater(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	s := small()
	s.Products[0].Columns = []int{5, 6}
	s.Progress = func(done, _ int64) {
		if done > units {
			stop()
		}
	}
	r, err := s.Run(ctx)
	if !errors.Is(err, context.Canceled) || len(r.Results) != 1 || !r.Results[0].Measured() {
		t.Errorf("%+v, %v", r.Results, err)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	s := small()
	s.Limit = time.Hour
	s.Interval = 1e-12
	s.Progress = func(int64, int64) { stop() }
	if _, err := s.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}
