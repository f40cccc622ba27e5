// What a product by more than 32 columns costs on CUDA with each kernel that takes it: the numbers are the device
// model's (internal/model).

package lanestream

import (
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/shaders/spec"
)

// filledCost is the numbers of the kernel filled, in nanoseconds.
type filledCost struct {
	Start float64 `json:"start_ns"`        // a launch
	Add   float64 `json:"add_ns"`          // adding up partial sums
	Step  float64 `json:"step_ns"`         // 64 places of a tile's sum
	First float64 `json:"fill_ns"`         // filling 64 by 64 places of the first panel,
	Next  float64 `json:"refill_ns"`       // and of the next while one is multiplied
	NextP float64 `json:"pairs_refill_ns"` // the same of layout Pairs, where more is left to the COO remainder
}

// prefillCost is the numbers of the kernel prefill, in nanoseconds.
type prefillCost struct {
	Start  float64 `json:"start_ns"`
	Step   float64 `json:"step_ns"`   // a stage of 32 columns of A,
	Column float64 `json:"column_ns"` // more for each column of the tile,
	Long   float64 `json:"long_ns"`   // and more if the stage is of 64 columns of A
}

// turnCost is the numbers of kernels that take 32 columns in turn, in nanoseconds.
type turnCost struct {
	Place float64 `json:"place_ns"` // 64 by 64 places of A
	Start float64 `json:"start_ns"`
}

var (
	filledCosts  = sync.OnceValue(func() filledCost { return kernelCost[filledCost]("filled") })
	prefillCosts = sync.OnceValue(func() prefillCost { return kernelCost[prefillCost]("prefill") })
	turnCosts    = sync.OnceValue(func() [2]turnCost {
		return [2]turnCost{kernelCost[turnCost]("staged"), kernelCost[turnCost]("few-rows")}
	})
)

func kernelCost[T any](name string) T { return model.Kernel[T](backend.CodePTX, "lanestream/"+name) }

// cost is the time that a matrix of these panels takes by n columns, in nanoseconds: the first panel is filled by all
// multiprocessors, the others by two warps of each while the ones before are multiplied.
func (p panel) cost(s lanestream.Shape, n int) float64 {
	c := filledCosts()
	next := c.Next
	if s.Layout == lanestream.Pairs {
		next = c.NextP
	}
	multiply := func(groups int) float64 {
		tiles, cost := spec.Ceil(groups, 2*clusterRows)*spec.Ceil(n, filledCols), c.Start
		if splits, left := p.splits(groups, n); splits > 1 {
			tiles -= left
			cost += c.Add + c.Step*float64(p.stages)/float64(splits)
		}
		return cost + c.Step*float64(p.stages)*float64(spec.Ceil(tiles, p.clusters))
	}
	begin, last := min(p.groups, s.Groups), s.Groups-(p.number-1)*p.groups
	each := max(multiply(p.groups), c.Start+next*float64(p.groups*p.stages))
	return c.Start + c.First*float64(begin*p.stages) + float64(p.number-1)*each + multiply(last)
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
	c := prefillCosts()
	stage := c.Step + c.Column*float64(cols)
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
		return c.Start + stage*turns*float64(steps)
	}
	return c.Start + (stage+c.Long)*turns*float64(spec.Ceil(steps, 2))
}

// inTurns is the same of turns of 32 columns, layout Pairs, packed for staged.cu or few.cu.
func inTurns(v *spec.Variant, s lanestream.Shape, n int) float64 {
	c := turnCosts()[spec.Flag(v.Kind == fewKind)]
	places := float64(s.Groups) * float64(s.Segments*s.SegmentSteps) / 2 // 64 by 64
	return (c.Start + c.Place*places) * float64(spec.Ceil(n, mostFew))
}
