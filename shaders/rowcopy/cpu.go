// The kernel on the CPU: a workgroup is a run of quads, which are copied row by row.

package rowcopy

import (
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/spec"
)

func group(args [][]byte, block []byte, at [3]uint32) {
	p := spec.View[params](block)
	lo := int64(at[0]+at[2]*p.width) * cpuItems
	hi := min(lo+cpuItems, int64(p.items))
	index, quads := backend.View[uint32](args[0]), int64(p.quads)
	for lo < hi {
		row, q := lo/quads, lo%quads
		n := min(quads-q, hi-lo)
		from, to := row, row
		switch Where(p.place) {
		case OfSrc:
			from = int64(index[row])
		case OfDst:
			to = int64(index[row])
		}
		from, to = (from+int64(p.srcrow))*quads+q, (to+int64(p.dstrow))*quads+q
		copy(args[2][16*to:16*(to+n)], args[1][16*from:])
		lo += n
	}
}
