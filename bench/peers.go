// The program peers (bench/peers/peers.cu), which measures the vendors' libraries.

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spmmrun/spmm/formats/load"
)

// peerTimes runs the program and returns its times in microseconds, none if there is no program.
func (r *runner) peerTimes(args ...any) ([]float64, error) {
	if r.peers == "" {
		return nil, nil
	}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = fmt.Sprint(a)
	}
	out, err := exec.Command(r.peers, words...).Output()
	if err != nil {
		return nil, fmt.Errorf("peers %s: %w", strings.Join(words, " "), withStderr(err))
	}
	var times []float64
	for lines := json.NewDecoder(bytes.NewReader(out)); lines.More(); {
		var res struct{ US float64 }
		if err := lines.Decode(&res); err != nil {
			return nil, fmt.Errorf("peers %s: %w", words[0], err)
		}
		times = append(times, res.US)
	}
	return times, nil
}

func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}

// cusparse returns cuSPARSE's times for files, 0 where there is no program to measure it.
func (r *runner) cusparse(files []string, n int, precision string) ([]float64, error) {
	times := make([]float64, len(files))
	if r.peers == "" {
		return times, nil
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	args := []any{"csr", n, precision}
	for i, file := range files {
		raw := filepath.Join(dir, strconv.Itoa(i))
		if err := writeCSR(raw, file); err != nil {
			return nil, err
		}
		args = append(args, raw)
	}
	times, err = r.peerTimes(args...)
	if err == nil && len(times) != len(files) {
		err = fmt.Errorf("peers csr: %d times for %d files", len(times), len(files))
	}
	return times, err
}

// writeCSR writes the pattern of a matrix file as peers reads it.
func writeCSR(to, file string) error {
	a, err := load.File(context.Background(), file, load.Options{})
	if err != nil {
		return err
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer f.Close()
	starts := make([]int32, len(a.RowPtr))
	for i, x := range a.RowPtr {
		starts[i] = int32(x) // fewer than 2³¹: the files are small
	}
	w := bufio.NewWriter(f)
	for _, x := range []any{[]int64{int64(a.Rows), int64(a.Cols), int64(len(a.ColIdx))}, starts, a.ColIdx} {
		if err := binary.Write(w, binary.LittleEndian, x); err != nil {
			return err
		}
	}
	return w.Flush()
}
