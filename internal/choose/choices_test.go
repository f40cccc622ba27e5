// The kernels that are chosen for generated matrices by the device models, as a file: a change of a model or of a
// kernel's table shows there.

package choose

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/device/devicetest"
	"github.com/spmmrun/spmm/internal/work"
	"github.com/spmmrun/spmm/shaders/spec"
)

var updateChoices = flag.Bool("update-choices", false, "write testdata/choices.txt")

// snapshotMatrices have the shapes of pruned layers and graphs, at a size that packs in milliseconds.
var snapshotMatrices = []string{
	"gen:uniform,rows=1024,cols=1024,density=0.5",
	"gen:uniform,rows=2048,cols=2048,density=0.02",
	"gen:vector,rows=1024,cols=1024,v=8,density=0.1",
	"gen:nm,rows=1024,cols=1024,n=2,m=4",
	"gen:powerlaw,rows=10000,nnz-per-row=8",
	"gen:onedense,rows=5000,nnz-per-row=4",
}

// snapshotDevices are kinds of devices as their drivers list them, with rates that were measured on one of each.
func snapshotDevices() map[string]*device.Device {
	lanes := []backend.MatrixShape{spec.Shape(16, 8, 8, dtype.F16), spec.Shape(16, 8, 16, dtype.F16),
		spec.Shape(16, 16, 16, dtype.F16)}
	lanesGPU := largeGPU(backend.CodeSPIRV)
	caps := lanesGPU.Caps()
	caps.Lanes, caps.SharedBytes, caps.Matrix = true, 48<<10, lanes
	withMatrix := devicetest.New(caps, api.Rates{
		Copy: lanesGPU.Speed.Rates.Copy, Cache: 27e12, FMA: 5.9e13,
		Matrix: map[string]float64{"16×8×16 f16": 4.7e14, "16×8×8 f16": 4.06e14, "16×16×16 f16": 4.5e14},
	})
	cpu := devicetest.New(backend.Caps{Code: backend.CodeGo, F16: true, F64: true, Units: 16}, api.Rates{
		Copy:  devicetest.Bandwidths(1<<20, 4e11, 1<<25, 1.5e11, 1<<29, 6e10),
		Cache: 8e11, FMA: 1.2e12, FMA64: 6e11,
	})
	return map[string]*device.Device{
		"cuda-9.0": largeGPU(backend.CodePTX), "vulkan-lanes": withMatrix, "cpu": cpu,
	}
}

// choicesOf lists the kernels that are chosen, and the predicted times: a line for each problem.
func choicesOf(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	devices := snapshotDevices()
	for _, m := range snapshotMatrices {
		a, err := gen.CSR(m)
		if err != nil {
			t.Fatal(err)
		}
		of := map[dtype.Type]*packings{
			dtype.F16: packingsOf(t, a, work.Work{Precision: dtype.F16}, work.LargeSample),
			dtype.F32: packingsOf(t, a, work.Work{Precision: dtype.F32}, work.LargeSample),
		}
		for _, name := range []string{"cuda-9.0", "vulkan-lanes", "cpu"} {
			for _, prec := range []dtype.Type{dtype.F16, dtype.F32} {
				listChoices(t, &b, m+" "+name, devices[name], of[prec])
			}
		}
		listChoices(t, &b, m+" cuda-9.0, on the right", devices["cuda-9.0"],
			packingsOf(t, a.Transpose(), work.Work{Precision: dtype.F16, Right: true}, work.LargeSample))
	}
	return b.String()
}

// listChoices lists what is chosen for several numbers of columns.
func listChoices(t *testing.T, b *strings.Builder, what string, d *device.Device, p *packings) {
	t.Helper()
	choose := p.chooser(t, d)
	for _, n := range []int{1, 8, 32, 128, 512, 2048} {
		c := choose(n)
		fmt.Fprintf(b, "%s %v n=%d: %s/%s %s\n", what, p.w.Precision, n, c.Kernel.Name, c.runs.Name, Short(c.cost))
	}
}

func TestChoices(t *testing.T) {
	const file = "testdata/choices.txt"
	got := choicesOf(t)
	if *updateChoices {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(string(text), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(want) || line != want[i] {
			t.Errorf("%s\nwant %s", line, want[min(i, len(want)-1)])
		}
	}
}
