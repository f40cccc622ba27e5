// Grids hold every workgroup within each side's limit.

package spec_test

import (
	"testing"

	"github.com/spmmrun/spmm/shaders/spec"
)

func TestFold(t *testing.T) {
	for _, n := range []int64{0, 1, 2, 65534, 65535, 65536, 131070, 131071, 1 << 30, 65535 * 65535} {
		g, err := spec.Fold(n, 7)
		if err != nil {
			t.Errorf("%d: %v", n, err)
			continue
		}
		x, y, z := int64(g[0]), g[1], int64(g[2])
		if x > 65535 || z > 65535 || x*z < n || n > 0 && (y != 7 || x*(z-1) >= n) || n == 0 && x*z != 0 {
			t.Errorf("%d workgroups are laid out as %v", n, g)
		}
	}
	if _, err := spec.Fold(65535*65535+1, 1); err == nil {
		t.Error("too many workgroups along x are accepted")
	}
	if _, err := spec.Fold(1, 65536); err == nil {
		t.Error("too many workgroups along y are accepted")
	}
	if g, err := spec.Fold(5, 0); err != nil || g[0] != 0 {
		t.Errorf("no columns: %v, %v", g, err)
	}
}
