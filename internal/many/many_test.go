// What the tests of this package share.

package many_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spmmrun/spmm/backend/backendtest"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/cache/cachetest"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/work"
)

func TestMain(m *testing.M) { cachetest.Main(m.Run) }

// openCPU opens a device whose rates are in the cache folder: measuring them takes memory, which some tests count.
func openCPU(t *testing.T) *device.Device {
	t.Helper()
	d := device.New(backendtest.Open(t, backendtest.Find(t, "cpu")))
	if _, err := choose.RatesOf(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return d
}

// resolve returns work with a matrix.
func resolve(t *testing.T, a formats.Encoded, w work.Work) *work.Work {
	t.Helper()
	resolved, err := w.Resolve(a, work.Form{})
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// writeModel makes text the model of a device in the cache folder.
func writeModel(t *testing.T, d *device.Device, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(os.Getenv("SPMM_CACHE"), choose.ModelFile(d.Info())), []byte(text),
		0o600); err != nil {
		t.Fatal(err)
	}
}
