// Multiplications with an epilogue.

package shadertest

import "github.com/spmmrun/spmm/shaders/spec"

// Epilogues returns cases like each of qs with each kind of bias and each activation: of integers where all is exact,
// else of any numbers. Some have an alpha and a beta, and padding behind C's rows.
func Epilogues(qs ...Case) []Case {
	var cases []Case
	for _, c := range qs {
		for i, e := range []spec.Epilogue{
			{Bias: spec.RowBias}, {Bias: spec.ColBias}, {Activation: spec.ReLU}, {Activation: spec.GELU},
			{Activation: spec.SiLU},
			{Bias: spec.RowBias, BiasShift: 3, Activation: spec.ReLU}, {Bias: spec.ColBias, BiasShift: 3, Activation: spec.SiLU},
			{Bias: spec.ColBias, Activation: spec.GELU},
		} {
			q := c
			q.Epilogue, q.Real = e, e.Activation > spec.ReLU
			q.Name += " " + e.String()
			if i%2 == 1 {
				q.Name += ", beta"
				q.Alpha, q.Beta, q.LDC = 0.5, -2, q.N+3
			}
			cases = append(cases, q)
		}
	}
	return cases
}
