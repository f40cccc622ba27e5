// The rates of every device present: they are measured once, kept in a file, and read from there.

package plan_test

import (
	"context"
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
	"github.com/spmmrun/spmm/internal/plan"
)

var ctx = context.Background()

// devices calls f for every device present.
func devices(t *testing.T, f func(t *testing.T, open func(t *testing.T) *plan.Device)) {
	ran := false
	for _, drv := range backend.Drivers() {
		infos, err := drv.Devices(ctx)
		if err != nil {
			t.Logf("%s: %v", drv.Name(), err)
		}
		for _, info := range infos {
			ran = true
			t.Run(info.Backend+" "+info.Name, func(t *testing.T) {
				f(t, func(t *testing.T) *plan.Device {
					d, err := drv.Open(ctx, info)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { d.Close() })
					return plan.NewDevice(d)
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
	devices(t, func(t *testing.T, open func(t *testing.T) *plan.Device) {
		start := time.Now()
		d := open(t)
		c, err := d.Rates(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%v: %+v", time.Since(start), *c)
		if c.Gather <= 0 || c.FMA <= 0 || len(c.Stream) == 0 {
			t.Errorf("something was not measured: %+v", c)
		}
		for _, s := range d.Caps().Matrix {
			key := fmt.Sprintf("%d×%d×%d f16", s.M, s.N, s.K)
			if s.A == dtype.F16 && s.B == dtype.F16 && s.C == dtype.F32 && s.D == dtype.F32 && c.Matrix[key] <= 0 {
				t.Errorf("the device lists %v, but it was not measured", s)
			}
		}
		again, err := open(t).Rates(ctx)
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
	devices(t, func(t *testing.T, open func(t *testing.T) *plan.Device) {
		if c, err := open(t).Rates(ctx); err != nil || c.Gather <= 0 {
			t.Errorf("with a broken cache file: %+v, %v", c, err)
		}
	})
}
