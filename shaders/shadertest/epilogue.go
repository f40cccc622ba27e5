// Multiplications with an epilogue.

package shadertest

import (
	"github.com/spmmrun/spmm/shaders/spec"
)

// Epilogues returns cases like q with each kind of bias and each activation: of integers where all is exact, else of any
// numbers. Some have an alpha and a beta, and padding behind C's rows.
func Epilogues(q Case) []Case {
	var cases []Case
	for _, e := range []spec.Epilogue{
		{Bias: spec.RowBias}, {Bias: spec.ColBias}, {Activation: spec.ReLU}, {Activation: spec.GELU}, {Activation: spec.SiLU},
		{Bias: spec.RowBias, BiasShift: 3, Activation: spec.ReLU}, {Bias: spec.ColBias, BiasShift: 3, Activation: spec.SiLU},
		{Bias: spec.ColBias, Activation: spec.GELU},
	} {
		c := q
		c.Epilogue = e
		c.Real = e.Activation > spec.ReLU
		c.Name += " " + e.String()
		cases = append(cases, c)
		c.Name += ", beta"
		c.Alpha, c.Beta, c.LDC = 0.5, -2, q.N+3
		cases = append(cases, c)
	}
	return cases
}
