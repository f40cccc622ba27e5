// Init of builds that cannot open a library.

//go:build !cgo || !linux

package mpi

import (
	"fmt"

	"github.com/spmmrun/spmm/comm"
)

// Init says that this build has no MPI.
func Init() (comm.Comm, string, error) {
	return nil, "", fmt.Errorf("comm/mpi: %w: this program was built without it; build it on Linux with a C compiler and CGO_ENABLED=1", comm.ErrUnavailable)
}
