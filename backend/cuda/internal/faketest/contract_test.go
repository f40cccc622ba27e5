// The contract of backends on the fake driver.

//go:build cuda && cgo && linux && (amd64 || arm64)

package faketest

import (
	"testing"

	"github.com/spmmrun/spmm/backend/backendtest"
)

// The contract that the driver keeps on a real device, it keeps on the stand-in.
func TestContract(t *testing.T) {
	t.Setenv("SPMM_REQUIRE", "cuda")
	backendtest.Run(t, cuda(t))
}
