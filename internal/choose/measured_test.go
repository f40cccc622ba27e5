// Choices against the measured times in bench/results.

package choose

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/work"
)

// measuredCase is a product in f16 that was measured on an H200.
type measuredCase struct {
	backend, matrix string
	n               int
}

// measuredTimes are the shortest times of a case, in µs, by format. What auto took counts for the format that it chose.
type measuredTimes map[string]float64

// readMeasured returns the cases of the reports in bench/results.
func readMeasured(t *testing.T) map[measuredCase]measuredTimes {
	t.Helper()
	files, err := filepath.Glob("../../bench/results/h200-*.json")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[measuredCase]measuredTimes{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r struct {
			Results []struct {
				Matrix, Precision, Backend, Chosen, Mode, Way string
				N                                             int
				Median                                        float64 `json:"median_us"`
			}
		}
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, x := range r.Results {
			if x.Precision != "f16" || x.Mode != "fast" || x.Way != "" || x.Chosen == "" || x.Chosen == "auto" {
				continue
			}
			c := measuredCase{x.Backend, x.Matrix, x.N}
			if cases[c] == nil {
				cases[c] = measuredTimes{}
			}
			if us, ok := cases[c][x.Chosen]; !ok || x.Median < us {
				cases[c][x.Chosen] = x.Median
			}
		}
	}
	return cases
}

// measuredMatrices are those that were measured in several formats, or by many numbers of columns.
var measuredMatrices = []string{
	"gen:uniform,density=0.1,rows=4096,cols=4096", "gen:uniform,density=0.02,rows=4096,cols=4096",
	"gen:vector,v=8,density=0.3,rows=4096,cols=4096", "gen:vector,v=8,density=0.1,rows=4096,cols=4096",
	"gen:vector,v=8,density=0.02,rows=4096,cols=4096", "gen:nm,n=2,m=4,rows=4096,cols=4096",
}

// Choices take hardly longer than the best format that was measured. A few are of formats that nobody has measured.
func TestMeasured(t *testing.T) {
	const most, mostUnmeasured = 1.1, 2
	cases := readMeasured(t)
	devices := map[string]*device.Device{"cuda": largeGPU(backend.CodePTX), "vulkan": snapshotDevices()["vulkan-lanes"]}
	var ratios []float64
	unmeasured := 0
	for _, m := range measuredMatrices {
		a, err := gen.CSR(m)
		if err != nil {
			t.Fatal(err)
		}
		of := packingsOf(t, a, work.Work{Precision: dtype.F16}, work.LargeSample)
		for name, d := range devices {
			choose := of.chooser(t, d)
			for c, us := range cases {
				if c.matrix != m || c.backend != name {
					continue
				}
				format, best := choose(c.n).Kernel.Name, slices.Min(slices.Collect(maps.Values(us)))
				took, ok := us[format]
				if !ok {
					unmeasured++
					t.Logf("%s %s, %d columns: %s is chosen; measured were %v", name, m, c.n, format, us)
					continue
				}
				ratios = append(ratios, took/best)
				if took > most*best {
					t.Errorf("%s %s, %d columns: %s is chosen, of %v", name, m, c.n, format, us)
				}
			}
		}
	}
	t.Logf("%d choices measured, %d not", len(ratios), unmeasured)
	if len(ratios) < 59 || unmeasured > mostUnmeasured {
		t.Errorf("%d choices were measured and %d not, want at least 59 and at most %d", len(ratios), unmeasured,
			mostUnmeasured)
	}
}
