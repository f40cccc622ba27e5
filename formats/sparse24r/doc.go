// Package sparse24r is 2:4 sparsity with a remainder. Any sparse matrix A is the sum of Pairs, which sparse matrix
// units multiply, and a remainder of few entries. The idea is that of SparTA (Zheng et al., OSDI 2022, §4).
//
// A group is four neighbouring columns of a row, from a multiple of four on. Its first two entries belong to Pairs, a
// 2:4 matrix of package formats/nm (N = 2, M = 4, single entries). A third and a fourth entry belong to the remainder,
// a matrix of package formats/cvse: column vectors of V = 16 rows, with each panel padded to a multiple of 16 vectors,
// so that it consists of whole operands of 16×16 elements. At 90 % scattered zeros 0.4 % of the groups have a third
// entry, and a panel of 4096 columns has about 62 vectors.
//
// A 2×8 matrix; dots are entries that are not stored:
//
//	group   0         1
//	col     0 1 2 3   4 5 6 7
//	        a b . c   . d . .      Pairs: a b | d, remainder: c
//	        . . e .   f g h i      Pairs: e | f g, remainder: h i
//
// The arrays of Pairs are described in package formats/nm (Values, Index, Mask), those of the remainder in package
// formats/cvse (VecPtr, ColInd, Values, Mask, Order). Files hold them as values, index, mask, and remainderptr,
// remaindercols, remaindervalues, remaindermask, remainderorder. Pairs takes as many bytes as any 2:4 matrix of its
// size.
//
// The matrix determines which entries are in the remainder: those with two entries of their group before them.
package sparse24r
