// Package gorgonia brings tensors of gorgonia.org/tensor here and back.
//
// # Dense tensors
//
// A *tensor.Dense of two axes is laid out as formats.Dense is, in rows or columns with a stride, so it is not copied:
// FromDense and ToDense share the elements. That holds for slices and for transposes that tensor.Dense.T leaves in
// place. A vector is a matrix with one column.
//
//	b, err := gorgonia.FromDense[float32](t)
//	timing, err := spmm.Multiply(ctx, plan, 1, b, 0, c)
//
// # Sparse tensors
//
// A *tensor.CS is compressed by rows or columns as formats.CSR and formats.CSC are. FromCS, ToCSR and ToCSC share the
// values. Offsets and indices are copied, because a tensor has them as int, and gives them out as copies only.
//
// The module is not part of the library's: gorgonia.org/tensor needs Apache Arrow and Protocol Buffers.
package gorgonia
