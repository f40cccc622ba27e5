// Package shaders lists the kernels. Adding one is a folder below this package and a line here.
package shaders

import (
	"github.com/spmmrun/spmm/shaders/csr"
	"github.com/spmmrun/spmm/shaders/dense"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Formats returns the kernels that multiply from a sparse format.
func Formats() []*spec.Kernel {
	return []*spec.Kernel{csr.Kernel}
}

// Dense copies, transposes and converts dense matrices on a device.
var Dense = dense.Kernel
