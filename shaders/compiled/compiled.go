// Package compiled holds what tools/shadergen makes of the kernels' tables and sources: for each kernel a folder of its
// name with the declarations that its sources include (params.h, params.glsl) and the code they are compiled to, PTX and
// SPIR-V, each file compressed by gzip. lock.json records what each was made from; a test of package shaders finds what is
// stale.
//
// Builds for js embed none of the code: a browser's devices take WGSL, which is composed from source.
package compiled

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
)

// Suffix is what a compressed file's name ends in.
const Suffix = ".gz"

// Read returns the code that a kernel's table calls blob, such as "cuda_f16.ptx".
func Read(kernel, blob string) ([]byte, error) {
	b, err := files.ReadFile(path.Join(kernel, blob) + Suffix)
	if err != nil {
		return nil, err
	}
	return Unpack(b)
}

// Unpack returns what a compressed file holds.
func Unpack(file []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("not compressed by gzip: %w", err)
	}
	return io.ReadAll(r)
}
