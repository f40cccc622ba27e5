// Division of rows of very different lengths into segments and chunks.

package spec

import (
	"math"
	"slices"
)

// Split says how the rows of a matrix are divided: whole, or cut into segments.
type Split struct {
	Longest  uint32 // rows with more entries are cut into segments of this many
	Segments uint32 // segments
	Middle   uint32 // rows for a warp each, or for a workgroup where a warp takes the entries four at a time
	Warps    uint32 // rows for a warp each
	Slots    uint32 // rows of the workspace for the segments' partial sums
	Rows     uint32 // rows in several segments
	Average  int    // entries of a row
	Items    int    // rows and segments of the whole matrix
	Lead     int    // slots before the first entry's, see Extent.Offset
	Chunks   Chunks // for kernels that take A as a stream
	// Skewed says that many entries are in long rows. Then segments are listed in the order of their first columns, and
	// rows in several segments in the order of how many they have. A workgroup adds those of each of the first Wide rows.
	Skewed bool
	Wide   uint32
	// Scattered is the share of a sample's entries whose row of B none of the last entries needed. It is computed for the
	// kernels of the CPU and of CUDA.
	Scattered float64
}

// Extent describes the whole matrix when a matrix is some rows of it.
type Extent struct {
	Rows     int
	NNZ      int64
	Segments int64 // segments of its long rows: CountSegments of all row pointers
	// Offset is the number of entries before the first of these rows. GPUs take entries in fours, so an entry's number in
	// the whole matrix decides which lane adds it.
	Offset int64
}

// CountSegments returns the number of segments of the rows that are cut. rowptr has one element more than there are
// rows.
func (e Extent) CountSegments(rowptr []int64) (n int64) {
	longest := int64(LongestRow(e.Rows, e.NNZ))
	for i := 1; i < len(rowptr); i++ {
		if entries := rowptr[i] - rowptr[i-1]; entries > longest {
			n += (entries-1)/longest + 1
		}
	}
	return n
}

// Average returns the mean number of entries of a row, rounded down.
func (e Extent) Average() int { return int(e.NNZ / int64(max(1, e.Rows))) }

// LongestRow returns the most entries of a row that is not cut: four times the average, or fewer if segments of
// nnz/4096 keep a large device busy; at least 256. It is a multiple of four.
func LongestRow(rows int, nnz int64) int {
	const (
		least  = 256  // entries of a segment
		enough = 4096 // segments that keep a large device busy
	)
	return int(max(least, min(4*nnz/int64(max(rows, 1)), nnz/enough))+3) &^ 3
}

// SplitRows cuts the rows with more than longest entries. It lists the segments (first entry, last + 1), and then these
// rows (row, first segment, last + 1).
func SplitRows(rowptr []int64, longest int) (Split, []uint32) {
	var segments, rows []uint32
	for i := range len(rowptr) - 1 {
		begin, end := int(rowptr[i]), int(rowptr[i+1])
		if end-begin <= longest {
			continue
		}
		first := uint32(len(segments) / 2)
		for p := begin; p < end; p += longest {
			segments = append(segments, uint32(p), uint32(min(p+longest, end)))
		}
		rows = append(rows, uint32(i), first, uint32(len(segments)/2))
	}
	return Split{Longest: uint32(longest), Segments: uint32(len(segments) / 2), Slots: uint32(len(segments) / 2),
		Rows: uint32(len(rows) / 3)}, append(segments, rows...)
}

// LongRow returns the most entries of a row that is not for a whole workgroup: three times the average, and at least
// 32. It is a multiple of four, and at most LongestRow.
func LongRow(rows int, nnz int64) int {
	const least = 32 // entries
	return min(LongestRow(rows, nnz), (max(least, 3*int(nnz/int64(max(rows, 1))))+3)&^3)
}

// Limits are the most entries of rows that a group of lanes computes (Short), a warp (Middle, or Long where a warp
// takes many entries at a time), and a workgroup (Longest). Rows with more entries are cut into segments of Longest
// entries. Each limit is at least the one before. A row has at most Most segments, which are longer if need be (0: any
// number).
type Limits struct{ Short, Middle, Long, Longest, Most int }

// TeamLimits returns the limits for devices where a workgroup, but no warp, computes a row.
func TeamLimits(rows int, nnz int64) Limits {
	long := LongRow(rows, nnz)
	return Limits{Short: long, Middle: long, Long: long, Longest: LongestRow(rows, nnz)}
}

