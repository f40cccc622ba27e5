// Started launches and recordings on the fake driver: what reaches it, graphs that it refuses, a device lost.

//go:build cuda && cgo && linux && (amd64 || arm64)

package faketest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
)

func record(t testing.TB, d backend.Device, ls ...backend.Launch) backend.Recording {
	t.Helper()
	r, err := d.Record(ls...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func replay(t testing.TB, r backend.Recording) {
	t.Helper()
	if _, err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Once the pace of its kernels is known, a short recording is one graph, submitted in one call.
func TestRecordingIsOneGraph(t *testing.T) {
	d := open(t)
	k, b := backendtest.Load(t, d, bin("record", 1, 0)), backendtest.Alloc(t, d, 28)
	r := record(t, d, slices.Repeat([]backend.Launch{launch(k, b)}, 150)...)
	for i, want := range []struct{ launches, made, graphs int }{{150, 0, 0}, {0, 1, 1}, {0, 0, 1}, {0, 0, 1}} {
		logged := calls(t)
		replay(t, r)
		l := logged()
		if got := count(l, "cuLaunchKernel"); got != want.launches {
			t.Errorf("run %d: %d launches, want %d", i, got, want.launches)
		}
		if got := count(l, "cuGraphInstantiateWithFlags"); got != want.made {
			t.Errorf("run %d: %d graphs made, want %d", i, got, want.made)
		}
		if got := count(l, "cuGraphLaunch"); got != want.graphs {
			t.Errorf("run %d: %d graphs launched, want %d", i, got, want.graphs)
		}
		if want.graphs > 0 && count(l, "cuEventRecord") != 2 {
			t.Errorf("run %d: %d events, want those of the clock", i, count(l, "cuEventRecord"))
		}
	}
	logged := calls(t)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if count(logged(), "cuGraphExecDestroy") != 1 {
		t.Error("Close does not free the graph")
	}
}

// Launches of 2 ms make graphs of some 25 ms; two are in flight when a run is cancelled.
func TestLongRecording(t *testing.T) {
	d := open(t)
	k, b := backendtest.Load(t, d, bin("sleep", 1, 0)), backendtest.Alloc(t, d, 4)
	l := launch(k, b)
	for range 3 {
		if _, err := d.Run(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	r := record(t, d, slices.Repeat([]backend.Launch{l}, 100)...)
	if err := b.Write(t.Context(), 0, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	logged := calls(t)
	replay(t, r)
	// 8 or so, and more on a busy machine, where launches take longer
	if n := count(logged(), "cuGraphLaunch"); n < 3 || n >= 100 {
		t.Errorf("200 ms of launches are %d graphs", n)
	}
	if n := words(t, b, 1)[0]; n != 100 {
		t.Errorf("%d launches ran, want 100", n)
	}
	_, err := r.Run(&endsAfter{t.Context(), 5})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled run: %v", err)
	}
	if n := words(t, b, 1)[0]; n <= 100 || n > 190 {
		t.Errorf("%d launches ran before the run stopped", n-100)
	}
	replay(t, r)
}

func TestRecordingAllocatesNothing(t *testing.T) {
	d := open(t)
	k, b := backendtest.Load(t, d, bin("record", 1, 0)), backendtest.Alloc(t, d, 28)
	r := record(t, d, slices.Repeat([]backend.Launch{launch(k, b)}, 100)...)
	replay(t, r)
	replay(t, r)
	ctx := t.Context()
	if got := testing.AllocsPerRun(20, func() {
		if _, err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
	}); got > 0 {
		t.Errorf("a run of a recording makes %v heap allocations", got)
	}
}

// Where the driver makes no graph, the launches are submitted one by one, and nothing is left over.
func TestGraphsRefused(t *testing.T) {
	for _, fails := range []string{"cuGraphCreate=999", "cuGraphAddKernelNode=801", "cuGraphInstantiateWithFlags=2"} {
		logged := calls(t)
		d := open(t)
		k, b := backendtest.Load(t, d, bin("sleep", 1, 0)), backendtest.Alloc(t, d, 4)
		if err := b.Write(t.Context(), 0, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		r := record(t, d, slices.Repeat([]backend.Launch{launch(k, b)}, 3)...)
		t.Setenv("FAKE_FAIL", fails)
		for range 3 {
			replay(t, r)
		}
		p, err := r.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Wait(t.Context()); err != nil {
			t.Errorf("%s: %v", fails, err)
		}
		t.Setenv("FAKE_FAIL", "")
		if n := words(t, b, 1)[0]; n != 12 {
			t.Errorf("%s: %d launches ran, want 12", fails, n)
		}
		if l := logged(); count(l, "cuGraphLaunch") != 0 {
			t.Errorf("%s: a graph was launched", fails)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if !slices.ContainsFunc(logged(), func(s string) bool {
			return strings.HasPrefix(s, "end lost=0 ") &&
				strings.Contains(s, " graphs=0 ")
		}) {
			t.Errorf("%s: graphs are left over", fails)
		}
	}
}

// A driver before CUDA 11.4 has no cuGraphInstantiateWithFlags.
func TestDriverWithoutGraphs(t *testing.T) {
	old, err := compile(t.TempDir(), "-DWITHOUT_cuGraphInstantiateWithFlags")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestDriverWithoutGraphsInChild$")
	cmd.Env = append(os.Environ(), library+"="+old, "OLD_DRIVER=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestDriverWithoutGraphsInChild(t *testing.T) {
	if os.Getenv("OLD_DRIVER") == "" {
		return // TestDriverWithoutGraphs runs it
	}
	d := open(t)
	k, b := backendtest.Load(t, d, bin("record", 1, 0)), backendtest.Alloc(t, d, 28)
	r := record(t, d, launch(k, b), launch(k, b))
	for range 3 {
		replay(t, r)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// Start leaves everything to the stream: it awaits nothing, however many launches there are.
func TestStartWaitsForNothing(t *testing.T) {
	d := open(t)
	k, b := backendtest.Load(t, d, bin("sleep", 1, 0)), backendtest.Alloc(t, d, 4)
	if err := b.Write(t.Context(), 0, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	logged := calls(t)
	var all []backend.Pending
	for range 3 {
		p, err := d.Start(t.Context(), slices.Repeat([]backend.Launch{launch(k, b)}, 130)...)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	l := logged()
	if got := count(l, "cuLaunchKernel"); got != 390 {
		t.Errorf("%d launches are in the stream, want 390", got)
	}
	if count(l, "cuEventSynchronize")+count(l, "cuStreamSynchronize") != 0 {
		t.Error("Start waits")
	}
	for _, p := range all {
		if tm, err := p.Wait(t.Context()); err != nil || tm.Device < 200*time.Millisecond || tm.Host <= 0 {
			t.Errorf("times %+v, error %v", tm, err)
		}
	}
	if n := words(t, b, 1)[0]; n != 390 {
		t.Errorf("%d launches ran, want 390", n)
	}
}

// A device that is lost says so to whoever waits, and to later calls.
func TestStartThenLost(t *testing.T) {
	d := open(t)
	k, fault, b := backendtest.Load(t, d, bin("record", 1, 0)), backendtest.Load(t, d, bin("fault", 1, 0)),
		backendtest.Alloc(t, d, 256)
	slow := launch(backendtest.Load(t, d, bin("spin", 1, 4)), b)
	slow.Params = []byte{0, 0, 0, 64} // some 70 ms
	r := record(t, d, launch(k, b), launch(k, b))
	replay(t, r)
	replay(t, r)
	good, err := r.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bad, err := d.Start(t.Context(), slow, launch(fault, b))
	if err != nil {
		t.Fatal(err)
	}
	after, err := r.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bad.Wait(t.Context()); !errors.Is(err, backend.ErrDeviceLost) ||
		!strings.Contains(err.Error(), "test/spin") {
		t.Errorf("Wait for a fault: %v", err)
	}
	if _, err := after.Wait(t.Context()); !errors.Is(err, backend.ErrDeviceLost) {
		t.Errorf("Wait for what came after a fault: %v", err)
	}
	if _, err := good.Wait(t.Context()); err != nil {
		t.Errorf("Wait for what was done before the fault: %v", err)
	}
	if _, err := r.Run(t.Context()); !errors.Is(err, backend.ErrDeviceLost) {
		t.Errorf("Run after the loss: %v", err)
	}
	if _, err := d.Start(t.Context(), launch(k, b)); !errors.Is(err, backend.ErrDeviceLost) {
		t.Errorf("Start after the loss: %v", err)
	}
	for name, c := range map[string]interface{ Close() error }{"recording": r, "buffer": b, "device": d} {
		if err := c.Close(); err != nil {
			t.Errorf("closing the %s: %v", name, err)
		}
	}
}

// A launch or a graph that the driver refuses is no loss of the device, and nobody waits for it.
func TestRefusedStart(t *testing.T) {
	d := open(t)
	k, b := backendtest.Load(t, d, bin("record", 1, 0)), backendtest.Alloc(t, d, 28)
	r := record(t, d, launch(k, b))
	replay(t, r)
	replay(t, r)
	for _, c := range []struct {
		fails string
		start func(context.Context) (backend.Pending, error)
	}{
		{"cuEventCreate=2", r.Start}, // which the first Start of a device calls
		{"cuLaunchKernel=701", func(ctx context.Context) (backend.Pending, error) { return d.Start(ctx, launch(k, b)) }},
		{"cuGraphLaunch=701", r.Start},
	} {
		t.Setenv("FAKE_FAIL", c.fails)
		if _, err := c.start(t.Context()); err == nil || errors.Is(err, backend.ErrDeviceLost) {
			t.Errorf("%s: %v", c.fails, err)
		}
		t.Setenv("FAKE_FAIL", "")
		p, err := c.start(t.Context())
		if err != nil {
			t.Fatalf("after %s: %v", c.fails, err)
		}
		defer p.Wait(t.Context())
	}
}

func BenchmarkRecording(b *testing.B) {
	d := open(b)
	k, buf := backendtest.Load(b, d, bin("record", 1, 0)), backendtest.Alloc(b, d, 28)
	r := record(b, d, slices.Repeat([]backend.Launch{launch(k, buf)}, 16)...)
	replay(b, r)
	b.ReportAllocs()
	for b.Loop() {
		replay(b, r)
	}
}

// Launches of a graph overlap where those of a run do.
func TestGraphOverlap(t *testing.T) {
	d := open(t)
	early := bin("record", 2, 0)
	early.ReadOnly, early.Early = 2, 2
	k, a, b := backendtest.Load(t, d, early), backendtest.Alloc(t, d, 28), backendtest.Alloc(t, d, 28)
	if _, err := d.Run(t.Context(), launch(k, a, b)); err != nil { // its pace is known from here on
		t.Fatal(err)
	}
	for _, q := range []struct {
		name, fail     string
		launches       []backend.Launch
		early, ordered int // edges
	}{
		{"after each other", "", []backend.Launch{launch(k, a, b), launch(k, a, b), launch(k, a, b)}, 2, 0},
		{"after one that writes what is read early", "", []backend.Launch{launch(k, b, a), launch(k, a, b)}, 0, 0},
		{"on a driver before CUDA 12.3", "cuGraphAddDependencies_v2=302", []backend.Launch{launch(k, a, b), launch(k, a, b)},
			1, 1},
	} {
		t.Setenv("FAKE_FAIL", q.fail)
		logged := calls(t)
		replay(t, record(t, d, q.launches...))
		l := logged()
		if count(l, "cuGraphLaunch") != 1 || count(l, "cuGraphAddDependencies_v2") != q.early ||
			count(l, "cuGraphAddDependencies") != q.ordered {
			t.Errorf("%s: %d graphs, %d edges that let launches overlap and %d that do not, want 1, %d, %d", q.name, count(l, "cuGraphLaunch"),
				count(l, "cuGraphAddDependencies_v2"), count(l, "cuGraphAddDependencies"), q.early, q.ordered)
		}
	}
}
