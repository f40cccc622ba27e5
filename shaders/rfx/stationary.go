// Panels with B in shared memory: the same panels as for panel.cu, multiplied by stationary.cu on CUDA.
//
// A workgroup keeps 16 columns of B in shared memory and reads its share of the panels. So gathers of rows of B, which
// bound panel.cu, do not leave the multiprocessor. A's digits are read once for each 16 columns. B needs no launch
// before: a workgroup finds the ranges of its columns as it copies them.

package rfx

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/quantise"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	stationaryCols   = 16
	stationaryShared = 227 << 10 // bytes
)

// byStationary are the variants of stationary.cu.
func byStationary() []*spec.Variant {
	return []*spec.Variant{stationary(rfx.P15, 16, 3), stationary(rfx.P23, 16, 2), stationary(rfx.P31, 20, 1),
		stationary(rfx.P47, 16, 1)}
}

// stationary is stationary.cu for p: warps a workgroup, tiles of A that each loads ahead.
func stationary(p rfx.P, warps, ahead uint32) *spec.Variant {
	return sizes{p: p, v: 8, stationary: true}.sized(spec.PTX(fmt.Sprintf("cuda_stationary_p%d", p), spec.Variant{
		Entry: "rfx", Local: spec.Line(32 * warps), Overlaps: true, Shared: stationaryShared,
		Consts: []spec.Const{
			spec.Define("BITS", uint32(p)), spec.Define("V", 8), spec.Define("WARPS", warps),
			spec.Define("AHEAD", ahead), spec.Define("COLS", stationaryCols),
		},
		Need: spec.Need{Arch: 90, Shared: stationaryShared,
			Shapes: []backend.MatrixShape{spec.Shape(16, 8, 32, dtype.S8)}},
		Unit: spec.Unit{Source: "stationary.cu"},
	}), stationaryKind, stationaryCols)
}

// stays tells whether a B of 16-bit elements stays as it is in shared memory; else it becomes digits there.
func stays(p rfx.P) bool { return p >= rfx.P31 }

// mostRows returns the most rows of a B whose 16 columns fit the shared memory of a variant's workgroups. A sum of as
// many products of a signed and an unsigned digit is below 2³¹.
func mostRows(v *spec.Variant) int {
	room := stationaryShared - 4*stationaryCols*int(v.Const("WARPS")) - 128
	return room / (stationaryCols * pick(PrecisionOf(v) == rfx.P23, 3, 2))
}

// FitsStationary refuses a B of k rows in elements of type t that a variant cannot keep in shared memory.
func FitsStationary(v *spec.Variant, k int, t dtype.Type) error {
	p := PrecisionOf(v)
	switch {
	case k > mostRows(v):
		return fmt.Errorf("kernel rfx/%s: %d rows of B, shared memory has room for %d: %w", v.Name, k, mostRows(v),
			backend.ErrUnsupported)
	case stays(p) && t == dtype.F32:
		return fmt.Errorf("kernel rfx/%s: B of %v at p = %d: %w", v.Name, t, p, backend.ErrUnsupported)
	}
	return nil
}

// launchStationary is launch for these variants.
func launchStationary(v *spec.Variant, e *spec.Packed, p spec.Problem, q quantise.Layout) (spec.Launch, error) {
	m := e.Format.(Split)
	slices := spec.Ceil(p.N, stationaryCols)
	vectors := int(e.Stats.Gathers)
	shares := min(max(1, int(m.Items)), sharesOf(slices, vectors, p.K, max(1, p.Caps.Units)))
	groups, err := spec.Fold(int64(shares), slices)
	if err != nil {
		return spec.Launch{}, fmt.Errorf("kernel rfx/%s: %w", v.Name, err)
	}
	if m.Items == 0 {
		groups = [3]uint32{}
	}
	b := block(p, q, m)
	b.ldq, b.heavy, b.items, b.width, b.shape = uint32(p.K), uint32(2*(e.Rows+1)), m.Items, groups[0],
		shape{}.packed(0, m.Type)
	return spec.Launch{Workspace: spec.NoWorkspace,
		Passes: []spec.Pass{{Variant: v, Groups: groups, Params: spec.Block(b)}}}, nil
}

// sharesOf returns into how many shares to divide the panels for each 16 columns. A multiprocessor has one workgroup at
// a time. To bring k rows of B takes as long as twice as many vectors of a panel.
func sharesOf(slices, vectors, k, units int) int {
	best, least := 1, 0
	for shares := 1; shares <= max(1, units/max(1, slices)) || shares <= 8; shares++ {
		turns := spec.Ceil(slices*shares, units)
		if t := turns * (vectors/shares + 2*k); shares == 1 || t < least {
			best, least = shares, t
		}
	}
	return best
}
