// Package safetensors reads and writes safetensors files, and sparse matrices in them.
//
// # The file
//
// A file is a header and the tensors' elements, little-endian and row-major:
//
//	8 bytes   u64: H, the length of the header, at most MaxHeader
//	H bytes   JSON, then spaces
//	          {"__metadata__": {"key": "text", …},
//	           "name": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}, …}
//	data      the elements; offsets count from here
//
// The tensors cover the data without gaps and without overlap. Write puts those of larger elements first and ends the
// header at a multiple of 8 bytes, so that every tensor is aligned in the file.
//
// A Reader goes through a file in one pass. It trusts no number in it: the header is checked whole
// before any tensor is read, and memory grows with what has been read.
//
// # Sparse matrices
//
// A file holds one sparse matrix as a formats.Container: metadata that say what it is, and one tensor of one
// dimension for each array that the format's package documents.
//
//	format    "csr", "cvse" or another format's name
//	version   of that format's arrays, from 1
//	dtype     type of the values: "f16", "bf16" or "f32"; of formats csr and dense also "f64", of quantised "s8" or
//	          "e4m3"
//	rows, cols, nnz
//
// and a number for each parameter of the format, such as v and align for cvse. All are decimal texts.
// For csr the tensors are
//
//	rowptr    I64, rows+1 offsets into the others
//	colidx    I32, nnz columns, strictly ascending within a row
//	values    F16, BF16 or F32, nnz
//
// Each format has a formats.Format, whose Open makes an encoded matrix of a Container. It validates the
// arrays, which decode to exactly the matrix that was encoded.
package safetensors
