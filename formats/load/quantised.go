// Quantised weights as checkpoints hold them: a tensor of 8-bit values, and another of scales.

package load

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/safetensors"
)

// scaleNames are the suffixes that name the tensor of scales. They multiply the values: "inv" is of those that were
// divided by.
var scaleNames = []string{"_scale", "_scale_inv", ".scale"}

// quantised returns the kind of a quantised matrix whose values a tensor holds; Invalid: none.
func quantised(t safetensors.Type) dtype.Type {
	switch t {
	case safetensors.I8:
		return dtype.S8
	case safetensors.F8E4M3:
		return dtype.E4M3
	}
	return dtype.Invalid
}

// isScale reports whether a tensor is the scales of another one.
func isScale(tensors []safetensors.Info, name string) bool {
	return slices.ContainsFunc(tensors, func(t safetensors.Info) bool {
		return quantised(t.Type) != dtype.Invalid &&
			slices.ContainsFunc(scaleNames, func(s string) bool { return t.Name+s == name })
	})
}

// readQuantised reads a tensor of 8-bit values and its scales. Values that are 0 are left out.
func (s *source) readQuantised(r *safetensors.Reader, name string) (*formats.Quantised, error) {
	fail := func(err error) (*formats.Quantised, error) {
		return nil, fmt.Errorf("%s: tensor %q: %w", s.name, name, err)
	}
	var scaleName string
	for _, t := range r.Left() {
		if slices.ContainsFunc(scaleNames, func(x string) bool { return name+x == t.Name }) {
			scaleName = t.Name
		}
	}
	if scaleName == "" {
		return fail(fmt.Errorf("has no scales: want a tensor %s%s", name, strings.Join(scaleNames, ", or "+name)))
	}
	var values, scales *safetensors.Tensor
	for values == nil || scales == nil {
		t, err := r.Next()
		if err != nil {
			return nil, err
		}
		if t.Name != name && t.Name != scaleName {
			continue
		}
		if t.Name == name {
			if err := s.Limits.CheckDense(t.Shape[0], t.Shape[1], 6); err != nil { // a value, and an entry of one
				return fail(err)
			}
		}
		raw, err := r.Data()
		if err != nil {
			return nil, err
		}
		if t.Name == name {
			values = &safetensors.Tensor{Info: t, Data: raw}
		} else {
			scales = &safetensors.Tensor{Info: t, Data: raw}
		}
	}
	rows, cols, err := shapeOfScales(scales.Info)
	if err != nil {
		return fail(err)
	}
	d, err := dense[float32](safetensors.Tensor{Info: safetensors.Info{Name: scales.Name, Type: scales.Type,
		Shape: []int64{int64(rows), int64(cols)}}, Data: scales.Data}, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	m, err := formats.NewQuantised(quantised(values.Type), int(values.Shape[0]), int(values.Shape[1]), values.Data, d.Data,
		rows, cols, false)
	if err != nil {
		return fail(err)
	}
	return m, nil
}

// shapeOfScales returns the size of a matrix of scales: one number, a vector for the rows, or a matrix.
func shapeOfScales(t safetensors.Info) (rows, cols int, err error) {
	if !isFloat(t.Type) {
		return 0, 0, fmt.Errorf("scales of type %s: want F16, BF16, F32 or F64", t.Type)
	}
	switch len(t.Shape) {
	case 0:
		return 1, 1, nil
	case 1:
		return int(t.Shape[0]), 1, nil
	case 2:
		return int(t.Shape[0]), int(t.Shape[1]), nil
	}
	return 0, 0, fmt.Errorf("scales of shape %v: want two dimensions or less", t.Shape)
}
