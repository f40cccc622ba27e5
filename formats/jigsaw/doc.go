// Package jigsaw is the reorder-aware storage format of Jigsaw (Zhang et al., "Jigsaw: Accelerating SpMM with Vector
// Sparsity on Sparse Tensor Core", ICPP 2024, §3.2 and §3.3): any sparse matrix, with its columns reordered so that
// sparse tensor cores can multiply it. They take two of every four columns in a row.
//
// Three levels of indices describe the order of the columns:
//
//   - A block of BlockTile rows keeps the columns in which any of its rows has an entry and drops the
//     others. ColIdx (the paper's col_idx_array) lists them: a column's position is its place in the
//     block's list. A kernel brings those rows of B to shared memory, once for the block.
//   - A strip of 16 rows of the block takes the columns in which it has entries, 16 at a time: a tile
//     (MMA_TILE). BlockColIdx (block_col_idx_array) holds the position of each of a tile's 16 columns, in
//     an order in which each row has at most two entries in each four neighbouring columns, a quad.
//   - Values holds the two entries of each row and quad, and Metadata (sptc_col_idx_array) which two of the
//     quad's four columns they are in, 2 bits each.
//
// Two tiles make a step, the operand of one mma.m16n8k32 instruction, and strips have an even number of
// steps. The paper gives every strip of a block the same 16 columns, each in an order of its own; here a
// strip leaves out the block's columns that are zero in its own rows, which is never more work.
//
// No matrix is refused. If 16 columns cannot be reordered, a tile has fewer and leaves places empty. With two columns
// in each quad even a matrix without zeros fits.
//
// Two rows of a strip and a tile of two quads (of four); dots are entries that are not stored:
//
//	column  0 1 2 3 4 5 6 7 8 9
//	row 0   . a . b . c . . d .      ColIdx    1 3 5 8 9     the other columns are dropped
//	row 1   . e . f . g . . . h      position  0 1 2 3 4
//
//	position     0 1 - -   2 3 4 -      as they stood, 0 to 3 would have been four entries of row 0
//	row 0        a b . .   c d . .      Values  a b c d    Metadata  0 1   0 1
//	row 1        e f . .   g . h .              e f g h              0 1   0 2
//	BlockColIdx  0 1 1 1   2 3 4 4
//
// The arrays as a kernel reads them, little-endian and without gaps, for P blocks,
// S = P·BlockTile/16 strips, Q columns in all lists and N steps:
//
//	BlockPtr     4·(P+1) bytes   u32, ascending: block p's columns are ColIdx[BlockPtr[p]:BlockPtr[p+1]]
//	ColIdx       4·Q bytes       u32, strictly ascending within a block
//	StepPtr      4·(S+1) bytes   u32, ascending, even: strip s's steps are StepPtr[s] to StepPtr[s+1]
//	BlockColIdx  4·32·N bytes    u32: position, in the block's list, of column k of step n at 32·n+k
//	Metadata     4·16·N bytes    u32, see below
//	Values       256·N elements  see below
//	Mask         4·8·N bytes     u32 words; bit i mod 32 of word i/32: Values[i] is a stored entry
//	Order        4·P bytes       u32, the blocks by falling number of steps, equals by number
//
// Values are in the order in which the 32 lanes of a warp hold the instruction's operand: lane l = 4·g+q
// has, 16 bytes of 16-bit elements together, of the rows g and g+8 the quad q in each tile.
//
//	Values[256·n + 8·l + 4·t + 2·h + e]   strip row g+8·h, tile t, quad q: its entry e (0, 1)
//
// Metadata are interleaved for two steps (§3.4.3), so that every lane of a warp has one word to load and
// the instruction's selector tells which step it is for:
//
//	Metadata[32·(n/2) + 4·g + 2·(n%2) + t]   tile t of step n, for the rows g (low 16 bits) and g+8
//	bits 4·q+2·e of such a half              column within quad q (0 to 3) of entry e; entry 0 is before 1
//
// A place without an entry has the value 0, no bit in Mask, and some column of the quad. Columns that a tile does not
// need repeat a position that its step or the one before uses. So a structural zero always multiplies a row of B that
// the strip needs anyway, and Mask tells it from a zero that is an entry.
//
// Span, if positive, bounds the distance of columns that are used at about the same time: every position in a step is
// less than Span more than the least position in that step or any later one. So a kernel that keeps rows of B in a ring
// needs room for at most Span rows.
package jigsaw
