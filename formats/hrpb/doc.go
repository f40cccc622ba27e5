// Package hrpb is Hierarchical Row-Panel-Blocking, the format of cuTeSpMM (Xiang et al., "cuTeSpMM:
// Accelerating Sparse-Dense Matrix Multiplication using GPU Tensor Cores", §3.2, with the load
// balancing of §5).
//
// The rows of a matrix are cut into panels of 16 (the paper's TM); the last may be shorter. In each panel the columns
// with at least one entry are the active columns. They are moved together, and every BlockCols (TK) of them form a
// block. A block is cut into bricks of 16 rows × 4 columns. A brick is stored as its entries and a 64-bit pattern that
// says where they are: bit 4·r+c is set if row r of the brick's column c is stored; values follow in the order of their
// bits.
//
// A 16×9 matrix with entries in rows 0 to 2 alone, with BlockCols = 8; dots are entries that are not stored:
//
//	col 0 1 2 3 4 5 6 7 8            active 0 1 3 6 | 8 - - -
//	    a . . b . . . . .                   a . b . | . . . .
//	    . . . . . . c . d      ──▶          . . . c | d . . .
//	    . e . . . . . . .                   . e . . | . . . .
//	                                        brick 0 | brick 1
//
//	Active   [ 0 1 3 6  8 8 8 8 ]          padding repeats the panel's last active column
//	patterns brick 0: bits 0 (a), 2 (b), 7 (c), 9 (e) = 0x285; brick 1: bit 4 (d) = 0x10
//	Packed   [ 0x285 0x10 | a b c e d ]    the block: its patterns, its values
//	SizePtr  [ 0 3 ]                       in units of 16 bytes: 2·8 + 5·4 = 36 bytes take 3
//	BlockPtr [ 0 1 ]                       panel p owns blocks BlockPtr[p] to BlockPtr[p+1]
//
// The arrays, all little-endian and without gaps, for P panels and Q blocks of TK active columns:
//
//	BlockPtr  4·(P+1) bytes   u32, ascending, BlockPtr[0] = 0, BlockPtr[P] = Q
//	Active    4·TK·Q bytes    u32; active column i of block q at TK·q+i; strictly ascending within a
//	                          panel but for the padding of its last block
//	SizePtr   4·(Q+1) bytes   u32, ascending; block q is bytes 16·SizePtr[q] to 16·SizePtr[q+1] of Packed
//	Packed    16·SizePtr[Q]   block after block: TK/4 patterns (u64), then the values (T) of brick after
//	                          brick, then zeros up to a multiple of 16 bytes
//	RowIdx    4·Rows bytes    u32; the matrix's row in each place: row i of panel p is in place 16·p + i. Empty if
//	                          rows are in the matrix's order
//	Parts     16·parts bytes  the work list; four u32 each: panel, first block, last block + 1, slot
//	Splits    16·splits bytes panels of several parts; the same fields, of the whole panel
//
// Rows of a panel that the matrix does not have are never stored, and every active column holds an
// entry. A stored zero has a bit in its pattern like any other entry, so that decoding returns
// exactly the matrix that was encoded.
//
// With Options.Order, rows that share columns are put into one panel (order.go, pairs.go). The paper leaves this to
// those who number the rows. Then fewer rows of B are fetched, and bricks are fuller. It is done if it saves a
// sixteenth of the active columns or more. Columns keep their numbers.
//
// Parts lists a kernel's work items. A panel of at most PartBlocks blocks is one part (slot NoSlot). A heavier panel is
// divided into several parts of about equal length (split-K). Their partial sums go to slots of a workspace: those of
// part i to the panel's first slot + i. A second step adds them in that order, so that no sum depends on timing (the
// paper adds them with atomics). Parts of more than 2·TeamBlocks blocks, which are for teams of four workers (warps),
// come first, then those of more than TeamBlocks, for teams of two, then the others; within each of these three they
// are in the order of the matrix, because neighbours share columns (§5).
package hrpb
