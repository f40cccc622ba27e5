// Telling file types apart.

package load

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/spmmrun/spmm/formats/safetensors"
)

type kind uint8

const (
	kindMTX kind = iota
	kindSMTX
	kindNPY
	kindNPZ
	kindSafetensors
)

const zipMagic = "PK\x03\x04"

// starts tells types by their first bytes; those without a kind are known but not read.
var starts = []struct {
	magic string
	kind  kind
	not   string // what it is instead
}{
	{magic: "%%matrixmarket", kind: kindMTX},
	{magic: "\x93numpy", kind: kindNPY},
	{magic: strings.ToLower(zipMagic), kind: kindNPZ},
	{magic: "pk\x05\x06", kind: kindNPZ}, // an empty archive
	{magic: "bzh", not: "compressed by bzip2"},
	{magic: "\xfd7zxz", not: "compressed by xz"},
	{magic: "\x28\xb5\x2f\xfd", not: "compressed by zstd"},
	{magic: "\x89hdf", not: "an HDF5 file"},
	{magic: "matlab 5.0", not: "a MATLAB file"},
}

const types = "Matrix Market .mtx, DLMC .smtx, SciPy .npz, NumPy .npy or .safetensors, plain or .gz"

// sniff tells the type of a file from its first bytes, else from its name.
func sniff(head []byte, name string) (kind, error) {
	low := asciiLower(head)
	for _, s := range starts {
		if bytes.HasPrefix(low, []byte(s.magic)) {
			if s.not != "" {
				return 0, fmt.Errorf("is %s, which is not supported (%s)", s.not, types)
			}
			return s.kind, nil
		}
	}
	if len(head) > 262 && string(head[257:262]) == "ustar" {
		return 0, errors.New("is a tar archive: unpack it and give the matrix file in it")
	}
	if startsAsSafetensors(head) {
		return kindSafetensors, nil
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".gz")
	for end, k := range map[string]kind{".mtx": kindMTX, ".smtx": kindSMTX, ".npy": kindNPY, ".npz": kindNPZ,
		".safetensors": kindSafetensors} {
		if strings.HasSuffix(name, end) {
			return k, nil
		}
	}
	if startsWithSizes(head) {
		return kindSMTX, nil
	}
	return 0, fmt.Errorf("unknown file type (%s)", types)
}

func asciiLower(b []byte) []byte {
	out := bytes.Clone(b)
	for i, c := range out {
		if 'A' <= c && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}

// startsAsSafetensors reports whether a JSON object of a length that a header may have follows 8 bytes
// with that length.
func startsAsSafetensors(head []byte) bool {
	return len(head) > 8 && head[8] == '{' && binary.LittleEndian.Uint64(head) <= safetensors.MaxHeader
}

// startsWithSizes reports whether the first line is three integers, as in a .smtx file.
func startsWithSizes(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte{'\n'})
	words := bytes.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' || r == '\r' })
	for _, w := range words {
		if len(bytes.Trim(w, "0123456789")) > 0 {
			return false
		}
	}
	return len(words) == 3
}
