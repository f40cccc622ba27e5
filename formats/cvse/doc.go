// Package cvse is Sparse Vector Compression, the format of SSpMM (Xue et al., "SSpMM: Efficiently
// Scalable SpMM Kernels Across Multiple Generations of Tensor Cores", TPDS 2025, §V-A).
//
// The rows of a matrix are cut into panels of V consecutive rows; the last panel may be shorter. In
// each panel the V×1 column vectors that hold at least one stored entry are kept, the others are
// dropped. A kept vector is V values next to each other, so that a panel's kept vectors are a small
// dense matrix that a matrix unit can read, and one column number, which says what row of B they
// multiply.
//
// A 5×6 matrix with V = 2 and Align = 2; dots are entries that are not stored:
//
//	       col 0 1 2 3 4 5
//	panel 0    a . b . . .     vectors of columns 0, 2, 5: (a,-) (b,c) (-,d), then padding
//	           . . c . . d
//	panel 1    . . . . . .     none
//	           . . . . . .
//	panel 2    . e . . f .     vectors of columns 1, 4: (e,-) (f,-); its second row does not exist
//
//	VecPtr  [ 0        4  4    6 ]            panel p owns vectors VecPtr[p] to VecPtr[p+1]
//	ColInd  [ 0  2  5  5       1  4 ]         padding repeats the panel's last column
//	Values  [ a0 bc 0d 00      e0 f0 ]        V values a vector, top row first
//	Mask    bits 10 11 01 00   10 10          bit p·V+r: row r of vector p is a stored entry
//	Order   [ 0  2  1 ]                       panels, the most vectors first
//
// The arrays as a kernel reads them, all little-endian and without gaps, for P panels and Q vectors
// (padding included):
//
//	VecPtr  4·(P+1) bytes        u32, ascending, multiples of Align, VecPtr[0] = 0, VecPtr[P] = Q
//	ColInd  4·Q bytes            u32, strictly ascending within a panel but for the padding
//	Values  sizeof(T)·V·Q bytes  value of row r of vector p at p·V+r; 0 where Mask has no bit
//	Mask    4·⌈V·Q/32⌉ bytes     u32 words; bit i of the stream is bit i mod 32 of word i/32
//	Order   4·P bytes            u32, a permutation of the panels, by falling number of vectors,
//	                             panels with equally many in ascending order
//
// A zero inside a vector that the matrix does not store and a zero that it does look the same in Values; Mask tells
// them apart. Kernels use it if B is not finite, and Decode to return exactly the matrix that was encoded.
//
// Each panel is padded to a multiple of Align vectors, so that a kernel can load whole tiles. A padding vector has the
// values 0, no bits in Mask, and a column that the panel has anyway.
package cvse
