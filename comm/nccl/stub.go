// New of builds that cannot open a library.

//go:build !cgo || !linux

package nccl

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/comm"
)

// Comm stands for the type that New returns in other builds.
type Comm struct{ comm.DeviceComm }

// New says that this build has no NCCL. It is collective.
func New(_ context.Context, c comm.Comm, _ backend.Device) (*Comm, error) {
	err := fmt.Errorf("comm/nccl: %w: this program was built without it; build it on Linux with a C compiler and CGO_ENABLED=1", comm.ErrUnavailable)
	return nil, comm.Agree(c, err, nil)
}
