//go:build !js

package compiled

import (
	"embed"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

//go:embed *.tar.zst
var archives embed.FS

// Read returns the code that a kernel's table calls blob, such as "cuda_f16.ptx". It decodes all code of the same source, and
// keeps nothing.
func Read(kernel, blob string) ([]byte, error) {
	file, err := archives.ReadFile(kernel + Suffix)
	if err != nil {
		return nil, err
	}
	a, err := Open(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kernel+Suffix, err)
	}
	return a.Read(blob)
}

func decode(frame []byte) ([]byte, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(frame, nil)
}
