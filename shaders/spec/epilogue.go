// Epilogues: a bias and an activation, applied to alpha·A·B + beta·C when it is stored.

package spec

import (
	"fmt"
	"maps"
	"strings"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/include"
)

// Epilogue is applied to x = alpha·A·B + beta·C where C is stored: C = act(x + bias). The zero Epilogue stores x.
type Epilogue struct {
	Bias       Bias
	BiasShift  uint32 // element i of the bias is bias[i << BiasShift]
	Activation Activation
}

// Bias says which element of the bias is added to an output.
type Bias uint8

const (
	NoBias  Bias = iota
	RowBias      // bias[i] to all of row i of C
	ColBias      // bias[j] to all of column j of C
)

// Activation is a function of each output by itself. docs/bound.md defines them, and says how they are computed.
type Activation uint8

const (
	NoActivation Activation = iota
	ReLU
	GELU // its form with tanh
	SiLU
)

var activations = [...]string{NoActivation: "none", ReLU: "relu", GELU: "gelu", SiLU: "silu"}

// String returns the activation's name, "none" for the zero value.
func (a Activation) String() string {
	if !a.Known() {
		return fmt.Sprintf("activation %d", uint8(a))
	}
	return activations[a]
}

// Known reports whether the activation is one of those above.
func (a Activation) Known() bool { return int(a) < len(activations) }

// None reports whether the epilogue changes nothing.
func (e Epilogue) None() bool { return e.Bias == NoBias && e.Activation == NoActivation }

// Transposed returns the epilogue for Cᵀ in place of C: a bias for C's rows is one for the columns of Cᵀ.
func (e Epilogue) Transposed() Epilogue {
	switch e.Bias {
	case RowBias:
		e.Bias = ColBias
	case ColBias:
		e.Bias = RowBias
	}
	return e
}

// String returns a name such as "bias-row/relu", and "none" for an epilogue that changes nothing.
func (e Epilogue) String() string {
	bias := [...]string{NoBias: "", RowBias: "bias-row", ColBias: "bias-col"}[e.Bias]
	switch {
	case bias == "":
		return e.Activation.String()
	case e.Activation == NoActivation:
		return bias
	}
	return bias + "/" + e.Activation.String()
}

// StoreWord is the parameter `store`, which tells kernels how to store C: its type in bits 0 and 1, as package include
// numbers it; Bias in bits 2 and 3; Activation in bits 4 to 7; BiasShift in bits 8 to 11. It is 0 for an f32 C without
// an epilogue, so that the fast path of a store tests one word.
func (p Problem) StoreWord() uint32 {
	return include.Number(p.Out) | p.Epilogue.word()
}

// OrderWord is the part of the parameter `store` that tells kernels the orders of B and C: bit 12 is set if B is
// column-major, bit 13 if C is. Kernels that take any order get it together with StoreWord.
func (p Problem) OrderWord() uint32 {
	return Flag(p.BCol)<<12 | Flag(p.CCol)<<13
}

// Stored holds the fields of a word `store`: the number of C's type, and the epilogue.
func Stored(word uint32) (elem uint32, e Epilogue) {
	return word & 3, Epilogue{Bias: Bias(word >> 2 & 3), Activation: Activation(word >> 4 & 15), BiasShift: word >> 8 & 15}
}

func (e Epilogue) word() uint32 {
	if e.Bias == NoBias {
		e.BiasShift = 0
	}
	return uint32(e.Bias)<<2 | uint32(e.Activation)<<4 | e.BiasShift<<8
}

// WithEpilogues returns the variants, those for CUDA with code for epilogues (EPILOGUE in their sources). A variant for
// which splits returns true gets a second form with that code, `_epilogue`, because ptxas schedules some kernels' loops
// up to a fifth slower if they contain it, called or inline. All other variants have the code in their only form.
func WithEpilogues(vs []*Variant, splits func(*Variant) bool) []*Variant {
	for _, v := range vs {
		if v.Code != backend.CodePTX {
			continue
		}
		form := *v
		form.Unit.Defines = maps.Clone(v.Unit.Defines)
		if form.Unit.Defines == nil {
			form.Unit.Defines = map[string]string{}
		}
		form.Unit.Defines["EPILOGUE"] = "1"
		if !splits(v) {
			v.Unit.Defines = form.Unit.Defines
			continue
		}
		form.Name += "_epilogue"
		form.Unit.Blob = strings.TrimSuffix(v.Unit.Blob, ".ptx") + "_epilogue.ptx"
		v.Epilogue = &form
	}
	return vs
}

// Form returns another form of a variant for CUDA, compiled from the same source with one more definition.
func (v *Variant) Form(suffix, define string) *Variant {
	form := *v
	form.Unit.Defines = maps.Clone(v.Unit.Defines)
	if form.Unit.Defines == nil {
		form.Unit.Defines = map[string]string{}
	}
	form.Unit.Defines[define] = "1"
	form.Name += suffix
	form.Unit.Blob = strings.TrimSuffix(v.Unit.Blob, ".ptx") + suffix + ".ptx"
	return &form
}

// OneForm is for WithEpilogues: no variant has a second form.
func OneForm(*Variant) bool { return false }

// TwoForms is for WithEpilogues: every variant has a second form.
func TwoForms(*Variant) bool { return true }
