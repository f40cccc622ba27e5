// The rates of every device present: they are measured once, kept in a file, and read from there.

package plan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/spmmrun/spmm/backend"
	_ "github.com/spmmrun/spmm/backend/all"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/work"
)

var ctx = context.Background()

// devices calls f for every device present.
func devices(t *testing.T, f func(t *testing.T, open func(t *testing.T) *device.Device)) {
	ran := false
	for _, drv := range backend.Drivers() {
		infos, err := drv.Devices(ctx)
		if err != nil {
			t.Logf("%s: %v", drv.Name(), err)
		}
		for _, info := range infos {
			ran = true
			t.Run(info.Backend+" "+info.Name, func(t *testing.T) {
				t.Attr("device", info.String())
				f(t, func(t *testing.T) *device.Device {
					d, err := drv.Open(ctx, info)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { d.Close() })
					return device.New(d)
				})
			})
		}
	}
	if !ran {
		t.Fatal("no device at all: not even the cpu")
	}
}

func TestRates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	t.Setenv("SPMM_CACHE", dir)
	devices(t, func(t *testing.T, open func(t *testing.T) *device.Device) {
		start := time.Now()
		d := open(t)
		c, err := choose.RatesOf(ctx, d)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%v: %+v", time.Since(start), *c)
		if c.Cache <= 0 || c.FMA <= 0 || len(c.Copy) == 0 {
			t.Errorf("something was not measured: %+v", c)
		}
		for _, s := range d.Caps().Matrix {
			key := fmt.Sprintf("%d×%d×%d f16", s.M, s.N, s.K)
			if s.A == dtype.F16 && s.B == dtype.F16 && s.C == dtype.F32 && s.D == dtype.F32 && c.Matrix[key] <= 0 {
				t.Errorf("the device lists %v, but it was not measured", s)
			}
		}
		again, err := choose.RatesOf(ctx, open(t))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, again, cmpopts.IgnoreFields(*c, "Fresh")); diff != "" {
			t.Errorf("read from the cache it differs: %s", diff)
		}
		if !c.Fresh || again.Fresh || time.Since(c.At) > time.Hour {
			t.Errorf("measured now: %v, then %v, at %v", c.Fresh, again.Fresh, c.At)
		}
	})
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files in the cache folder: %v, %v", files, err)
	}
	for _, f := range files { // what is broken is measured again
		if err := os.WriteFile(f, []byte("{"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	devices(t, func(t *testing.T, open func(t *testing.T) *device.Device) {
		if c, err := choose.RatesOf(ctx, open(t)); err != nil || c.Cache <= 0 {
			t.Errorf("with a broken cache file: %+v, %v", c, err)
		}
	})
}

// A device that was busy when it was measured is not slow for good: what a later measurement shows to be faster is
// kept, for later processes too, and what is slower is not. What a multiplication reaches is attainable, but
// formats are not chosen by it.
func TestBestRatesAreKept(t *testing.T) {
	t.Setenv("SPMM_CACHE", filepath.Join(t.TempDir(), "cache"))
	d := openCPU(t)
	first, err := choose.RatesOf(ctx, d)
	if err != nil {
		t.Fatal(err)
	}
	low, high := first.FMA/1000, first.Cache*1000
	write := func(change func(r *model.Rates)) *model.Rates {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(os.Getenv("SPMM_CACHE"), "rates-*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%v, %v", files, err)
		}
		b, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		r := new(model.Rates)
		if err := json.Unmarshal(b, r); err != nil {
			t.Fatal(err)
		}
		if change == nil {
			return r
		}
		change(r)
		if b, err = json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(files[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		return r
	}
	busy := func(r *model.Rates) { r.FMA, r.Cache, r.LatencyUS = low, high, 1000 }
	write(busy)
	d = openCPU(t)
	r, err := choose.Remeasure(ctx, d)
	if err != nil || r.FMA < 10*low || r.Cache != high || r.LatencyUS >= 1000 {
		t.Errorf("measured again: %+v, %v", r, err)
	}
	if kept := write(nil); kept.FMA != r.FMA || kept.Cache != high {
		t.Errorf("kept: %+v", kept)
	}

	// A multiplication that is faster than all measurements.
	write(func(r *model.Rates) { *r = *first })
	a := matrix(t, "gen:uniform,rows=2000,density=0.01")
	d = openCPU(t)
	p, err := plan.New(ctx, d, a, work.Work{Format: "csr"}, work.Form{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	const n = 256 // B has 2 MB
	before, err := p.Attainable(ctx, n, dtype.F32, launch.Epilogue{})
	if err != nil {
		t.Fatal(err)
	}
	slow, err := p.Observe(ctx, n, dtype.F32, time.Second, launch.Epilogue{})
	if diff := cmp.Diff(before, slow); err != nil || diff != "" {
		t.Errorf("after one within its bound: %s, %v", diff, err)
	}
	const took = 100 * time.Nanosecond
	b, err := p.Observe(ctx, n, dtype.F32, took, launch.Epilogue{})
	if err != nil || b.Time() > took+1 || b.Memory < took-1 || b.Gather < took-1 || b.Compute < took-1 {
		t.Errorf("after one in %v: %+v, %v; it was %+v", took, b, err, before)
	}
	if b, err := p.Attainable(ctx, n, dtype.F32, launch.Epilogue{}); err != nil || b.Time() > took+1 {
		t.Errorf("attainable after it: %+v, %v", b, err)
	}
	for name, d := range map[string]*device.Device{"the device": d, "another process": openCPU(t)} {
		if r, err := choose.RatesOf(ctx, d); err != nil || r.FMA > 10*first.FMA || r.Cache > 10*first.Cache {
			t.Errorf("%s chooses by %+v, %v; measured was %+v", name, r, err, first)
		}
	}

	// With a B that a core's own cache holds nothing is learnt of the shared cache.
	write(func(r *model.Rates) { *r = *first })
	d = openCPU(t)
	small, err := plan.New(ctx, d, matrix(t, "gen:uniform,rows=100,density=0.5"), work.Work{Format: "csr"},
		work.Form{})
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	if b, err := small.Observe(ctx, 16, dtype.F32, 1, launch.Epilogue{}); err != nil || b.Gather > 1 {
		t.Fatalf("after one in 1 ns: %+v, %v", b, err)
	}
	if r, err := choose.Attainable(ctx, d); err != nil || r.FMA < 10*first.FMA || r.Cache > 100*first.Cache {
		t.Errorf("attainable rates are %+v of %+v, %v", r, first, err)
	}
}
