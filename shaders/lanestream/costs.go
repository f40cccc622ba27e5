// What a product by more than 32 columns costs on CUDA with each kernel that takes it: the numbers are the device
// model's (internal/model).

package lanestream

import (
	"fmt"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/shaders/spec"
)

// filledCost is the numbers of the kernel filled, in nanoseconds.
type filledCost struct {
	Start  float64 `json:"start_ns"`      // a launch
	Add    float64 `json:"add_ns"`        // adding up partial sums
	Step   float64 `json:"step_ns"`       // 64 places of a tile's sum,
	Beside float64 `json:"beside_ns"`     // and more while the next panel is filled
	First  float64 `json:"fill_ns"`       // filling 64 by 64 places of the first panel,
	Next   float64 `json:"refill_ns"`     // and of the next while one is multiplied
	FirstP float64 `json:"pairs_fill_ns"` // the same of layout Pairs, where more is left to the COO remainder
	NextP  float64 `json:"pairs_refill_ns"`
}

// prefillCost is the numbers of a tile of the kernel prefill, in nanoseconds.
type prefillCost struct {
	Step  float64 `json:"step_ns"`       // a stage of 64 columns of A,
	Short float64 `json:"short_step_ns"` // or of 32
	Start float64 `json:"start_ns"`
}

// turnCost is the numbers of kernels that take 32 columns in turn, in nanoseconds.
type turnCost struct {
	Place float64 `json:"place_ns"` // 64 by 64 places of A
	Start float64 `json:"start_ns"`
}

var (
	filledCosts  = sync.OnceValue(func() filledCost { return kernelCost[filledCost]("filled") })
	prefillCosts = sync.OnceValue(func() map[int]prefillCost {
		costs := map[int]prefillCost{}
		for _, t := range tiles {
			costs[int(t.cols)] = kernelCost[prefillCost](fmt.Sprintf("prefill/%dx%d", t.groups*clusterRows*rows, t.cols))
		}
		return costs
	})
	turnCosts = sync.OnceValue(func() [2]turnCost {
		return [2]turnCost{kernelCost[turnCost]("staged"), kernelCost[turnCost]("few-rows")}
	})
)

func kernelCost[T any](name string) T { return model.Kernel[T](backend.CodePTX, "lanestream/"+name) }

// cost is the time that a matrix of these panels takes by n columns, in nanoseconds: the first panel is filled by all
// multiprocessors, the others by two warps of each while the ones before are multiplied.
func (p panel) cost(s lanestream.Shape, n int) float64 {
	c := filledCosts()
	first, next := c.First, c.Next
	if s.Layout == lanestream.Pairs {
		first, next = c.FirstP, c.NextP
	}
	multiply := func(groups int, step float64) float64 {
		tiles, cost := spec.Ceil(groups, 2*clusterRows)*spec.Ceil(n, filledCols), c.Start
		if splits, left := p.splits(groups, n); splits > 1 {
			tiles -= left
			cost += c.Add + step*float64(p.stages)/float64(splits)
		}
		return cost + step*float64(p.stages)*float64(spec.Ceil(tiles, p.clusters))
	}
	begin, last := min(p.groups, s.Groups), s.Groups-(p.number-1)*p.groups
	each := max(multiply(p.groups, c.Step+c.Beside), c.Start+next*float64(p.groups*p.stages))
	return c.Start + first*float64(begin*p.stages) + float64(p.number-1)*each + multiply(last, c.Step)
}

// prefilled is the same of the tile of prefill.cu that suits n columns.
func prefilled(s lanestream.Shape, n int, caps backend.Caps) float64 {
	cols := int(tiles[len(tiles)-1].cols)
	for _, t := range tiles { // the narrowest first
		if n <= int(t.cols) {
			cols = int(t.cols)
			break
		}
	}
	c := prefillCosts()[cols]
	clusters := max(1, caps.Units/clusterRows)
	all, steps := spec.Ceil(s.Groups, 2*clusterRows)*spec.Ceil(n, cols), s.Segments*s.SegmentSteps
	turns := float64(all / clusters)
	switch left := all % clusters; {
	case 2*left > clusters:
		turns++
	case left > 0:
		turns += 0.5
	}
	if s.SegmentSteps == 1 {
		return c.Start + c.Short*turns*float64(steps)
	}
	return c.Start + c.Step*turns*float64(spec.Ceil(steps, 2))
}

// inTurns is the same of turns of 32 columns, layout Pairs, packed for staged.cu or few.cu.
func inTurns(v *spec.Variant, s lanestream.Shape, n int) float64 {
	c := turnCosts()[spec.Flag(v.Kind == fewKind)]
	places := float64(s.Groups) * float64(s.Segments*s.SegmentSteps) / 2 // 64 by 64
	return (c.Start + c.Place*places) * float64(spec.Ceil(n, mostFew))
}
