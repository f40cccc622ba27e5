// Package nm is balanced N:M sparsity, the format of nmSPARSE (Lin et al., "Efficient GPU Kernels for
// N:M-Sparse Weights in Deep Learning", MLSys 2023, §3.1): of every M neighbouring units along the
// columns of A, at most N hold entries.
//
// A unit is V rows by W columns (§2.1, Figure 3):
//
//	element-wise  EW  V = 1, W = 1
//	vector-wise   VW  V > 1, W = 1
//	block-wise    BW  W > 1
//
// The rows are cut into panels of V, the columns into groups of M·W; the last of each may be shorter. Each group of a
// panel keeps exactly N units, its slots, in ascending order: those with entries and, if these are fewer than N, the
// first of those without. A kept unit is V·W values and its place in the group. So every panel has the same number of
// slots, and a slot's number determines its group.
//
// A 5×7 matrix of 1:2 with V = 2, W = 1; dots are entries that are not stored:
//
//	       group  0     1     2     3
//	       col   0 1   2 3   4 5   6
//	panel 0      a .   . b   . .   c
//	             d .   . .   . .   e
//	panel 1      . f   . .   g .   .       group 1 of panel 1 keeps its first vector, without entries
//	             . .   . .   h .   .       (and so on)
//	panel 2      . .   . i   . j   .
//
//	Values  [ ad b0 00 ce   f0 00 gh 00   00 i0 j0 00 ]   V values a column, top row first
//	Index   bits 0 1 0 0    1 0 0 0       0 1 1 0         ⌈log2 M⌉ a slot; a panel starts a word
//	Mask    11 10 00 11     10 00 11 00   00 10 10 00     a bit a value: it is a stored entry
//
// The arrays as a kernel reads them, all little-endian, for P = ⌈Rows/V⌉ panels, G = ⌈Cols/(M·W)⌉
// groups, S = G·N slots and L = S·W condensed columns of a panel, and q = ⌈log2 M⌉:
//
//	Values  sizeof(T)·P·L·V bytes   value of row r of condensed column k of panel p at (p·L + k)·V + r;
//	                                0 where Mask has no bit
//	Index   4·P·⌈S·q/32⌉ bytes      panel p's words follow each other; the place of its slot s is the q
//	                                bits from bit s·q of them on, least significant first, across words
//	Mask    4·P·⌈L·V/32⌉ bytes      panel p's words follow each other; bit k·V + r of them is set if that
//	                                value is a stored entry
//
// Condensed column k is column w = k mod W of slot s = k / W, which belongs to group g = s / N: its
// column in the matrix is (g·M + place)·W + w. In the last group that may lie past the matrix, in a
// column without entries.
//
// A zero that the matrix stores and one that it does not look the same in Values; Mask tells them apart. Kernels use it
// if B is not finite, and Decode to return exactly the matrix that was encoded.
package nm
