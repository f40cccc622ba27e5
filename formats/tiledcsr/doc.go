// Package tiledcsr is Tiled Compressed Sparse Row, a format for matrices without structure (Xue et al.,
// "Releasing the Potential of Tensor Core for Unstructured SpMM using Tiled-CSR Format", §III).
//
// Rows are shuffled into groups of Height (the instruction's M: 8) that share many columns. In each group the columns
// without any stored entry are removed, and every 16 of those that remain (the instruction's K) make a tile of
// Height×16 values. Zeros inside a tile are stored; an index tells them from entries. An array says which row of the
// matrix each row of a group is, so that kernels store the rows of the product in their places.
//
// A 5×6 matrix with Height = 2; dots are entries that are not stored. Rows 0 and 3 are alike, and so
// are 1 and 4:
//
//	    col 0 1 2 3 4 5        group 0 = rows 1 and 4    group 1 = rows 0 and 3    group 2 = row 2
//	row 0   a . b . . .        columns 1 3 4, one tile   columns 0 2, one tile     no tiles
//	    1   . c . . d .           c . d  0 0 … 0            a b  0 0 … 0
//	    2   . . . . . .           e f g  0 0 … 0            h .  0 0 … 0
//	    3   h . . . . .
//	    4   . e . f g .
//
//	RowIdx  [ 1 4   0 3   2 NoRow ]           row r of group g is row RowIdx[g·Height+r] of the matrix
//	TilePtr [ 0     1     2       2 ]         group g owns tiles TilePtr[g] to TilePtr[g+1]
//	ColIdx  [ 1 3 4 4 4 …  0 2 2 2 2 … ]      16 a tile; padding repeats the group's last column
//	Values  [ ce 0f dg 00 …  ah b0 00 … ]     16·Height a tile, column after column, top row first
//	Mask    bits 11 01 11 00 …  11 10 00 …    one for each value, in their order: it is a stored entry
//
// The arrays as a kernel reads them, all little-endian and without gaps, for G groups and Q tiles,
// Height = H:
//
//	RowIdx  4·H·G bytes           u32, the numbers of all rows, each once, ascending within a group;
//	                              NoRow behind them in a group that is not full
//	TilePtr 4·(G+1) bytes         u32, ascending, TilePtr[0] = 0, TilePtr[G] = Q; groups come by
//	                              falling number of tiles, so that a device starts the long ones first
//	ColIdx  64·Q bytes            u32, strictly ascending within a group but for the padding
//	Values  sizeof(T)·16·H·Q      value of row r in column c of tile t at (16·t+c)·H+r; 0 where Mask
//	        bytes                 has no bit
//	Mask    2·H·Q bytes           u32 words; bit i of the stream is bit i mod 32 of word i/32
//
// The paper's Zero Index lists, for each row of a tile, the columns whose zeros could not be removed.
// Mask is its complement at a bit for each value: of a fixed size, and found without a search.
// Kernels use it where B is not finite, and Decode to return exactly the matrix that was encoded: a
// stored zero is an entry.
//
// # Row shuffle
//
// Rows are sorted by falling Σ(col+1)², which brings rows of like length and place together. Then, from the front, the
// first row that is in no slot yet opens one (§III-B, Algorithm 1), and the rows behind it are looked at in order. A
// row joins the slot if it is similar to the slot's first row (their union is less than 1+Threshold times as long as
// one of them, Algorithm 2) or complements the slot (with it, the union of all rows stays within Complement columns, so
// that it fits a tile; Algorithm 3); else it goes to the bin. A slot closes when it is full or when the bin is. The
// paper then leaves an incomplete slot as it is. Here it is completed with the rows of the bin that are nearest to it:
// a group with all their columns never has more tiles than these rows would have in groups of their own. Rows that stay
// in the bin are looked at again for the next slot.
//
// A slot looks at no more than Bin+Height rows, so the work is linear in the entries. The sorted rows
// are cut into runs that are shuffled at the same time, on as many cores as there are; the
// result does not depend on how many.
package tiledcsr
