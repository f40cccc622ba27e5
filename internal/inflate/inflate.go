//go:build !js

// Package inflate decompresses gzip and deflate.
package inflate

import (
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
)

// Gzip reads a file of gzip.
func Gzip(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }

// Deflate reads an entry of a zip archive.
func Deflate(r io.Reader) io.ReadCloser { return flate.NewReader(r) }
