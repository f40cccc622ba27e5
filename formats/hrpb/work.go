// The work list: which blocks a kernel multiplies together, and in what order it starts them.

package hrpb

import (
	"cmp"
	"slices"
)

// Part is a work item: blocks First to Last-1 of a panel. Slot is where its partial sums go, or NoSlot if it is the
// whole panel. (In Matrix.Splits: the whole panel, and its first slot.)
type Part struct{ Panel, First, Last, Slot uint32 }

// NoSlot is the Slot of a part that is a whole panel.
const NoSlot = 1<<32 - 1

// By Options.Workers a panel is split where it has more than slack times the paper's limit, and more than
// leastPart active columns: a part's sums are written and read again, which costs as much as fetching 32
// rows of B, and the step that adds them up takes a launch. A part is for a team where it has more than the
// average for a worker, and more than leastTeam active columns.
const (
	slack     = 2
	leastPart = 256
	leastTeam = 72
)

// MaxTeam is the most workers of a team, which share a part.
const MaxTeam = 4

// Team returns how many workers should share the part: 1, 2 or 4, the fewest that leave each at most
// teamBlocks blocks. Where teamBlocks is 0 there are no teams.
func (p Part) Team(teamBlocks int) int {
	team := 1
	for team < MaxTeam && teamBlocks > 0 && int64(p.Last-p.First) > int64(team)*int64(teamBlocks) {
		team *= 2
	}
	return team
}

// WavePart returns the most blocks of a part by the paper's rule (§5, equations 6 and 7), on a device that works on
// `workers` parts at a time. A panel may be heavier than the average by as many times as there are waves of panels:
// while it runs, the other workers process that many panels each.
func WavePart(panels, blocks, workers int) int {
	if panels == 0 || workers <= 0 {
		return 0
	}
	waves := (panels + workers - 1) / workers
	return (blocks*waves + panels - 1) / panels
}

// WorkList returns the Parts and Splits of a matrix with these BlockPtr (ascending), PartBlocks and
// TeamBlocks. A container need not store them.
func WorkList(ptr []uint32, partBlocks, teamBlocks int) (parts, splits []Part) {
	slot := uint32(0)
	for p := range uint32(len(ptr) - 1) {
		first, last := ptr[p], ptr[p+1]
		n := splitIn(last-first, partBlocks)
		if n == 1 {
			parts = append(parts, Part{p, first, last, NoSlot})
			continue
		}
		splits = append(splits, Part{p, first, last, slot})
		for i := range n {
			parts = append(parts, Part{p, first + share(last-first, i, n), first + share(last-first, i+1, n), slot})
			slot++
		}
	}
	slices.SortStableFunc(parts, func(x, y Part) int { return cmp.Compare(y.Team(teamBlocks), x.Team(teamBlocks)) })
	return parts, splits
}

// splitIn returns in how many parts a panel of n blocks is split.
func splitIn(blocks uint32, partBlocks int) uint32 {
	if partBlocks <= 0 || int64(blocks) <= int64(partBlocks) {
		return 1
	}
	return uint32((int64(blocks) + int64(partBlocks) - 1) / int64(partBlocks))
}

// share returns where share i of n of the blocks starts.
func share(blocks, i, n uint32) uint32 { return uint32(uint64(blocks) * uint64(i) / uint64(n)) }

// Work describes a work list to a kernel's launch.
type Work struct {
	Parts, Splits int // lengths of the lists
	Slots         int // of the workspace
	PartBlocks    int
	Fours, Twos   int // parts for teams of four and of two: they come first, in this order
	Places        int // where RowIdx starts, in u32, if it follows both lists; 0: there is none
}

// Work describes the work list.
func (m *Matrix[T]) Work() Work {
	if m.StripWork != nil {
		return *m.StripWork
	}
	w := Work{Parts: len(m.Parts), Splits: len(m.Splits), PartBlocks: m.PartBlocks}
	if len(m.RowIdx) > 0 {
		w.Places = 4 * (len(m.Parts) + len(m.Splits))
	}
	for _, s := range m.Splits {
		w.Slots += int(splitIn(s.Last-s.First, m.PartBlocks))
	}
	for _, p := range m.Parts {
		switch p.Team(m.TeamBlocks) {
		case 4:
			w.Fours++
		case 2:
			w.Twos++
		}
	}
	return w
}
