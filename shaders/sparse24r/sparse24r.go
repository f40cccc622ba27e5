// Package sparse24r multiplies from 2:4 with a remainder (package formats/sparse24r): C is Pairs·B plus the remainder
// times B, each output in one launch.
//
// On CUDA the kernels of package nm for 2:4 multiply Pairs on sparse tensor cores, and, before they store a tile, each
// warp adds the product of its panels of the remainder on dense ones, to the sums that it holds: remainder.cuh. All
// other variants take the entries of a row one by one, those of Pairs that the mask names and then those of the
// remainder, so that what they skip costs them little more than reading the mask.
//
// Structural zeros never touch B. The slots of tensor cores that hold no entry are multiplied like all others, which is
// right as long as B is finite. An output that is not finite is computed again from the entries alone.
package sparse24r

import (
	"embed"
	"fmt"
	"slices"
	"sync"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	format "github.com/spmmrun/spmm/formats/nm"
	"github.com/spmmrun/spmm/formats/sparse24r"
	"github.com/spmmrun/spmm/shaders/nm"
	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed *.wgsl
var files embed.FS

// Format is the table of the kernels. Its array values has those of both matrices (join). restArray describes the array
// of the remainder.
var Format = &spec.Format{
	Program: &spec.Program{
		Name: "sparse24r", Args: spec.FormatArgs("values T", "places u32", "mask u32", "rest u32"),
		Params: spec.Params[params](), Files: files,
		Variants: spec.WithEpilogues(slices.Concat(cudaVariants(), vulkanVariants(), webgpuVariants(), cpuVariants()),
			splits),
	},
	Slots:  func(rows, cols int) int64 { return int64(rows) * int64(cols) / 2 },
	Encode: spec.Encoder(pack[half.F16], pack[half.BF16], pack[float32]),
	Adopt:  spec.Adopter(arrange[half.F16], arrange[half.BF16], arrange[float32]),
	Launch: launch,
}

const (
	argRest = 3 // numbers among the arguments
	argB    = 4
)

// splits tells that a variant has a second form for epilogues: on warpgroup instructions they would cost products
// without one 8 to 43 %.
func splits(v *spec.Variant) bool { return v.Need.Exact }

// params is the parameter block.
type params struct {
	nm.Params
	panels uint32 // of the remainder
}

func pack[T formats.Value](a *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) {
	m, err := sparse24r.Encode(a)
	if err != nil {
		return nil, fmt.Errorf("kernel sparse24r/%s: %w", v.Name, err)
	}
	return arrange(m, v)
}

// arrange makes the arrays that a variant reads.
func arrange[T formats.Value](m *sparse24r.Matrix[T], v *spec.Variant) (*spec.Packed, error) {
	values, places, order := slices.Clip(m.Pairs.Values), m.Pairs.Index, plainOrder[T]
	if packing := nm.Order(v); packing != nm.PlainPack {
		var err error
		if values, places, err = nm.Pack24(&m.Pairs, packing, len(m.Rest.Values)); err != nil {
			return nil, fmt.Errorf("kernel sparse24r/%s: %w", v.Name, err)
		}
		order = fragments[T]
	}
	all, first := join(values, m.Rest.Values, order)
	e := &spec.Packed{
		Rows: m.Rows, Cols: m.Cols, NNZ: m.NNZ(), Items: int64(spec.Ceil(m.Rows, v.Tile.Rows)), Format: m, Stats: m.Stats(),
		Arrays: []spec.Array{
			spec.NewArray("values", all), spec.NewArray("places", places), spec.NewArray("mask", m.Pairs.Mask),
			spec.NewArray("rest", restArray(m, first)),
		},
	}
	if nm.Order(v) == nm.PlainPack { // entries alone are multiplied
		e.Stats.MACs, e.Stats.Gathers = e.NNZ, e.NNZ
	} else { // tiles of B arrive while others are multiplied; only the remainder's rows of B are waited for
		e.Stats.Gathers, e.Stats.Staged = int64(len(m.Rest.ColInd)), true
	}
	e.Stats.StoredBytes = e.Bytes()
	return e, nil
}

// step is the values of 16 vectors of the remainder.
const step = sparse24r.PanelRows * sparse24r.PanelRows

// join returns the values of both parts as one array, in place if there is room, those of the remainder in an order and
// from a whole step on: the number of that step.
func join[T formats.Value](pairs, rest []T, order func(to, from []T)) (values []T, first int) {
	first = spec.Ceil(len(pairs), step)
	n := first * step
	values = slices.Grow(pairs, n+len(rest)-len(pairs))[:n+len(rest)]
	clear(values[len(pairs):n])
	order(values[n:], rest)
	return values, first
}

// plainOrder is that of the format.
func plainOrder[T formats.Value](to, from []T) { copy(to, from) }

// restArray is the remainder but for its values, for P panels and Q vectors: its first step (see join), VecPtr (P + 1
// words), ColInd (Q), Mask (Q/2: the rows of two vectors to a word).
func restArray[T formats.Value](m *sparse24r.Matrix[T], first int) []uint32 {
	return slices.Concat([]uint32{uint32(first)}, m.Rest.VecPtr, m.Rest.ColInd, m.Rest.Mask)
}

// fragments writes the remainder's values by steps of 16 vectors, in the order in which lanes hold operand A of
// mma.m16n8k16.
func fragments[T formats.Value](to, from []T) {
	var steps sync.WaitGroup
	const share = 256 * step
	for lo := 0; lo < len(from); lo += share {
		steps.Go(func() {
			for i, x := range from[lo:min(lo+share, len(from))] {
				k, r := i%step/sparse24r.PanelRows, i%sparse24r.PanelRows
				to[lo+i-i%step+(r%8*4+k%8/2)*8+(k/8*2+r/8)*2+k%2] = x
			}
		})
	}
	steps.Wait()
}

// launch lays the grid out as package nm does.
func launch(v *spec.Variant, e *spec.Packed, p spec.Problem) (spec.Launch, error) {
	if err := p.Check(v, e); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel sparse24r/%s: %w", v.Name, err)
	}
	x, groups, maps, err := nm.Lay(v, format.Sparse24, p, argB)
	if err != nil {
		return spec.Launch{}, fmt.Errorf("kernel sparse24r/%s: %w", v.Name, err)
	}
	block := spec.Block(params{x, uint32(spec.Ceil(p.M, sparse24r.PanelRows))})
	return spec.Launch{Passes: []spec.Pass{{Variant: nm.Form(v, p), Groups: groups, Params: block, Maps: maps}}}, nil
}
