// From CSR to panels of blocks and back.

package hrpb

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/entries"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// Options are the options of Encode.
type Options struct {
	// BlockCols is the number of active columns of a block: a multiple of BrickCols up to MaxBlockCols;
	// 0 means 16, the paper's TK.
	BlockCols int
	// PartBlocks is the number of blocks above which a panel is split; 0 means by Workers.
	PartBlocks int
	// Workers is the number of parts that the device works on at a time, by which heavy panels are
	// split (see WavePart) and heavy parts shared (see Part.Team); 0 means that none is.
	Workers int
	// Order lets rows that share columns come to lie in one panel, if that leaves enough of them out. It takes time of
	// the order of two seconds for ten million entries, on two cores.
	Order bool
}

// grain is the number of entries that make a goroutine worth while.
const grain = 1 << 14

// Encode packs a. It uses all cores and takes time proportional to the entries. The error wraps ErrTooLarge if an array
// needs more than 32-bit indices.
func Encode[T formats.Value](a *formats.CSR[T], o Options) (*Matrix[T], error) {
	if o.BlockCols == 0 {
		o.BlockCols = 16
	}
	if err := checkOptions(o.BlockCols, o.PartBlocks, 0); err != nil {
		return nil, err
	}
	if o.Workers < 0 {
		return nil, fmt.Errorf("hrpb: %d workers", o.Workers)
	}
	if err := a.Validate(); err != nil {
		return nil, err
	}
	m := &Matrix[T]{Rows: a.Rows, Cols: a.Cols, BlockCols: o.BlockCols, PartBlocks: o.PartBlocks}
	if o.Order {
		m.Order = 1
		m.RowIdx = orderRows(a.RowPtr, a.ColIdx, a.Cols)
	}
	if err := m.join(pack(ordered(a, m.RowIdx), o.BlockCols)); err != nil {
		return nil, err
	}
	m.share(o.Workers)
	m.Parts, m.Splits = WorkList(m.BlockPtr, m.PartBlocks, m.TeamBlocks)
	return m, nil
}

// ordered returns a's rows in an order; nil is that which they are in.
func ordered[T formats.Value](a *formats.CSR[T], order []uint32) *formats.CSR[T] {
	if order == nil {
		return a
	}
	out := &formats.CSR[T]{
		Rows: a.Rows, Cols: a.Cols, RowPtr: make([]int64, 1, len(a.RowPtr)),
		ColIdx: make([]int32, len(a.ColIdx)), Val: make([]T, len(a.Val)),
	}
	at := int64(0)
	for _, r := range order {
		at += a.RowPtr[r+1] - a.RowPtr[r]
		out.RowPtr = append(out.RowPtr, at)
	}
	par.Rows(out.RowPtr, grain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			to, end, from := out.RowPtr[i], out.RowPtr[i+1], a.RowPtr[order[i]]
			copy(out.ColIdx[to:end], a.ColIdx[from:])
			copy(out.Val[to:end], a.Val[from:])
		}
	})
	return out
}

// share sets TeamBlocks, and PartBlocks if it is not yet set, for a number of workers.
func (m *Matrix[T]) share(workers int) {
	if workers == 0 {
		return
	}
	panels, blocks := len(m.BlockPtr)-1, len(m.SizePtr)-1
	if m.PartBlocks == 0 {
		m.PartBlocks = max((leastPart+m.BlockCols-1)/m.BlockCols, slack*WavePart(panels, blocks, workers))
	}
	m.TeamBlocks = max((leastTeam+m.BlockCols-1)/m.BlockCols, (blocks+workers-1)/workers)
}

func checkOptions(blockCols, partBlocks, teamBlocks int) error {
	if blockCols < BrickCols || blockCols > MaxBlockCols || blockCols%BrickCols != 0 {
		return fmt.Errorf("hrpb: blocks of %d columns: need a multiple of %d up to %d", blockCols, BrickCols, MaxBlockCols)
	}
	if partBlocks < 0 || partBlocks > math.MaxInt32 || teamBlocks < 0 || teamBlocks > math.MaxInt32 {
		return fmt.Errorf("hrpb: parts of %d blocks, teams from %d on: need 0 to %d", partBlocks, teamBlocks, math.MaxInt32)
	}
	return nil
}