// WarpLimits returns the limits for devices where a warp computes a row. A lane group takes four entries at a time,
// each after the one before has arrived, so a row much longer than the average ends long after the others. A small
// matrix, whose rows all run at the same time, takes as long as its longest row.
func WarpLimits(rows int, nnz int64) Limits {
	const (
		wave = 132 * 128 // lane groups that run at the same time on a large device, with 32 columns
		few  = 4         // entries of a row, on average
		step = 8         // entries
		long = 64
	)
	l := TeamLimits(rows, nnz)
	average := int(nnz / int64(max(rows, 1)))
	short := max(2*step, (2*average+step-1)&^(step-1))
	if rows <= wave && average < few {
		short = step
	}
	l.Short, l.Long = min(short, l.Short), min(max(long, l.Long), l.Longest)
	return l
}

// ShareRows lists the rows for workgroups, in segments (first entry, last + 1, row, slot for the partial sums; NoSlot
// if the segment is the whole row). Then it lists likewise the rows for workgroups or warps, those for warps, and the
// rows in several segments (row, first slot, last + 1).
func ShareRows(rowptr []int64, l Limits) (Split, []uint32) {
	s := Split{Longest: uint32(l.Short)}
	var segments, middle, warps, rows []uint32
	for i := range len(rowptr) - 1 {
		begin, end := int(rowptr[i]), int(rowptr[i+1])
		whole := []uint32{uint32(begin), uint32(end), uint32(i), NoSlot}
		switch entries := end - begin; {
		case entries <= l.Short:
		case entries <= l.Middle:
			warps = append(warps, whole...)
		case entries <= l.Long:
			middle = append(middle, whole...)
		case entries <= l.Longest:
			segments = append(segments, whole...)
		default:
			first, longest := s.Slots, l.Longest
			if l.Most > 0 {
				longest = max(longest, (entries/l.Most+4)&^3)
			}
			for p := begin; p < end; p += longest {
				segments = append(segments, uint32(p), uint32(min(p+longest, end)), uint32(i), s.Slots)
				s.Slots++
			}
			rows = append(rows, uint32(i), first, s.Slots)
		}
	}
	s.Segments, s.Middle, s.Warps = uint32(len(segments)/4), uint32(len(middle)/4), uint32(len(warps)/4)
	s.Rows = uint32(len(rows) / 3)
	return s, slices.Concat(segments, middle, warps, rows)
}

// NoSlot in place of a slot: the sums go to C.
const NoSlot = math.MaxUint32

// Chunks says where the list of CutChunks is in an array.
type Chunks struct {
	First uint32 // of the first chunk: words from the array's beginning over ChunkWords
	Count uint32
	Slots uint32 // of the workspace for the segments' partial sums
	Joins uint32 // rows in several segments, listed behind the chunks
	Large bool   // the matrix is large enough for the kernels that read chunks
}

const (
	ChunkWords = 4       // of a chunk, and of a row in several segments
	PieceChunk = 1 << 31 // in a chunk's last word: the other bits are the slot of a row segment
)

// CutChunks cuts a matrix into chunks of at most `slots` entries. A chunk is at most `rows` whole rows, or a segment of
// a row with more entries. It lists the chunks (first entry, last + 1, first row, number of rows or PieceChunk|slot),
// and then the rows in several segments (row, first slot, last + 1, 0).
func CutChunks(rowptr []uint32, slots, rows int) (Chunks, []uint32) {
	var c Chunks
	var chunks, joins []uint32
	for i, n := 0, len(rowptr)-1; i < n; {
		begin := rowptr[i]
		if entries := int(rowptr[i+1] - begin); entries > slots {
			first := c.Slots
			for at := begin; at < rowptr[i+1]; at += uint32(min(slots, int(rowptr[i+1]-at))) {
				chunks = append(chunks, at, at+uint32(min(slots, int(rowptr[i+1]-at))), uint32(i), PieceChunk|c.Slots)
				c.Slots++
			}
			joins = append(joins, uint32(i), first, c.Slots, 0)
			i++
			continue
		}
		last := i + 1
		for last < n && last-i < rows && int(rowptr[last+1]-begin) <= slots {
			last++
		}
		chunks = append(chunks, begin, rowptr[last], uint32(i), uint32(last-i))
		i = last
	}
	c.Count, c.Joins = uint32(len(chunks)/ChunkWords), uint32(len(joins)/ChunkWords)
	return c, append(chunks, joins...)
}
