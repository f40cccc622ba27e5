// Copying data to buffers.

package device

import (
	"cmp"
	"context"

	"github.com/spmmrun/spmm/backend"
)

// Chunk is how many bytes a copy moves at a time. So a copy that rearranges data needs little memory, and a
// cancelled context is noticed.
const Chunk = 8 << 20

// WriteChunks writes data to the start of a buffer, a chunk at a time.
func WriteChunks(ctx context.Context, b backend.Buffer, data []byte) error {
	for off := 0; off < len(data); off += Chunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.Write(ctx, int64(off), data[off:min(off+Chunk, len(data))]); err != nil {
			return err
		}
	}
	return nil
}

// NewWords returns a buffer that holds words. what names it in errors.
func (d *Device) NewWords(ctx context.Context, words []uint32, what string) (backend.Buffer, error) {
	b, err := d.NewBuffer(int64(4*len(words)), what)
	if err != nil {
		return nil, err
	}
	if err := WriteChunks(ctx, b, backend.Bytes(words)); err != nil {
		return nil, cmp.Or(err, b.Close())
	}
	return b, nil
}

// Fill writes values that are harmless as numbers of any type, to measure with: both halves of each word are between 1
// and 2 as f16.
func Fill(ctx context.Context, b backend.Buffer, bytes int64) error {
	p := make([]byte, min(bytes, Chunk))
	x := uint32(1)
	for i := 0; i+1 < len(p); i += 2 {
		x = x*1664525 + 1013904223
		p[i], p[i+1] = byte(x>>16), 0x3c|byte(x>>30)
	}
	for off := int64(0); off < bytes; off += int64(len(p)) {
		if err := b.Write(ctx, off, p[:min(int64(len(p)), bytes-off)]); err != nil {
			return err
		}
	}
	return nil
}
