package vulkan_test

import (
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
	_ "github.com/spmmrun/spmm/backend/vulkan"
)

func driver(t testing.TB) backend.Driver {
	d, err := backend.Find("vulkan")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestContract(t *testing.T) { backendtest.Run(t, driver(t)) }
