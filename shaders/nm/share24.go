// What kernels of formats with a 2:4 matrix among their parts share with those here: their sources include sparse24.cu
// and group24.cu (see remainder.cuh), and they lay launches out with Lay.

package nm

import (
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/nm"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Params is the parameter block, with which that of such a kernel begins.
type Params = params

// Values of the constant PACK of such a kernel.
const (
	PlainPack = plainPack // as the format has values and places
	WarpPack  = warpPack  // for sparse24.cu
	GroupPack = groupPack // for group24.cu
)

// Resized makes a variant of Variants24 one of such a kernel, of no unit, which takes B and C row-major.
func Resized(v *spec.Variant) {
	s := sizesOf(v)
	s.unit = 0
	v.Shape, v.Packing, v.Tile.Panel, v.AnyOrder = s, s.packing, 0, false
}

// Order returns how such a variant has values and places lie.
func Order(v *spec.Variant) uint32 { return sizesOf(v).order }

// Plain completes a variant of such a kernel that has no order of its own.
func Plain(v *spec.Variant, kind *spec.Kind, rows, cols uint32) *spec.Variant {
	return of(0, plainPack).sized(v, kind, rows, cols)
}

// Variants24 returns the variants for CUDA of 2:4 matrices: their constants, and what they need.
func Variants24(t dtype.Type) []*spec.Variant {
	return []*spec.Variant{sparseGroups(t), sparseWarps(t, 128, 128, 2, 64, 64)}
}

// Pack24 brings a 2:4 matrix into the order of WarpPack or GroupPack. The values have room for that many more behind
// them.
func Pack24[T formats.Value](m *nm.Matrix[T], packing uint32, room int) (values []T, places []uint32, err error) {
	return pack24(m, packing, room)
}

// Sizes are parameters as Go kernels of other packages read them.
type Sizes struct {
	Rows, N, LDB, LDC, Groups int
	Width                     int // of the grid in x
	Store                     uint32
	Alpha, Beta               float32
}

// Sizes returns the parameters that such a kernel needs.
func (p Params) Sizes() Sizes {
	return Sizes{Rows: int(p.rows), N: int(p.n), LDB: int(p.ldb), LDC: int(p.ldc), Groups: int(p.groups),
		Width: int(p.width), Store: p.store, Alpha: p.alpha, Beta: p.beta}
}
