// Reading A and B.

package main

import (
	"context"
	"os"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/mtx"
	"github.com/spmmrun/spmm/formats/npy"
)

func loadMatrix(ctx context.Context, name string) (formats.Sparse, error) {
	if len(name) > 4 && name[:4] == "gen:" {
		return gen.CSR(name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return mtx.Read(f, mtx.Options{Name: name})
}

// loadDense reads a .npy file.
func loadDense(ctx context.Context, name string) (*formats.Dense[float32], error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return npy.Read(f, npy.Options{Name: name})
}
