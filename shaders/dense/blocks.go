// A in blocks: of 128 rows by 16 columns, which coop.comp loads as they lie.

package dense

import (
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// layout is the packing of a variant that does not take A by rows.
type layout int

// inBlocks is A in blocks one after the other, by rows of blocks. A block's rows follow each other. Rows and columns
// are padded with zeros.
const inBlocks layout = 1

const (
	tallBlock = 128
	wideBlock = 16
)

// ldaOf returns the leading dimension of A in a variant's packing.
func ldaOf(v *spec.Variant, cols int) int {
	if v.Packing == inBlocks {
		return spec.Ceil(cols, wideBlock) * wideBlock
	}
	return lda(cols)
}

// rowsOf returns the rows of A that a variant's packing stores.
func rowsOf(v *spec.Variant, rows int) int {
	if v.Packing == inBlocks {
		return spec.Ceil(rows, tallBlock) * tallBlock
	}
	return rows
}

// laid returns rows of A, ld apart, in a variant's packing.
func laid[T formats.Value](data []T, rows, ld int, v *spec.Variant) []T {
	if v.Packing != inBlocks || ld == 0 {
		return data
	}
	wide := spec.Ceil(ld, wideBlock)
	to := make([]T, rowsOf(v, rows)*wide*wideBlock)
	spec.Shares(rows, tallBlock, spec.MemoryCores, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := to[i/tallBlock*wide*tallBlock*wideBlock+i%tallBlock*wideBlock:]
			for k := 0; k < ld; k += wideBlock {
				copy(row[k*tallBlock:][:wideBlock], data[i*ld+k:min(i*ld+k+wideBlock, (i+1)*ld)])
			}
		}
	})
	return to
}
