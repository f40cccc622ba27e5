// What an archive holds, to package compiled and to other programs.

package shaderlock_test

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/spmmrun/spmm/internal/shaderlock"
	"github.com/spmmrun/spmm/shaders/compiled"
)

// some are blobs of three sources, which zstd cannot make smaller.
func some() (us []*shaderlock.Unit, blobs map[string][]byte) {
	random := rand.NewChaCha8([32]byte{})
	blobs = map[string][]byte{}
	for i := range 9 {
		u := &shaderlock.Unit{Folder: "toy", Source: fmt.Sprintf("toy/%d.cu", i%3), Blob: fmt.Sprintf("cuda_%d.ptx", i)}
		us = append(us, u)
		blobs[u.Blob] = make([]byte, 200*i)
		random.Read(blobs[u.Blob])
	}
	return us, blobs
}

func archiveOf(t *testing.T, us []*shaderlock.Unit, blobs map[string][]byte) []byte {
	t.Helper()
	files, err := shaderlock.Kernel{Blobs: blobs}.Files(us)
	if err != nil {
		t.Fatal(err)
	}
	return files[archive]
}

func equal(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }

// An archive gives back what went in: all at once, one by one, and to any program that knows tar and zstd.
func TestArchive(t *testing.T) {
	us, want := some()
	file := archiveOf(t, us, want)
	a, err := compiled.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := a.All(); err != nil || !equal(got, want) {
		t.Errorf("holds %q, want %q, error %v", got, want, err)
	}
	for name, data := range want {
		if got, err := a.Read(name); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s is %q, want %q, error %v", name, got, data, err)
		}
	}
	if _, err := a.Read("none.ptx"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}

	d, err := zstd.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	got := map[string][]byte{}
	for r := tar.NewReader(d); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if got[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	if !equal(got, want) {
		t.Errorf("tar and zstd find %q, want %q", got, want)
	}
}

// The same blobs give the same archive, and a change of one source's leaves what others' blobs became.
func TestArchiveIsStable(t *testing.T) {
	us, blobs := some()
	first := archiveOf(t, us, blobs)
	slices.Reverse(us)
	if !bytes.Equal(archiveOf(t, us, blobs), first) {
		t.Error("another order of units gives another archive")
	}
	blobs["cuda_0.ptx"] = []byte("other") // in the first frame
	other := archiveOf(t, us, blobs)
	if same := len(first) / 2; bytes.Equal(other, first) ||
		!bytes.Equal(other[len(other)-same:], first[len(first)-same:]) {
		t.Error("other frames changed")
	}
}

// A damaged archive is an error, and nothing panics where the index is damaged.
func TestArchiveDamaged(t *testing.T) {
	us, blobs := some()
	whole := archiveOf(t, us, blobs)
	read := func(file []byte) (map[string][]byte, error) {
		a, err := compiled.Open(file)
		if err != nil {
			return nil, err
		}
		return a.All()
	}
	for n := range len(whole) {
		if _, err := read(whole[:n]); err == nil {
			t.Errorf("the first %d bytes of %d are read", n, len(whole))
		}
	}
	frames := 8 + int(binary.LittleEndian.Uint32(whole[4:])) // begin here
	for at := range whole {
		file := slices.Clone(whole)
		file[at] ^= 1
		if got, err := read(file); err == nil && at >= frames && !equal(got, blobs) {
			t.Errorf("what is read differs where byte %d does", at)
		}
	}
}
