// Writing.

package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Write writes a file. The same File gives the same bytes. A tensor whose data are not as long as its
// shape says, or whose name is taken, is an error.
func Write(w io.Writer, f *File) error {
	tensors := slices.Clone(f.Tensors)
	slices.SortStableFunc(tensors, func(x, y Tensor) int { return cmp.Compare(y.Type.Size(), x.Type.Size()) })
	head, err := header(f.Metadata, tensors)
	if err != nil {
		return err
	}
	if _, err := w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...)); err != nil {
		return err
	}
	for _, t := range tensors {
		if _, err := w.Write(t.Data); err != nil {
			return err
		}
	}
	return nil
}

// header returns the JSON object, padded with spaces.
func header(metadata map[string]string, tensors []Tensor) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	names := map[string]bool{metadataKey: true}
	if len(metadata) > 0 {
		if err := member(&b, metadataKey, metadata); err != nil {
			return nil, err
		}
	}
	var at int64
	for _, t := range tensors {
		n, err := t.bytes()
		switch {
		case err != nil:
			return nil, err
		case n != int64(len(t.Data)):
			return nil, fmt.Errorf("tensor %q: %d bytes for shape %v of %s, want %d", t.Name, len(t.Data), t.Shape, t.Type, n)
		case names[t.Name]:
			return nil, fmt.Errorf("tensor %q: the name is taken", t.Name)
		}
		names[t.Name] = true
		err = member(&b, t.Name, map[string]any{
			"dtype": t.Type, "shape": append([]int64{}, t.Shape...), "data_offsets": []int64{at, at + n},
		})
		if err != nil {
			return nil, err
		}
		at += n
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	if b.Len() > MaxHeader {
		return nil, fmt.Errorf("a header of %d bytes, and %d are the most", b.Len(), MaxHeader)
	}
	return b.Bytes(), nil
}

// member adds a member to the JSON object that b has begun.
func member(b *bytes.Buffer, name string, value any) error {
	key, err := json.Marshal(name)
	if err != nil {
		return err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if b.Len() > 1 {
		b.WriteByte(',')
	}
	b.Write(key)
	b.WriteByte(':')
	b.Write(text)
	return nil
}
