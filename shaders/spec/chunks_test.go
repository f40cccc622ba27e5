// Chunks hold every entry once, and rows of several segments know all of their slots.

package spec_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/shaders/spec"
)

func TestCutChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lens := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 200)), 0, 60).Draw(t, "lengths")
		slots, rows, lead := rapid.IntRange(1, 70).Draw(t, "slots"), rapid.IntRange(1, 9).Draw(t, "rows"),
			rapid.Uint32Range(0, 3).Draw(t, "lead")
		rowptr := []uint32{lead}
		for _, n := range lens {
			rowptr = append(rowptr, rowptr[len(rowptr)-1]+uint32(n))
		}
		c, list := spec.CutChunks(rowptr, slots, rows)
		if len(list) != int(c.Count+c.Joins)*spec.ChunkWords {
			t.Fatalf("%d words for %d chunks and %d rows in segments", len(list), c.Count, c.Joins)
		}
		row, entry, slot := 0, lead, uint32(0)
		joins := list[c.Count*spec.ChunkWords:]
		for i := range c.Count {
			chunk := list[i*spec.ChunkWords:]
			first, last, at, what := chunk[0], chunk[1], chunk[2], chunk[3]
			if first != entry || int(at) != row || int(last-first) > slots {
				t.Fatalf("a chunk of entries %d to %d from row %d on, want from entry %d and row %d on", first, last, at, entry, row)
			}
			entry = last
			if what&spec.PieceChunk == 0 {
				if int(what) < 1 || int(what) > rows || rowptr[row+int(what)] != last {
					t.Fatalf("a chunk of %d rows from row %d on ends with entry %d", what, row, last)
				}
				row += int(what)
				continue
			}
			if what &^= spec.PieceChunk; what != slot || lens[row] <= slots || last > rowptr[row+1] {
				t.Fatalf("a segment of row %d, of %d entries, goes to slot %d, want %d", row, lens[row], what, slot)
			}
			slot++
			if last == rowptr[row+1] {
				if int(joins[0]) != row || joins[2] != slot || int(joins[2]-joins[1]) != (lens[row]+slots-1)/slots {
					t.Fatalf("row %d of %d entries has slots %v", row, lens[row], joins[:3])
				}
				joins = joins[spec.ChunkWords:]
				row++
			}
		}
		if row != len(lens) || entry != rowptr[len(lens)] || slot != c.Slots || len(joins) != 0 {
			t.Fatalf("chunks end with row %d and entry %d, want %d and %d", row, entry, len(lens), rowptr[len(lens)])
		}
	})
}
