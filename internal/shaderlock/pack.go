// How an archive of package compiled is written and read whole.

package shaderlock

import (
	"archive/tar"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/spmmrun/spmm/shaders/compiled"
)

// pack makes the archive of the blobs of a kernel's units: a frame for each source, and in it the blobs in the order of
// their names, which brings those of one kind together. The same blobs give the same archive everywhere.
func pack(us []*Unit, blobs map[string][]byte) ([]byte, error) {
	us = slices.Clone(us)
	us = slices.DeleteFunc(us, func(u *Unit) bool { return blobs[u.Blob] == nil })
	slices.SortFunc(us, func(a, b *Unit) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source),
			cmp.Compare(a.Blob, b.Blob))
	})
	var index []compiled.Frame
	var frames []byte
	for len(us) > 0 {
		n := slices.IndexFunc(us, func(u *Unit) bool { return u.Source != us[0].Source })
		if n < 0 {
			n = len(us)
		}
		text, files, err := tarOf(us[:n], blobs, n == len(us))
		if err != nil {
			return nil, err
		}
		frame, err := compress(text)
		if err != nil {
			return nil, err
		}
		index, frames, us = append(index, compiled.Frame{Length: len(frame), Files: files}), append(frames, frame...), us[n:]
	}
	text, err := json.Marshal(index)
	if err != nil {
		return nil, err
	}
	b := binary.LittleEndian.AppendUint32(nil, compiled.IndexMagic)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	return append(append(b, text...), frames...), nil
}

// tarOf returns a part of a tar, and where in it the files begin and end.
func tarOf(us []*Unit, blobs map[string][]byte, last bool) ([]byte, map[string][2]int, error) {
	var b bytes.Buffer
	w, files := tar.NewWriter(&b), map[string][2]int{}
	for _, u := range us {
		blob := blobs[u.Blob]
		if err := w.WriteHeader(&tar.Header{Name: u.Blob, Mode: 0o644, Size: int64(len(blob)),
			Format: tar.FormatUSTAR}); err != nil {
			return nil, nil, err
		}
		files[u.Blob] = [2]int{b.Len(), b.Len() + len(blob)}
		if _, err := w.Write(blob); err != nil {
			return nil, nil, err
		}
	}
	end := w.Flush
	if last {
		end = w.Close
	}
	err := end()
	return b.Bytes(), files, err
}

// compress calls the program zstd, whose highest level makes a quarter less of it than package zstd's.
func compress(text []byte) ([]byte, error) {
	c := exec.Command("zstd", "--ultra", "-22", "--quiet", "--check", fmt.Sprintf("--stream-size=%d", len(text)),
		"--stdout")
	c.Stdin, c.Stderr = bytes.NewReader(text), os.Stderr
	frame, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("zstd (apt-get install zstd): %w", err)
	}
	return frame, nil
}

func unpack(archive []byte) (map[string][]byte, error) {
	a, err := compiled.Open(archive)
	if err != nil {
		return nil, err
	}
	return a.All()
}
