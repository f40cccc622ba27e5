// Package rfx defines RFX-p, the sparse product that has the same bits on every device.
//
// Rows of A and columns of B are brought to fixed point, each with a scale of its own; their products
// are summed exactly, as integers; the sum is rounded once. For p one of 15, 23, 31 and 47,
//
//	E(v)   = least e with max|v| ≤ (2039/1024)·2^e  v a row of A's entries or a column of B, over all K
//	L(v)   = E(v) − (p−1)
//	q(x)   = RNE(x·2^−L)                            an integer, |q| ≤ 2039·2^(p−11)
//	C[i,j] = RNE32(2^(LA_i+LB_j) · Σ qA[i,k]·qB[k,j])  over the stored entries k of row i
//
// RNE rounds to the nearest integer, ties to even; RNE32 to the nearest float32, ties to even, with
// gradual underflow and overflow to an infinity. A result of zero is +0 always. Elements that are not
// finite are left out of E and q, and decide the outputs they are part of: see Class.
//
// With alpha and beta, C' = RNE32(alpha·C[i,j] + beta·C), rounded once more: see Scale. A bias is added to that and
// rounded a third time (Biased), and ReLU comes last.
//
// That is all there is to it: what digits the integers are cut into, in what order they are summed, in
// how many parts and by what unit is free, since integer sums do not depend on it. docs/reproducible.md
// proves this and bounds the error.
//
// The code here is meant to be read; the kernels of shaders/quantise and shaders/rfx do the same fast.
package rfx
