// Chains, new values and copies: what is measured, that all leave the same bits, and what is refused.

package benchmark

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
)

// brief is a task that takes a moment.
func briefTask(matrices ...string) *Task {
	return &Task{
		Backends: []string{"cpu"}, Matrices: matrices, Most: 1 << 18, Turns: Turns{Interval: 0.02, Limit: time.Millisecond},
		Open: func(_ context.Context, name string) (*formats.CSR[float32], error) {
			if name != valuesOf("nm") && strings.HasPrefix(name, "gen:uniform,rows=4096") {
				name = "gen:uniform,rows=64,density=0.1"
			}
			return gen.CSR(strings.Replace(name, "rows=4096", "rows=64", 1))
		},
		Progress: func(int64, int64) {},
	}
}

// by lists who was measured, and why not.
func by(t *testing.T, r *Report) []string {
	t.Helper()
	var all []string
	for _, x := range r.Results {
		all = append(all, x.Matrix+" "+x.By())
		if !x.Measured() || len(x.Samples) < leastSamples {
			t.Errorf("%v: %s", x.Case, x.Error)
		}
	}
	return all
}

func TestChains(t *testing.T) {
	r, err := Chains(t.Context(), briefTask("gen:uniform,rows=20,density=0.2"))
	if err != nil {
		t.Fatal(err)
	}
	const m = "gen:uniform,rows=20,density=0.2"
	want := []string{
		"16 × " + m + " cpu in one list", "16 × " + m + " cpu Plan.Run", "16 × " + m + " cpu Sequence.Run",
		"16 × " + m + " cpu Sequence.Start and Wait", m + " cpu Plan.Run",
	}
	if got := by(t, r); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, x := range r.Results[1:] {
		if x.Objects == nil || x.Clock != "host" {
			t.Errorf("%v: heap objects %v, %s clock", x.Case, x.Objects, x.Clock)
		}
	}
	if len(r.Environment.Devices) != 1 {
		t.Errorf("devices %+v", r.Environment.Devices)
	}
	if _, err := Chains(t.Context(), briefTask("gen:uniform,rows=20,cols=30,density=0.2")); err == nil ||
		!strings.Contains(err.Error(), "20×30: a chain needs a square matrix") {
		t.Errorf("error %v", err)
	}
}

// A way that leaves other bits than the first is wrong.
func TestChainCompares(t *testing.T) {
	a, err := gen.CSR("gen:uniform,rows=20,density=0.2")
	if err != nil {
		t.Fatal(err)
	}
	places, err := openPlaces(t.Context(), []string{"cpu"}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(places)
	c, err := newChain(t.Context(), places[0].devices[0], a)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	run := func(name string, alpha float64) *contest {
		return &contest{Result: Result{Case: Case{Format: name}}, entrant: byHost(func(ctx context.Context) error {
			_, err := c.plan.Run(ctx, alpha, c.y, 0, c.x)
			return err
		})}
	}
	if err := c.y.Upload(t.Context(), c.b); err != nil {
		t.Fatal(err)
	}
	all := []*contest{run("list", 1), run("first", 1), run("same", 1), run("other", 2)}
	if err := c.compare(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if all[1].Wrong || all[2].Wrong || !all[3].Wrong || !strings.Contains(all[3].Error, "other bits than first leaves") {
		t.Errorf("%+v, %+v", all[2].Result, all[3].Result)
	}
}

func TestValues(t *testing.T) {
	r, err := Values(t.Context(), briefTask())
	if err != nil {
		t.Fatal(err)
	}
	var ways []string
	for _, x := range r.Results {
		if x.Format == "csr" {
			ways = append(ways, x.Way)
		}
		if x.Error != "" && !strings.Contains(x.Error, "no kernel") ||
			x.Error == "" && (x.Median <= 0 || x.Bytes <= 0 || x.copied() <= 0) {
			t.Errorf("%+v", x)
		}
		if strings.HasPrefix(x.Way, "values") && x.Error == "" && x.EncodeS <= 0 {
			t.Errorf("%v: the first call took %v s", x.Case, x.EncodeS)
		}
	}
	if want := []string{"values of f16", "values of f32", "values of f16, transposed", "copy"}; !slices.Equal(ways, want) {
		t.Errorf("%q, want %q", ways, want)
	}
}

// Sampled products of a device and of a peer, whose wrong answer is found.
func TestSamples(t *testing.T) {
	t.Setenv(asPeer, "wrong")
	task := briefTask("gen:uniform,rows=40,cols=50,density=0.2")
	task.Peers = []string{os.Args[0]}
	r, err := Samples(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range r.Results[:6] {
		got = append(got, x.Precision+" "+x.By())
		if x.ofPeer() != (x.Backend == "go") {
			t.Errorf("%v: chosen %q", x.Case, x.Chosen)
		}
		if wrong := x.Format == "two"; x.Wrong != wrong || x.Measured() == wrong && x.Format != "-" {
			t.Errorf("%v: %s", x.Case, x.Error)
		}
	}
	want := []string{"f32 cpu sampled", "f32 cpu sampled, softmax", "f32 cpu sampled reproducible 23", "f32 go one",
		"f32 go two", "f16 cpu sampled"}
	if !slices.Equal(got, want) || len(r.Results) != 14 || len(r.Environment.Peers) != 1 {
		t.Errorf("%q of %d results, peers %q; want %q", got, len(r.Results), r.Environment.Peers, want)
	}
	if x := r.Results[6]; x.Error != "f32 only" {
		t.Errorf("%+v", x)
	}
}

func TestCopies(t *testing.T) {
	r, err := Copies(t.Context(), briefTask())
	if err != nil {
		t.Fatal(err)
	}
	got := by(t, r)
	for _, want := range []string{
		"64 KiB up cpu ordinary", "256 KiB down cpu ordinary", "64 KiB down cpu page-locked, padded",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q has no %q", got, want)
		}
	}
	if x := r.Results[0]; x.Bytes != 1<<16 || x.copied() <= 0 {
		t.Errorf("%+v", x)
	}
	link := briefTask()
	link.Backends = []string{"cpu+cpu"}
	if r, err = Copies(t.Context(), link); err != nil {
		t.Fatal(err)
	}
	if got, want := by(t, r), "64 KiB cpu+cpu device 0 to 1"; len(got) != 2 || got[0] != want {
		t.Errorf("%q, want %q first", got, want)
	}
	few := briefTask()
	few.Most = 1000
	if _, err := Copies(t.Context(), few); err == nil || !strings.Contains(err.Error(), "at most 1000 bytes") {
		t.Errorf("error %v", err)
	}
	if size(1<<30) != "1 GiB" || size(1<<22) != "4 MiB" {
		t.Errorf("%s, %s", size(1<<30), size(1<<22))
	}
}

// Tasks are of one device each, and end when they are told to.
func TestTasksRefuse(t *testing.T) {
	for name, measure := range map[string]func(context.Context, *Task) (*Report, error){
		"chains": Chains, "new values": Values, "copies": Copies,
	} {
		task := briefTask("gen:uniform,rows=20,density=0.2")
		task.Backends = []string{"cpu+cpu"}
		_, err := measure(t.Context(), task)
		if name != "copies" && (err == nil || err.Error() != name+" are of one device: cpu+cpu is several") {
			t.Errorf("%s: error %v", name, err)
		}
		task.Backends = []string{"nothing"}
		if _, err := measure(t.Context(), task); err == nil {
			t.Errorf("%s: no error for a device that is not there", name)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if _, err := measure(ctx, briefTask("gen:uniform,rows=20,density=0.2")); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, interrupted: %v", name, err)
		}
	}
}
