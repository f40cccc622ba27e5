// The tiles that are picked against times of all tiles, as a file has them.

package dense_test

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/dense"
	"github.com/spmmrun/spmm/shaders/spec"
)

// measuredTiles is a product, and the time that it took with each tile, in µs.
type measuredTiles struct {
	m, k, n int
	column  bool // B and C are column-major
	us      map[string]float64
}

// readTiles reads testdata/tiles.txt.
func readTiles(t *testing.T) []measuredTiles {
	t.Helper()
	f, err := os.Open("testdata/tiles.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []measuredTiles
	var tiles []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		text := lines.Text()
		if strings.HasPrefix(text, "#") {
			continue
		}
		if names, ok := strings.CutPrefix(text, "tiles "); ok {
			tiles = strings.Fields(names)
			continue
		}
		var x measuredTiles
		var order string
		if _, err := fmt.Sscan(text, &x.m, &x.k, &x.n, &order); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		x.column, x.us = order == "col", map[string]float64{}
		for i, us := range strings.Fields(text)[4:] {
			if us == "-" {
				continue
			}
			if x.us[tiles[i]], err = strconv.ParseFloat(us, 64); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		all = append(all, x)
	}
	return all
}

// The tile that is picked takes 2.2 % longer than the best one on average. The worst takes 30 % longer, in a product by
// 32 columns in column-major order.
func TestPickedTiles(t *testing.T) {
	var hopper *spec.Variant // which stands for all tiles
	for _, v := range dense.Format.Variants {
		if v.Name == "cuda_hopper_f16" {
			hopper = v
		}
	}
	caps := backend.Caps{
		Code: backend.CodePTX, Arch: 90, SubgroupMin: 32, SubgroupMax: 32, SharedBytes: 227 << 10, MaxInvocations: 1024,
		F16: true, Units: 132,
	}
	all := readTiles(t)
	sum, worst := 0.0, 0.0
	for _, x := range all {
		p := spec.Problem{
			M: x.m, K: x.k, N: x.n, LDB: x.n, LDC: x.n, Alpha: 1, BCol: x.column, CCol: x.column, Out: dtype.F32, Caps: caps,
		}
		picked := dense.Format.Suited(hopper, nil, p).KernelName()
		us, best := x.us[picked], 0.0
		for _, y := range x.us {
			if best == 0 || y < best {
				best = y
			}
		}
		if us == 0 {
			t.Fatalf("%+v: %s was not measured", x, picked)
		}
		sum += us / best
		worst = max(worst, us/best)
	}
	mean := sum / float64(len(all))
	t.Logf("%d products: %.4f times the best on average, %.3f at worst", len(all), mean, worst)
	if len(all) < 200 || mean > 1.022 || worst > 1.3 {
		t.Errorf("%d products: %.4f times the best on average, %.3f at worst; want at most 1.022 and 1.3", len(all), mean,
			worst)
	}
}
