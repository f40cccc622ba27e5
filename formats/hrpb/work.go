// The work list: which blocks a kernel multiplies together, and in what order it starts them.

package hrpb

import (
	"cmp"
	"slices"
)

// Part is a piece of work: blocks First to Last-1 of a panel. Slot is where its partial sums go, or
// NoSlot if it is the whole panel. (In Matrix.Splits: the whole panel, and its first slot.)
type Part struct{ Panel, First, Last, Slot uint32 }

// NoSlot is the Slot of a part that is a whole panel.
const NoSlot = 1<<32 - 1

// By Options.Workers a panel is split where it has more than slack times the paper's limit, and more than
// leastPart active columns: a part's sums are written and read again, which costs as much as fetching 32
// rows of B, and the step that adds them up takes a launch.
const (
	slack     = 2
	leastPart = 256
)

// WavePart returns the blocks that a part may have by the paper's rule (§5, equations 6 and 7), on a
// device that works on so many parts at a time: a panel may be as much heavier than the average as there
// are waves of panels, since as long as it runs other workers do that many of the others.
func WavePart(panels, blocks, workers int) int {
	if panels == 0 || workers <= 0 {
		return 0
	}
	waves := (panels + workers - 1) / workers
	return (blocks*waves + panels - 1) / panels
}

// WorkList returns the Parts and Splits of a matrix with these BlockPtr (ascending) and PartBlocks. A
// container need not store them.
func WorkList(ptr []uint32, partBlocks int) (parts, splits []Part) {
	slot := uint32(0)
	var whole []Part
	for p := range uint32(len(ptr) - 1) {
		first, last := ptr[p], ptr[p+1]
		n := splitIn(last-first, partBlocks)
		if n == 1 {
			whole = append(whole, Part{p, first, last, NoSlot})
			continue
		}
		splits = append(splits, Part{p, first, last, slot})
		for i := range n {
			parts = append(parts, Part{p, first + share(last-first, i, n), first + share(last-first, i+1, n), slot})
			slot++
		}
	}
	heavyFirst(whole, 2*float64(ptr[len(ptr)-1])/float64(len(ptr)-1))
	return append(parts, whole...), splits
}

// splitIn returns in how many parts a panel of so many blocks is split.
func splitIn(blocks uint32, partBlocks int) uint32 {
	if partBlocks <= 0 || int64(blocks) <= int64(partBlocks) {
		return 1
	}
	return uint32((int64(blocks) + int64(partBlocks) - 1) / int64(partBlocks))
}

// share returns where share i of n of so many blocks starts.
func share(blocks, i, n uint32) uint32 { return uint32(uint64(blocks) * uint64(i) / uint64(n)) }

// heavyFirst moves parts of more than so many blocks to the front, the heaviest first. The others keep
// their order.
func heavyFirst(parts []Part, blocks float64) {
	weight := func(p Part) uint32 {
		if w := p.Last - p.First; float64(w) > blocks {
			return w
		}
		return 0
	}
	slices.SortStableFunc(parts, func(x, y Part) int { return cmp.Compare(weight(y), weight(x)) })
}

// Slots returns the number of slots that the parts need.
func (m *Matrix[T]) Slots() int {
	n := 0
	for _, s := range m.Splits {
		n += int(splitIn(s.Last-s.First, m.PartBlocks))
	}
	return n
}

// Work returns what a kernel has to know of the work list: the lengths of Parts and Splits, the slots of
// the workspace, and PartBlocks.
func (m *Matrix[T]) Work() (parts, splits, slots, longest int) {
	return len(m.Parts), len(m.Splits), m.Slots(), m.PartBlocks
}
