// How a launch shares out its work: as kernel csr's does, with four columns to a lane.

package rfx

import (
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/spec"
)

type shape struct {
	per           int // items of a workgroup
	across, along int
	columns       int // of a workgroup
}

// lanes do one item at most; each has vec columns.
const (
	lanes = 32
	vec   = 4
)

// pickShape spreads a warp's lanes over columns first, then over the entries of a row as far as rows are
// long, then over rows. Where that makes too few warps for the device, tiles of columns get narrower.
func pickShape(v *spec.Variant, e *spec.Packed, p spec.Problem) shape {
	if v.Code == backend.CodeGo {
		return goShape(e, p)
	}
	across := 1
	for across < lanes && across*vec < p.N {
		across *= 2
	}
	average := int(e.NNZ / int64(max(1, e.Rows)))
	items := e.Rows + int(e.Format.(Split).Segments)
	warps := func() int { return items * ((p.N + across*vec - 1) / (across * vec)) }
	for across > 8 && warps() < 16*p.Caps.Units {
		across /= 2
	}
	// Lane groups of one row help if they are idle otherwise, as in kernel csr.
	fills := func(along int) bool {
		return hasTeams(v) && across >= 8 && warps()*across*along > 2*waveLanes*max(1, p.Caps.Units)
	}
	along := 1
	for along < lanes/across && along*8 <= average && !fills(2*along) {
		along *= 2
	}
	return gpuShape(across, along)
}

// waveLanes is the number of lanes that a multiprocessor runs at the same time.
const waveLanes = 1024

// panelShape is the shape of phase 0 for panels: a warp has an item.
func panelShape(v *spec.Variant) shape {
	return shape{per: int(v.Shape.(uint32)), columns: v.Tile.Cols} // of as many warps
}

// sumShape is the shape of phase 1: few items, many segments each.
func sumShape(v *spec.Variant) shape {
	if v.Code == backend.CodeGo {
		return shape{per: 1, across: 1, along: 1, columns: 64}
	}
	return gpuShape(4, lanes/4)
}

func gpuShape(across, along int) shape {
	return shape{per: local / (across * along), across: across, along: along, columns: across * vec}
}

// tile is the widest tile of columns on the CPU: a run has room for the sums of a panel of as many.
const tile = 256

// goShape gives a workgroup some microseconds of work, in whole panels.
func goShape(e *spec.Packed, p spec.Problem) shape {
	const macs = 1 << 16
	columns := max(1, min(tile, p.N))
	item := (e.NNZ/int64(max(1, e.Rows)) + 4) * int64(columns)
	per := int(min(4096, macs/item)) / simd.PanelRows * simd.PanelRows
	return shape{per: max(simd.PanelRows, per), across: 1, along: 1, columns: columns}
}
