//go:build !js && !(cgo && amd64 && (linux || (windows && webgpu)))

// What builds without WebGPU have: a driver that says so.

package webgpu

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm/backend"
)

var errNotBuilt = fmt.Errorf("webgpu: %w: this program was built without it; build on linux/amd64 with a C compiler and CGO_ENABLED=1 (on windows/amd64 with the tag webgpu, too), or for js/wasm, for browsers", backend.ErrUnavailable)

// Devices says how to build WebGPU in.
func (Driver) Devices(context.Context) ([]backend.Info, error) { return nil, errNotBuilt }

// Open says how to build WebGPU in.
func (Driver) Open(context.Context, backend.Info) (backend.Device, error) { return nil, errNotBuilt }
