// Package toolkit replaces CUDA's toolkit when the backend is built: a header of the driver API with what
// gorgonia.org/cu and package driver use, and an empty library for -lcuda. See package driver for what the calls lead
// to.
package toolkit

import _ "embed"

// Header is cuda.h.
//
//go:embed cuda.h
var Header []byte

// Library is libcuda.a, an archive without members.
//
//go:embed libcuda.a
var Library []byte
