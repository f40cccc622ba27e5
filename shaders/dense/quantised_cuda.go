// Quantised matrices on CUDA: the variants of quantised.cu, and its packing of A.

package dense

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// quantisedCUDA is the variants of quantised.cu: for each type one that picks the tile for the problem, and one for
// each tile.
var quantisedCUDA = func() (vs []*spec.Variant) {
	for _, kind := range quants {
		for _, t := range []dtype.Type{dtype.F16, dtype.BF16} {
			first := len(vs)
			for _, c := range cudaTiles {
				if !c.quantised {
					continue
				}
				v := c.variant(t)
				v.Name = fmt.Sprintf("%s_%v_%v", c.name, kind, t)
				v.Quant, v.AnyOrder, v.Maps = kind, false, 0 // quantised.cu makes its map
				v.Unit.Source, v.Unit.Blob = "quantised.cu", v.Name+".ptx"
				v.Unit.Defines["QUANT"] = include.Quant(kind)
				v.Shared = c.stages*formats.ScaleCols*(c.rows+2*c.cols) + 512
				v.Need.Shared = v.Shared
				vs = append(vs, v)
			}
			any := *vs[first]
			any.Any = true
			any.Name = fmt.Sprintf("cuda_quantised_%v_%v", kind, t)
			vs = append(vs[:first:first], append([]*spec.Variant{&any}, vs[first:]...)...)
		}
	}
	return vs
}()

// Sizes of the tiles in which quantised.cu reads A.
const (
	blockRows  = 64
	blockBytes = blockRows * formats.ScaleCols
)

// layBlocks packs rows lo to hi-1, at most blockRows, in the order that quantised.cu describes.
func layBlocks(a *formats.Quantised, lo, hi int, data []byte) {
	groups, steps, group := spec.Ceil(a.Rows, blockRows), a.Groups(), lo/blockRows
	blocks := data[group*steps*blockBytes:][:steps*blockBytes]
	scales := backend.View[float32](data[groups*steps*blockBytes:])[group*steps*blockRows:]
	flip := uint8(0)
	if a.Kind == dtype.S8 {
		flip = 0x80
		for i := range blocks {
			blocks[i] = flip
		}
	}
	for i := lo; i < hi; i++ {
		r := i - lo
		of := r/16*32*16 + r%8*4*16 + r/8%2*2
		for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
			k := int(a.ColIdx[e])
			at := k % 16
			blocks[k/formats.ScaleCols*blockBytes+k%formats.ScaleCols/32*2048+of+at/2%4*16+k/16%2*8+at/8*4+k%2] = a.Q[e] ^ flip
		}
		for s := range steps {
			scales[s*blockRows+r] = a.Scales[i*steps+s]
		}
	}
}
