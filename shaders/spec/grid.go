// Grids of workgroups.

package spec

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
)

// maxSide is the number of workgroups along each side of a grid that every API promises.
const maxSide = 65535

// Fold returns a grid of n × y workgroups. The n are along x and, if they exceed what every device takes, along z: a
// kernel computes its number as x + z·(the grid's size in x), and does nothing if that is n or more. The error wraps
// ErrUnsupported if no grid is large enough.
func Fold(n int64, y int) ([3]uint32, error) {
	z := (n + maxSide - 1) / maxSide
	if z > maxSide || y > maxSide {
		return [3]uint32{}, fmt.Errorf("a grid of %d by %d workgroups is too large (%d by %d): %w", n, y,
			int64(maxSide)*maxSide, maxSide, backend.ErrUnsupported)
	}
	if n == 0 || y == 0 {
		return [3]uint32{}, nil
	}
	return [3]uint32{uint32((n + z - 1) / z), uint32(y), uint32(z)}, nil
}

// Grid returns a grid of x by y workgroups of a variant. On CUDA x is not folded, because grids are wide enough.
func (v *Variant) Grid(x, y int) ([3]uint32, error) {
	groups, err := Fold(int64(x), y)
	if err == nil && v.Code == backend.CodePTX {
		groups = [3]uint32{uint32(x), uint32(y), 1}
	}
	return groups, err
}

// Ceil is a over b, rounded up. It does not overflow.
func Ceil[I int | int64 | uint32](a, b I) I {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}