// chunk is the blocks of neighbouring panels, packed by one goroutine.
type chunk[T formats.Value] struct {
	first  int      // panel
	blocks []uint32 // of each panel
	active []uint32
	sizes  []uint32 // of each block, in units
	packed []uint32

	sorter sorter
	block  []uint64 // patterns of the block under way
	values []T      // and its values
}

// pack packs all panels, in chunks of about as many entries; chunks come in order.
func pack[T formats.Value](a *formats.CSR[T], blockCols int) []*chunk[T] {
	panels := Panels(a.Rows)
	ptr := make([]int64, panels+1)
	for p := range ptr {
		ptr[p] = a.RowPtr[min(a.Rows, p*PanelRows)]
	}
	var mu sync.Mutex
	var chunks []*chunk[T]
	par.Rows(ptr, grain, func(lo, hi int) {
		n := int(ptr[hi] - ptr[lo])
		c := &chunk[T]{first: lo, active: make([]uint32, 0, n/2), packed: make([]uint32, 0, n*size[T]()/4+n/4)}
		for p := lo; p < hi; p++ {
			c.panel(a, p, blockCols)
		}
		mu.Lock()
		defer mu.Unlock()
		chunks = append(chunks, c)
	})
	slices.SortFunc(chunks, func(x, y *chunk[T]) int { return x.first - y.first })
	return chunks
}

// panel packs panel p.
func (c *chunk[T]) panel(a *formats.CSR[T], p, blockCols int) {
	var next [PanelRows]int64 // of each row
	ptr := a.RowPtr[p*PanelRows : min(a.Rows, (p+1)*PanelRows)+1]
	copy(next[:], ptr[:len(ptr)-1])
	var pattern uint64
	var brick [PanelRows * BrickCols]T
	before := len(c.sizes)
	cols := 0 // active columns so far
	last := int64(-1)
	for _, key := range c.sorter.sort(ptr, a.ColIdx) {
		col, r := int64(key/PanelRows), key%PanelRows
		if col != last {
			if cols > 0 && cols%BrickCols == 0 {
				c.endBrick(pattern, &brick)
				pattern = 0
			}
			if cols > 0 && cols%blockCols == 0 {
				c.endBlock(blockCols)
			}
			c.active = append(c.active, uint32(col))
			last = col
			cols++
		}
		bit := r*BrickCols + uint64(cols-1)%BrickCols
		pattern |= 1 << bit
		brick[bit] = a.Val[next[r]]
		next[r]++
	}
	if cols > 0 {
		c.endBrick(pattern, &brick)
		for ; cols%blockCols != 0; cols++ {
			c.active = append(c.active, uint32(last))
		}
		c.endBlock(blockCols)
	}
	c.blocks = append(c.blocks, uint32(len(c.sizes)-before))
}

// endBrick adds a brick to the block under way.
func (c *chunk[T]) endBrick(pattern uint64, brick *[PanelRows * BrickCols]T) {
	c.block = append(c.block, pattern)
	for w := pattern; w != 0; w &= w - 1 {
		c.values = append(c.values, brick[bits.TrailingZeros64(w)])
	}
}

// endBlock appends the block under way to packed.
func (c *chunk[T]) endBlock(blockCols int) {
	n := blockUnits[T](blockCols, len(c.values))
	at := len(c.packed)
	c.packed = append(c.packed, make([]uint32, n*unitWords)...)
	words := c.packed[at:]
	for i, w := range c.block {
		words[2*i], words[2*i+1] = uint32(w), uint32(w>>32)
	}
	copy(view[T](words[2*blockCols/BrickCols:]), c.values)
	c.sizes = append(c.sizes, uint32(n))
	c.block, c.values = c.block[:0], c.values[:0]
}

