// Package csr multiplies from plain compressed sparse rows, on any device.
package csr

import "github.com/spmmrun/spmm/shaders/spec"

// Kernel is the table of the CSR kernel.
var Kernel = &spec.Kernel{
	Name: "csr",
	Args: []spec.Arg{
		{Name: "rowptr", Elem: "u32", ReadOnly: true},
		{Name: "colidx", Elem: "u32", ReadOnly: true},
		{Name: "values", Elem: "T", ReadOnly: true},
		{Name: "b", Elem: "T", ReadOnly: true},
		{Name: "c", Elem: "f32"},
	},
}
