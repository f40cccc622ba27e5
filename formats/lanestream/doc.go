// Package lanestream is a format for matrices with scattered zeros, of any density, that are multiplied by few columns.
// Then it matters how few bytes A takes and how few instructions unpack it. A mask has one bit for each place and says
// whether it has a value. The values lie in the order in which the lanes of a warp need them for the tensor cores'
// instruction mma.m16n8k16. A lane takes its next value with one load from shared memory, from a bank that no other
// lane uses, and without counting bits.
//
// The matrix is cut into groups of 64 rows, and a group's columns into steps of 32. The last group and the last step
// are filled up with places that have no entry. A lane of a warp holds 64 places of a group's step, in 32 registers of
// two halves. The places of the lower halves form one chain, those of the upper halves another, so that a step has 64
// chains of 32 places. A group's chain continues through all its steps:
//
//	chain 2·l + h      lane l's half h; l = 4·g + q
//	word w, position i (0 ≤ w < 2, 0 ≤ i < 16, i = 4·t + 2·k + r)
//	                   row    16·t + 8·r + g
//	                   column 16·w + 8·k + 4·h + q
//
// Positions follow in the order of w and then i. Bit 2·i + h of a lane's mask word w says that chain 2·l + h takes its
// next value at that position.
//
// Values are stored in rows of 64; row j holds the j-th value of every chain. In 16-bit elements a row has 128 bytes,
// and lane l has the 4 bytes at 4·l. Chains differ in their number of values, so their readers would drift apart, and
// rows would have to be kept for the slowest. To prevent that, SegmentSteps steps form a segment, and each stream has a
// number of rows, its SegmentRows, that are read during a segment. Before segment j of the stream each chain must have
// taken at least SegmentRows·j values (or all rows of the stream), and after it at most SegmentRows·(j + Window). A
// chain with too few values takes fillers, which are zeros at places without an entry; Stored tells them from entries
// that are zero. Entries that are too many for a chain go to the COO remainder, which stores them by row with column
// and value. So a reader needs room for Window + 1 segments, in a ring.
//
// This is layout Places. In a matrix with few entries most bits of the mask are 0, and a place costs a reader more than
// an entry. Layout Pairs is for the instruction mma.sp.m16n8k32. Its operand has two slots for each quad (four
// neighbouring columns of a row), and two bits for each slot that say which column of the quad it has. A lane holds 16
// quads of a group's step:
//
//	quad i of lane 4·g + q (0 ≤ i < 16, i = 4·t + 2·k + r)
//	                   row    16·t + 8·r + g
//	                   columns 16·k + 4·q to 16·k + 4·q + 3
//
// A lane has one chain, of words of two values: in row j of Values lane l has elements 2·l (the lower half of a word)
// and 2·l + 1. Two bits describe a quad. One says that the quad's first slot has the lower half of the chain's next
// word. The other says that its second slot has the upper half of the word that was taken last. So a quad with two
// entries takes a word. A quad with one entry takes the lower half of a word, or an upper half that is left. If a quad
// has more entries, those after the first two are in the COO remainder. A reader looks at the last word again, so after
// each segment j but the last a chain must have taken SegmentRows·(j + 1) + 1 words. Fillers are lower halves in quads
// without an entry.
//
// For Pairs a step's mask has 96 words: 2 for each lane with the columns of slots, as mma.sp takes them, and then 1 for
// each lane with the bits of quads. Quad i's columns are at bit 4·q + 16·r of word t/2 of lane 4·g + 2·(t mod 2) + k,
// two bits each, the first slot's in the lower bits. The two columns differ, and ascend if both slots have a value. The
// quad's first bit is bit 16·⌊i/8⌋ + 7 - i mod 8 of its word, and its second bit is 8 bits higher.
//
// A group's segments are divided among Splits streams (split-K), one for each warp that multiplies the group. Split p
// has segments ⌊p·P/Splits⌋ to ⌊(p+1)·P/Splits⌋ - 1, where P is the number of segments of a group.
//
// The arrays as a kernel reads them, little-endian and without gaps, for M rows, G = ⌈M/64⌉ groups, S = G·Splits
// streams (stream Splits·g + p is split p of group g), P segments a group, V rows of values and R entries in the COO
// remainder:
//
//	StreamPtr     4·(S+1) bytes               u32, ascending: stream s has rows StreamPtr[s] to StreamPtr[s+1] - 1
//	SegmentRows   4·S bytes                   u32, 1 to MaxSegmentRows: rows of a segment of stream s
//	Mask          256·G·P·SegmentSteps bytes  u32: word w of lane l in step n of group g is at
//	                                          ((g·P·SegmentSteps + n)·32 + l)·2 + w. For Pairs a step has 384 bytes:
//	                                          lane l's words are at (g·P·SegmentSteps + n)·96 + 2·l, and 64 + l
//	Values        64·V + R elements           value of chain c in row j at 64·j + c, +0 without an entry; then the
//	                                          values of the COO remainder
//	Stored        8·V bytes                   u32 words; bit i mod 32 of word i/32: Values[i] is an entry
//	RemainderPtr  4·(M+1) bytes               u32, ascending: the COO remainder of row i is at RemainderPtr[i] to
//	                                          RemainderPtr[i+1] - 1
//	RemainderCol  4·R bytes                   u32: columns, strictly ascending within a row
//
// No matrix is refused for its pattern, but below a density of a tenth the mask takes more room than column indices
// would.
//
// Bitmaps and values for skinny products: Fan et al., "SpInfer", EuroSys 2025, whose kernel counts bits for each tile
// instead. The chains are this project's own.
package lanestream
