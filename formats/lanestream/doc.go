// Package lanestream is a format for matrices with scattered zeros, with half or more of the elements stored, that are
// multiplied by few columns: what counts then is how few bytes A takes and how few instructions unpack it. One bit says
// for each place whether there is a value, and the values lie in the order in which the lanes of a warp need them for
// the tensor cores' instruction mma.m16n8k16: a lane takes its next value with one load from shared memory, from a bank
// that no other lane uses, and without counting bits.
//
// The matrix is cut into groups of 64 rows, and a group's columns into steps of 32. The last ones are filled up with
// places that hold nothing. A lane of a warp holds 64 places of a group's step, in 32 registers of two halves; the
// places of the lower halves are one chain, those of the upper halves another, which makes 64 chains of 32 places. The
// chains of all steps of a group follow each other, so that a chain is the entries of K places, in the order of the
// steps:
//
//	chain 2·l + h      lane l's half h; l = 4·g + q
//	word w, position i (0 ≤ w < 2, 0 ≤ i < 16, i = 4·t + 2·k + r)
//	                   row    16·t + 8·r + g
//	                   column 16·w + 8·k + 4·h + q
//
// Positions follow in the order of w and then i. Bit 2·i + h of a lane's mask word w says that chain 2·l + h takes its
// next value at that position.
//
// Values are rows of 64, row j holding the j-th value of every chain: of 16-bit elements 128 bytes, in which lane l has
// the 4 bytes at 4·l. As chains differ in their number of values, their readers would drift apart, and rows would have
// to be kept for the slowest. So steps are taken together to segments, PieceSteps each, and every stream has a number
// of rows, its PieceRows, that are read in the time of a segment: before a segment j of the stream each chain must have
// taken PieceRows·j values (or all rows that there are), and after it no more than PieceRows·(j + Window). A chain with
// too few takes fillers, which are zeros at places without an entry; Stored tells them from entries that are zero. From
// a chain with too many, entries are left out: they are kept aside, with column and value for each row (the COO
// remainder). A reader keeps a ring of Window + 1 segments or more.
//
// That is layout Places. With few entries most of a mask's bits say nothing, and a place costs a reader more than an
// entry. Layout Pairs is for the instruction mma.sp.m16n8k32, whose operand has two slots for each four neighbouring
// columns of a row (a quad), and two bits for each slot that say which column it has. A lane holds 16 quads of a
// group's step:
//
//	quad i of lane 4·g + q (0 ≤ i < 16, i = 4·t + 2·k + r)
//	                   row    16·t + 8·r + g
//	                   columns 16·k + 4·q to 16·k + 4·q + 3
//
// A lane has one chain, of words of two values: in row j of Values lane l has the elements 2·l (the lower half of a
// word) and 2·l + 1. Two bits say of a quad that its first slot has the lower half of the chain's next word, and that
// its second slot has the upper half of the last word that was taken. So a quad with two entries takes a word, and one
// with a single entry takes the lower half of a word, or the upper half where one is left. Of quads with more entries,
// those past the first two are in the COO remainder. A reader looks at the last word again, so after a segment j but
// the last a chain must have taken PieceRows·(j + 1) + 1 words. Fillers are lower halves in quads without an entry.
//
// A step's mask has, for Pairs, 96 words: 2 for each lane with the columns of slots, as mma.sp takes them, and then 1
// for each with the bits of quads. Quad i's columns are at bit 4·q + 16·r of word t/2 of lane 4·g + 2·(t mod 2) + k,
// two bits each, the first slot's below; they differ, and ascend where both slots are taken. Its bits are 16·⌊i/8⌋ + 7
// - i mod 8, and the eighth bit after that for the upper half.
//
// A group's segments are shared among Parts streams, for as many warps: part p has the segments from
// ⌊p·P/Parts⌋ to ⌊(p+1)·P/Parts⌋ - 1, where P is a group's number of segments.
//
// The arrays as a kernel reads them, little-endian and without gaps, for M rows, G = ⌈M/64⌉ groups, S = G·Parts streams
// (stream Parts·g + p is part p of group g), P segments a group, V rows of values and R entries in the COO remainder:
//
//	StreamPtr  4·(S+1) bytes             u32, ascending: the rows of stream s are StreamPtr[s] to StreamPtr[s+1] - 1
//	PieceRows  4·S bytes                 u32, 1 to MaxPieceRows: rows of a segment of stream s
//	Mask       256·G·P·PieceSteps bytes  u32: word w of lane l in step n of group g at
//	                                     ((g·P·PieceSteps + n)·32 + l)·2 + w; for Pairs 384 bytes a step:
//	                                     those of lane l in step n at (g·P·PieceSteps + n)·96 + 2·l, and + 64 + l
//	Values     64·V + R elements         value of chain c in row j at 64·j + c, +0 without an entry; then the remainder's
//	Stored     8·V bytes                 u32 words; bit i mod 32 of word i/32: Values[i] is an entry
//	RestPtr    4·(M+1) bytes             u32, ascending: the COO remainder of row i is at RestPtr[i] to RestPtr[i+1] - 1
//	RestCol    4·R bytes                 u32: columns, strictly ascending within a row
//
// No matrix is refused, but below a tenth of entries the mask takes more room than column indices would.
//
// Bitmaps and values for skinny products: Fan et al., "SpInfer", EuroSys 2025, whose kernel counts bits for each tile
// instead. The chains are this project's own.
package lanestream
