// Package inflate decompresses gzip and deflate: in a browser by the standard library, which archive/zip links anyway.
package inflate

import (
	"compress/flate"
	"compress/gzip"
	"io"
)

// Gzip reads a file of gzip.
func Gzip(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }

// Deflate reads an entry of a zip archive.
func Deflate(r io.Reader) io.ReadCloser { return flate.NewReader(r) }
