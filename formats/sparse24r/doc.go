// Package sparse24r is 2:4 sparsity with a remainder: any sparse matrix as the sum of one that sparse matrix units take
// and one of few entries. It is the idea of SparTA (Zheng et al., OSDI 2022, §4) for one format: A is the sum of Pairs
// and a remainder.
//
// Of every four neighbouring columns of a row, a group, the first two entries belong to Pairs, which is a 2:4 matrix as
// package formats/nm has it (N = 2, M = 4, single entries), whatever it holds. A third and a fourth belong to the
// remainder: column vectors of 16 rows, as package formats/cvse has them with V = 16, each panel padded to a multiple
// of 16 vectors, so that it is whole operands of a matrix unit with 16×16 elements. At 90 % scattered zeros 0.4 % of
// the groups have a third entry, and a panel of 4096 columns has about 62 vectors.
//
// A 2×8 matrix; dots are entries that are not stored:
//
//	group   0         1
//	col     0 1 2 3   4 5 6 7
//	        a b . c   . d . .      Pairs: a b | d, remainder: c
//	        . . e .   f g h i      Pairs: e | f g, remainder: h i
//
// The arrays of Pairs are described in package formats/nm (Values, Index, Mask), those of the remainder in package
// formats/cvse (VecPtr, ColInd, Values, Mask, Order). Files hold them as values, index, mask, and restptr, restcols,
// restvalues, restmask, restorder; Pairs has the bytes of any 2:4 matrix of that size.
//
// Which entries are in the remainder follows from the matrix: an entry is there if and only if two entries of its group
// stand before it.
package sparse24r
