// The contract, in every build: without a driver, or without cgo, it is the errors that are checked.

package vulkan_test

import (
	"context"
	"os"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
	_ "github.com/spmmrun/spmm/backend/vulkan"
)

// TestMain keeps the user's cache directory out of the tests, and lets validate_test.go have the last word.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "vulkan")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", dir)
	code := m.Run()
	if code == 0 {
		code = afterTests()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// afterTests returns the exit code of tests that passed.
var afterTests = func() int { return 0 }

// runs is the driver without the devices that only compile.
type runs struct{ backend.Driver }

func (d runs) Devices(ctx context.Context) ([]backend.Info, error) {
	infos, err := d.Driver.Devices(ctx)
	for i, in := range infos {
		if in.Memory == 0 {
			return infos[:i], err
		}
	}
	return infos, err
}

func driver(t testing.TB) backend.Driver {
	t.Helper()
	return backendtest.Find(t, "vulkan")
}

// compilesOnly reports whether the first device has no memory: it is a compiler for a GPU that is not there.
func compilesOnly(t testing.TB) bool {
	infos, _ := driver(t).Devices(t.Context())
	return len(infos) > 0 && infos[0].Memory == 0
}

func TestContract(t *testing.T) {
	if compilesOnly(t) {
		return // TestCompileOnly is for these
	}
	backendtest.Run(t, runs{driver(t)})
}
