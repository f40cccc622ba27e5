// The contract of backends on whatever NVIDIA GPU there is.

package cuda_test

import (
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
	_ "github.com/spmmrun/spmm/backend/cuda"
)

func driver(t testing.TB) backend.Driver {
	t.Helper()
	return backendtest.Find(t, "cuda")
}

// Every device present keeps the contract; where there is none, or the backend is not built in, the
// error is ErrUnavailable and says why. (internal/faketest holds the contract without a device.)
func TestContract(t *testing.T) { backendtest.Run(t, driver(t)) }
