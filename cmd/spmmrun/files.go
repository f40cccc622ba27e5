// Reading A and B.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/load"
	"github.com/spmmrun/spmm/formats/npy"
	"github.com/spmmrun/spmm/internal/memory"
)

// openMatrix reads or generates A, showing how far it is. Numbers of files that are float64 stay so if prec is F64.
func openMatrix(ctx context.Context, name string, seed uint64, prec dtype.Type, p *progress) (formats.Encoded, error) {
	p.step("reading "+name, -1)
	var merged int64
	a, err := load.Open(ctx, name, load.Options{Seed: seed, Progress: p.at, Merged: &merged, Float64: prec == dtype.F64})
	if err == nil && merged > 0 {
		p.warn(mergedText(name, merged))
	}
	return a, err
}

func mergedText(name string, merged int64) string {
	return fmt.Sprintf("%s: %d duplicate entries were added to those at the same place", name, merged)
}

// byRows returns a matrix that is stored by columns as CSR, any other as it is.
func byRows(a formats.Encoded) formats.Encoded {
	if formats.ByColumns(a) {
		return a.Sparse()
	}
	return a
}

// float32CSR returns any matrix as CSR of float32.
func float32CSR(a formats.Encoded) *formats.CSR[float32] {
	return formats.Convert[float32](a.Sparse())
}

// open opens a file to be read. The error begins with the name, as that of a matrix does.
func open(name string) (*os.File, error) {
	f, err := os.Open(name)
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return nil, fmt.Errorf("%s: %w", name, pe.Err)
	}
	return f, err
}

// loadDense reads B from a .npy file.
func loadDense[S oracle.Number](ctx context.Context, name string) (*formats.Dense[S], error) {
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if i, err := f.Stat(); err == nil && i.IsDir() {
		return nil, fmt.Errorf("%s: is a directory", name)
	}
	o := npy.Options{Name: name}
	if free := memory.Available(); free > 0 {
		o.Limits.Bytes = formats.ReadingBytes(free)
	}
	return npy.ReadAs[S](reader{ctx, f}, o)
}

// reader reads until the context is done.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// checkEnding refuses names of files of other types. No name is right too.
func checkEnding(path, ending string) error {
	if path != "" && !strings.EqualFold(filepath.Ext(path), ending) {
		return fmt.Errorf("%s: want a file whose name ends in %s", path, ending)
	}
	return nil
}
