package webgpu_test

import (
	"testing"

	"github.com/spmmrun/spmm/backend/backendtest"
	"github.com/spmmrun/spmm/portable/webgpu"
)

func TestDriver(t *testing.T) { backendtest.Run(t, webgpu.Driver{}) }
