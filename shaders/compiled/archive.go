// A kernel's archive: what it is, and how it is read.

package compiled

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// Suffix is what an archive's name ends in.
const Suffix = ".tar.zst"

// Archive is a tar, compressed by zstd in several frames. Each frame holds whole files, so that one file can be read without
// decoding all. A frame that decoders of zstd skip comes first and holds the index: a list of Frame, as JSON.
type Archive struct {
	frames []Frame
	packed [][]byte // each of them
}

// Frame says what one frame holds.
type Frame struct {
	Length int               `json:"length"` // compressed
	Files  map[string][2]int `json:"files"`  // where each file begins and ends in the decoded frame
}

// IndexMagic begins the index. Behind it are the length of the JSON and the JSON; magic and length have 32 bits, the lowest
// byte first.
const IndexMagic = 0x184D2A50

// Open reads an archive's index.
func Open(archive []byte) (Archive, error) {
	const header = 8
	var a Archive
	if len(archive) < header || binary.LittleEndian.Uint32(archive) != IndexMagic {
		return a, errors.New("the archive has no index")
	}
	n, rest := uint64(binary.LittleEndian.Uint32(archive[4:])), archive[header:]
	if n > uint64(len(rest)) {
		return a, errors.New("the archive's index is cut off")
	}
	index, rest := rest[:n], rest[n:]
	if err := json.Unmarshal(index, &a.frames); err != nil {
		return a, fmt.Errorf("the archive's index: %w", err)
	}
	for i, f := range a.frames {
		if f.Length < 0 || f.Length > len(rest) {
			return a, fmt.Errorf("frame %d of the archive has %d bytes of %d", i, len(rest), f.Length)
		}
		a.packed, rest = append(a.packed, rest[:f.Length]), rest[f.Length:]
	}
	if len(rest) > 0 {
		return a, fmt.Errorf("%d bytes follow the archive's last frame", len(rest))
	}
	return a, nil
}

// Read returns one file. It decodes the frame that holds it.
func (a Archive) Read(name string) ([]byte, error) {
	for i, f := range a.frames {
		if at, ok := f.Files[name]; ok {
			text, err := decode(a.packed[i])
			if err != nil {
				return nil, err
			}
			return cut(text, at)
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// All returns all files by their names.
func (a Archive) All() (map[string][]byte, error) {
	all := map[string][]byte{}
	for i, f := range a.frames {
		text, err := decode(a.packed[i])
		if err != nil {
			return nil, err
		}
		for name, at := range f.Files {
			if all[name], err = cut(text, at); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// cut returns a copy of a part of a decoded frame, which can then be freed.
func cut(text []byte, at [2]int) ([]byte, error) {
	if at[0] < 0 || at[0] > at[1] || at[1] > len(text) {
		return nil, fmt.Errorf("a file is at %d to %d of a frame of %d bytes", at[0], at[1], len(text))
	}
	return append([]byte(nil), text[at[0]:at[1]]...), nil
}
