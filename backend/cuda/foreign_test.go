// Contexts, streams and memory of others, on the machine's GPU.

//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"testing"

	"github.com/spmmrun/spmm/backend/backendtest"
	"github.com/spmmrun/spmm/backend/cuda/internal/foreigntest"
)

func TestForeign(t *testing.T) {
	if d := driver(t); backendtest.Require(t, d) != nil {
		foreigntest.Run(t, d)
	}
}
