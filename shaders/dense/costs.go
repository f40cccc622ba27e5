// What a product costs with a tile: the numbers are the device model's (internal/model).

package dense

import (
	"cmp"
	"fmt"
	"sync"

	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/shaders/spec"
)

// tileCost is a tile's numbers, in nanoseconds.
type tileCost struct {
	Step   float64 `json:"step_ns"`        // 64 places of the sum, all multiprocessors being busy,
	Single float64 `json:"single_step_ns"` // the same where no CTA shares operands with another; 0: Step;
	Area   float64 `json:"area_ns"`        // and more for each 1024 elements of the tile
	Alone  float64 `json:"alone_factor"`   // the time with one multiprocessor busy, by that
	Start  float64 `json:"start_ns"`       // all else
	// Adding up partial sums: on CUDA, for a column of a tile whose sum is split, and where clusters share the steps of
	// tiles evenly, and for a column of these; on Vulkan, a launch, and for each byte that it reads or writes.
	Column      float64 `json:"column_ns"`
	Share       float64 `json:"share_ns"`
	ShareColumn float64 `json:"share_column_ns"`
	Launch      float64 `json:"launch_ns"`
	Byte        float64 `json:"byte_ns"`
}

// kernel names a tile's numbers: variants that differ in element types alone share them.
type kernel struct {
	kind *spec.Kind
	tile spec.Tile
}

func kernelOf(v *spec.Variant) kernel { return kernel{v.Kind, v.Tile} }

// tileCosts are the numbers of tiles.
var tileCosts = sync.OnceValue(func() map[kernel]tileCost {
	costs := map[kernel]tileCost{}
	add := func(v *spec.Variant) {
		if _, ok := costs[kernelOf(v)]; !ok {
			c := model.Kernel[tileCost](v.Code, "dense/"+v.KernelName())
			if v.Tile.Cluster < 2 {
				c.Step = cmp.Or(c.Single, c.Step)
			}
			c.Step += c.Area * float64(v.Tile.Rows*v.Tile.Cols) / 1024
			costs[kernelOf(v)] = c
		}
	}
	for _, v := range cudas {
		if _, ok := tileOf(v); ok {
			add(v)
		}
	}
	for _, v := range quantisedCUDA {
		add(v)
	}
	for _, v := range vulkans {
		add(v)
	}
	return costs
})

// costOf returns a variant's numbers.
func costOf(v *spec.Variant) tileCost {
	c, ok := tileCosts()[kernelOf(v)]
	if !ok {
		panic(fmt.Sprintf("kernel dense/%s has no costs", v.Name))
	}
	return c
}

// wholeSlower is how much longer hopper_split_k.cu takes for a column-major C than for a row-major one where it does
// not split K, by the times in testdata/tiles.txt.
const wholeSlower = 1.1

// cost is the time that a problem takes with these tiles, in nanoseconds. Work items run in turn; each takes a time for
// its steps of the sum and a constant one. Adding up partial sums comes on top.
func (s *shared) cost(x params) float64 {
	t, ok := tileOf(s.variant)
	if !ok {
		return 0
	}
	c, steps := costOf(s.variant), float64(x.cols)/depth
	if t.splits > 0 {
		atOnce := max(1, s.atOnce)
		all, last := float64(s.tiles/atOnce), float64(s.tiles%atOnce)/float64(atOnce)
		cost := all * (steps/float64(t.splits)*c.Step + c.Start)
		if last > 0 {
			cost += steps/float64(t.splits)*c.Step*(c.Alone+(1-c.Alone)*last) + c.Start
		}
		if t.splits == 1 && x.order&cBit != 0 {
			cost *= wholeSlower
		}
		return cost
	}
	sum := c.Step * steps
	cost := float64(spec.Ceil(s.whole, max(1, s.atOnce))) * (sum + c.Start)
	switch {
	case s.even():
		cost += sum*float64(s.tiles-s.whole)/float64(s.atOnce) + c.Start + c.Share + c.ShareColumn*float64(t.cols)
	case s.splits > 1:
		cost += sum/float64(s.splits) + c.Start*(1+float64(s.splits)/4) + c.Column*float64(t.cols)
	}
	return cost
}

// tileTime is cost for tiles of vulkanTiles.
func (s *shared) tileTime(x params) float64 {
	c := costOf(s.variant)
	sum := c.Step * float64(x.cols) / depth / float64(s.splits)
	cost := float64(spec.Ceil(s.items(), s.atOnce)) * (sum + c.Start)
	if s.splits > 1 {
		cost += c.Launch + c.Byte*4*float64(2*s.splits+1)*float64(x.rows)*float64(x.n)
	}
	return cost
}
