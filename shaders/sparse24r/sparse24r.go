// Package sparse24r multiplies from 2:4 with a remainder (package formats/sparse24r): C is Pairs·B plus the remainder
// times B, each output in one launch.
//
// On CUDA the kernels of package nm for 2:4 multiply Pairs by sparse MMA. Before they store a tile, each warp adds the
// product of its panels of the remainder by dense MMA (remainder.cuh). All other variants take the entries of a row one
// by one: those of Pairs that have a bit in the mask, and then those of the remainder.
//
// Structural zeros never touch B. Slots without an entry are multiplied like all others by MMA, which is right as long
// as B is finite. An output that is not finite is computed again from the entries alone.
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

// Format is the table of the kernels. The array values has those of both matrices (join). remainderArray describes the
// array of the remainder.
var Format = &spec.Format{
	Program: &spec.Program{
		Name: "sparse24r", Args: spec.FormatArgs("values T", "places u32", "mask u32", "remainder u32"),
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
	argRemainder = 3 // numbers of arguments
	argB         = 4
)

// splits reports whether a variant has a second form for epilogues. With wgmma their code would cost products without
// an epilogue 8 to 43 %.
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
		if values, places, err = nm.Pack24(&m.Pairs, packing, len(m.Remainder.Values)); err != nil {
			return nil, fmt.Errorf("kernel sparse24r/%s: %w", v.Name, err)
		}
		order = fragments[T]
	}
	all, first := join(values, m.Remainder.Values, order)
	e := &spec.Packed{
		Rows: m.Rows, Cols: m.Cols, NNZ: m.NNZ(), Items: int64(spec.Ceil(m.Rows, v.Tile.Rows)), Format: m, Stats: m.Stats(),
		Arrays: []spec.Array{
			spec.NewArray("values", all), spec.NewArray("places", places), spec.NewArray("mask", m.Pairs.Mask),
			spec.NewArray("remainder", remainderArray(m, first)),
		},
	}
	if nm.Order(v) == nm.PlainPack { // only entries are multiplied
		e.Stats.MACs, e.Stats.Gathers = e.NNZ, e.NNZ
	} else { // tiles of B arrive while others are multiplied; only the remainder's rows of B are waited for
		e.Stats.Gathers, e.Stats.Staged = int64(len(m.Remainder.ColInd)), true
	}
	e.Stats.StoredBytes = e.Bytes()
	return e, nil
}

// step is the number of values of 16 vectors of the remainder.
const step = sparse24r.PanelRows * sparse24r.PanelRows

// join returns the values of both matrices as one array, in place if there is room. Those of the remainder are in an
// order, and begin with a whole step, whose number it returns.
func join[T formats.Value](pairs, remainder []T, order func(to, from []T)) (values []T, first int) {
	first = spec.Ceil(len(pairs), step)
	n := first * step
	values = slices.Grow(pairs, n+len(remainder)-len(pairs))[:n+len(remainder)]
	clear(values[len(pairs):n])
	order(values[n:], remainder)
	return values, first
}

// plainOrder is the order of the format.
func plainOrder[T formats.Value](to, from []T) { copy(to, from) }

// remainderArray returns the remainder without its values, for P panels and Q vectors: its first step (see join),
// VecPtr (P + 1 words), ColInd (Q words), Mask (Q/2 words, each the rows of two vectors).
func remainderArray[T formats.Value](m *sparse24r.Matrix[T], first int) []uint32 {
	return slices.Concat([]uint32{uint32(first)}, m.Remainder.VecPtr, m.Remainder.ColInd, m.Remainder.Mask)
}

// fragments is the order in which lanes hold operand A of mma.m16n8k16, for each step of 16 vectors.
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

// launch computes the grid as package nm does.
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