// blockUnits returns the units of a block with this many entries.
func blockUnits[T formats.Value](blockCols, entries int) int {
	bytes := 8*(blockCols/BrickCols) + size[T]()*entries
	return (bytes + 4*unitWords - 1) / (4 * unitWords)
}

// join makes the matrix's arrays of the chunks'.
func (m *Matrix[T]) join(chunks []*chunk[T]) error {
	m.BlockPtr = make([]uint32, 1, Panels(m.Rows)+1)
	var blocks, units uint64
	for _, c := range chunks {
		blocks += uint64(len(c.sizes))
		units += uint64(len(c.packed) / unitWords)
	}
	if blocks*uint64(m.BlockCols) > formats.MaxSlots || units*unitWords > formats.MaxSlots {
		return fmt.Errorf("%w: %d blocks of %d columns in %d bytes", ErrTooLarge, blocks, m.BlockCols, 16*units)
	}
	m.SizePtr = make([]uint32, 1, blocks+1)
	m.Active = make([]uint32, 0, blocks*uint64(m.BlockCols))
	m.Packed = make([]uint32, 0, units*unitWords)
	for _, c := range chunks {
		m.Active = append(m.Active, c.active...)
		m.Packed = append(m.Packed, c.packed...)
		m.BlockPtr = appendSums(m.BlockPtr, c.blocks)
		m.SizePtr = appendSums(m.SizePtr, c.sizes)
	}
	return nil
}

// appendSums appends to ptr the running sum of its last element and sizes.
func appendSums(ptr, sizes []uint32) []uint32 {
	sum := ptr[len(ptr)-1]
	for _, n := range sizes {
		sum += n
		ptr = append(ptr, sum)
	}
	return ptr
}

// Decode returns the matrix that was encoded, stored zeros included. m must be valid.
func (m *Matrix[T]) Decode() *formats.CSR[T] { return m.entries().CSR() }

// WithoutValues returns the matrix without its values. The result is not valid; it is only for WithValues. It shares
// the arrays that have none.
func (m *Matrix[T]) WithoutValues() formats.Encoded {
	return m.repacked(func(Block[T]) int { return (2*m.BlockCols/BrickCols + unitWords - 1) / unitWords })
}

// WithValues returns the matrix with other values in the same places, in the order of Decode. It shares the arrays that
// have none. There must be NNZ values.
func (m *Matrix[T]) WithValues(values []T) formats.Encoded {
	out := m.repacked(func(b Block[T]) int { return blockUnits[T](m.BlockCols, b.Entries()) })
	out.entries().Set(values)
	return out
}

// repacked returns the matrix with blocks of units(block) units, which hold their patterns.
func (m *Matrix[T]) repacked(units func(Block[T]) int) *Matrix[T] {
	out := *m
	out.SizePtr = make([]uint32, len(m.SizePtr))
	for q := range len(m.SizePtr) - 1 {
		out.SizePtr[q+1] = out.SizePtr[q] + uint32(units(m.Block(q)))
	}
	out.Packed = make([]uint32, unitWords*int(out.SizePtr[len(out.SizePtr)-1]))
	for q := range len(m.SizePtr) - 1 {
		from, to := m.Block(q), out.Block(q)
		copy(to.words, from.words[:2*from.Bricks()])
	}
	return &out
}

func (m *Matrix[T]) entries() entries.Of[T] {
	return entries.Of[T]{Rows: m.Rows, Cols: m.Cols, Panels: len(m.BlockPtr) - 1, Grain: 256, Panel: m.panel}
}

// panel calls f for each stored entry of panel p: its row, its column and its value.
func (m *Matrix[T]) panel(p int, f func(row, col int, v *T)) {
	var rows [PanelRows]int
	for r := range min(PanelRows, m.Rows-p*PanelRows) {
		rows[r] = m.Row(p*PanelRows + r)
	}
	m.each(p, func(r int, col uint32, v *T) { f(rows[r], int(col), v) })
}
