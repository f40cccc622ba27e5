// What bench hands to the program peers, and what it makes of its answers.

package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWriteCSR(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a.mtx"), filepath.Join(dir, "a.csr")
	if err := os.WriteFile(from, []byte("%%MatrixMarket matrix coordinate pattern general\n3 5 3\n1 2\n3 1\n3 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeCSR(to, from); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Size [3]int64
		Rest [4 + 3]int32
	}
	if err := binary.Read(bytes.NewReader(data), binary.LittleEndian, &got); err != nil || len(data) != binary.Size(got) {
		t.Fatalf("%d bytes: %v", len(data), err)
	}
	if got.Size != [3]int64{3, 5, 3} || !slices.Equal(got.Rest[:], []int32{0, 1, 1, 3, 1, 0, 4}) {
		t.Errorf("%v", got)
	}
}

// TestPeers: a time for each line, and an error that says what failed.
func TestPeers(t *testing.T) {
	program := filepath.Join(t.TempDir(), "peers")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n[ $1 = csr ] || { echo broken >&2; exit 1; }\necho '{\"us\":1.5}'; echo '{\"us\":2}'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := &runner{peers: program}
	if times, err := r.peerTimes("csr"); err != nil || !slices.Equal(times, []float64{1.5, 2}) {
		t.Errorf("%v, %v", times, err)
	}
	if _, err := r.peerTimes("gemm"); err == nil || !bytes.Contains([]byte(err.Error()), []byte("broken")) {
		t.Errorf("%v", err)
	}
	if times, err := (&runner{}).peerTimes("gemm"); len(times) != 0 || err != nil {
		t.Errorf("without the program: %v, %v", times, err)
	}
}
