// The packing that sparse tensor cores take: 2:4 in the order of their operands.

package nm

import (
	"fmt"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/nm"
	"github.com/spmmrun/spmm/shaders/spec"
)

// The constant PACK: how values and places lie.
const (
	plainPack = iota // as the format has them
	warpPack         // 2:4 for warps: sparse24.cu, lanes.comp
	groupPack        // 2:4 for warpgroups: group24.cu
	lanePack         // units of many rows for lanes: lanes.comp, lanes.go
)

// packs24 reports whether a packing is of 2:4 alone.
func packs24(packing uint32) bool { return packing == warpPack || packing == groupPack }

// packRows is the rows of a block of each packing; no two blocks share a word. Rows are padded to whole blocks, columns
// to whole stages of 64.
var packRows = [...]int{warpPack: 128, groupPack: 256}

const stageSlots = 32

// slot24 is where a slot of a row lies.
type slot24 struct {
	value int
	word  int // of places
	shift int // in the word
}

// warpSlot is sparse24.cu's packing of rows that have stages stages: values by 16 rows, 32 columns, then lane (see
// mma.sp.m16n8k32's operand A, of 8 values to a lane), a metadata word by 16 rows, 64 columns, then lane.
func warpSlot(stages, row, slot int) slot24 {
	step, in := slot/16, slot%16
	lane := row%8*4 + in%8/2
	return slot24{
		value: ((row/16*stages*2+step)*32+lane)*8 + in/8*4 + row/8%2*2 + in%2,
		word:  (row/16*stages+step/2)*32 + row%8*4 + step%2*2 + in/8,
		shift: row/8%2*16 + in%8*2,
	}
}

// groupSlot is group24.cu's packing of rows that have stages stages: by 256 rows, 64 columns, then 64 rows. Such a
// chunk has its values by 8 slots, 8 rows, row, then slot (see wgmma's operands in shared memory, without an exchange
// of chunks). Metadata is by 256 rows, four stages, 64 rows, lane (the 16 rows of each warp as warpSlot's), then stage.
func groupSlot(stages, row, slot int) slot24 {
	panel, sub, r, stage, in := row/256, row%256/64, row%64, slot/32, slot%32
	return slot24{
		value: ((panel*stages+stage)*4+sub)*2048 + in/8*512 + r*8 + in%8,
		word:  (((panel*spec.Ceil(stages, 4)+stage/4)*4+sub)*128+r/16*32+r%8*4+in/8)*4 + stage%4,
		shift: r/8%2*16 + in%8*2,
	}
}

// order24 is a packing's order. Eight slots, from a multiple of eight on, have their places side by side in one word,
// and their values in pairs, so far apart.
type order24 struct {
	place func(stages, row, slot int) slot24
	apart int
}

var orders24 = [...]order24{warpPack: {warpSlot, 8}, groupPack: {groupSlot, 2}}

// pack24 brings m, which is 2:4, into the order of a packing. Padding has places too: 0 and 1, since equal ones are not
// allowed. The values have room for `room` more behind them.
func pack24[T formats.Value](m *nm.Matrix[T], packing uint32, room int) (values []T, places []uint32, err error) {
	if m.Pattern != nm.Sparse24 {
		return nil, nil, fmt.Errorf("sparse tensor cores take %v, not %v", nm.Sparse24, m.Pattern)
	}
	s, err := m.Shape(m.Rows, m.Cols)
	if err != nil {
		return nil, nil, err
	}
	stages := spec.Ceil(s.Slots, stageSlots)
	block, order := packRows[packing], orders24[packing]
	padded := spec.Ceil(m.Rows, block) * block
	if int64(padded)*int64(stages)*stageSlots > 1<<32-1 {
		return nil, nil, nm.ErrTooLarge
	}
	n := padded * stages * stageSlots
	values = make([]T, n, n+room)
	places = make([]uint32, padded*spec.Ceil(stages, 4)*8)
	for i := range places {
		places[i] = 0x44444444
	}
	spec.Shares(m.Rows, block, spec.MemoryCores, func(first, last int) {
		for row := first; row < last; row++ {
			words := m.Index[row*s.IndexWords:]
			for slot := 0; slot < s.Slots; slot += 8 {
				to := order.place(stages, row, slot)
				from := m.Values[row*s.Slots+slot:][:min(8, s.Slots-slot)]
				for i := 0; i < len(from); i += 2 {
					at := to.value + i/2*order.apart
					values[at], values[at+1] = from[i], from[i+1]
				}
				whole := uint32(1)<<(2*len(from)) - 1
				place := words[slot/16] >> (slot % 16 * 2) & whole
				places[to.word] = places[to.word]&^(whole<<to.shift) | place<<to.shift
			}
		}
	})
	return values, places, nil
}
