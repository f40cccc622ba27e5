// Package gonum brings matrices of gonum.org/v1/gonum here and back.
//
// # Dense matrices of float32
//
// blas32.General and blas32.GeneralCols are laid out as formats.Dense is, row- and column-major with a stride, so they
// are not copied: FromGeneral and FromGeneralCols, and ToGeneral and ToGeneralCols on the way back, share the elements.
//
//	b := gonum.FromGeneral(general)
//	timing, err := spmm.Multiply(ctx, plan, 1, b, 0, c)
//
// # Matrices of float64
//
// Everything in gonum's package mat is float64, and the element types here are shorter (formats.Value). FromMat and
// SparseFromMat round each element once and return what that lost, a formats.Loss; ToMat and SparseToMat are exact.
//
// # Sparse matrices
//
// SparseFromMat takes the elements that are not 0 of any mat.Matrix as entries. View makes a sparse matrix a
// mat.Matrix, without copying, for gonum's functions to read.
package gonum
