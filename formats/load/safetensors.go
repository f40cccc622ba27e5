// Safetensors: sparse matrices in any format that has a package, and dense ones.

package load

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/cvse"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/hrpb"
	"github.com/spmmrun/spmm/formats/jigsaw"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/formats/nm"
	"github.com/spmmrun/spmm/formats/npy"
	"github.com/spmmrun/spmm/formats/safetensors"
	"github.com/spmmrun/spmm/formats/sparse24r"
	"github.com/spmmrun/spmm/formats/tiledcsr"
)

// Formats returns the formats that Open finds in files. A new format is a new line here.
func Formats() []formats.Format {
	return []formats.Format{formats.CSRFormat, cvse.Format, tiledcsr.Format, jigsaw.Format, lanestream.Format, nm.Format,
		sparse24r.Format, hrpb.Format, formats.DenseFormat}
}

// Format returns the format of that name.
func Format(name string) (formats.Format, error) {
	var names []string
	for _, f := range Formats() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return formats.Format{}, fmt.Errorf("unknown format %q (%s)", name, strings.Join(names, ", "))
}

// readSafetensors reads a sparse matrix, or a dense one if the file holds none.
func readSafetensors[V npy.Float](s *source, data io.Reader) (formats.Encoded, error) {
	r, err := safetensors.NewReader(data, safetensors.Options{Name: s.name, Limits: s.Limits})
	if err != nil {
		return nil, err
	}
	if s.tensor != "" || !safetensors.HoldsMatrix(r.Metadata()) {
		return readTensor[V](s, r)
	}
	m, err := r.Matrix()
	if err != nil {
		return nil, err
	}
	f, err := Format(m.Format)
	if m.Format == formats.QuantisedFormat.Name { // which keeps no matrix exactly, so that it is none of Formats
		f, err = formats.QuantisedFormat, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	e, err := f.Open(m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return e, nil
}

// readTensor reads the named tensor, or the only matrix among all. One of 8-bit values is a *formats.Quantised.
func readTensor[V npy.Float](s *source, r *safetensors.Reader) (formats.Encoded, error) {
	name, err := s.pickTensor(r.Left())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	if i := slices.IndexFunc(r.Left(),
		func(t safetensors.Info) bool { return t.Name == name }); quantised(r.Left()[i].Type) != dtype.Invalid {
		return s.readQuantised(r, name)
	}
	for {
		t, err := r.Next()
		if err != nil {
			return nil, err
		}
		if t.Name != name {
			continue
		}
		if err := s.Limits.CheckDense(t.Shape[0], t.Shape[1], formats.TypeOf[V]().Size()); err != nil {
			return nil, fmt.Errorf("%s: tensor %q: %w", s.name, name, err)
		}
		raw, err := r.Data()
		if err != nil {
			return nil, err
		}
		d, err := dense[V](safetensors.Tensor{Info: t, Data: raw}, s.Loss)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		return plain(sparse(s, d))
	}
}

// pickTensor returns the name of the tensor to read.
func (s *source) pickTensor(tensors []safetensors.Info) (string, error) {
	var matrices []string
	for _, t := range tensors {
		if len(t.Shape) == 2 && (isFloat(t.Type) && !isScale(tensors, t.Name) || quantised(t.Type) != dtype.Invalid) {
			matrices = append(matrices, t.Name)
		}
	}
	slices.Sort(matrices)
	const shown = 8
	list := strings.Join(matrices[:min(shown, len(matrices))], ", ")
	if len(matrices) > shown {
		list += fmt.Sprintf(" and %d more", len(matrices)-shown)
	}
	switch {
	case len(matrices) == 0:
		return "", fmt.Errorf("holds neither a sparse matrix nor a tensor of two dimensions of F16, BF16, F32, F64, I8 or F8_E4M3")
	case s.tensor == "" && len(matrices) > 1:
		return "", fmt.Errorf("holds %d matrices (%s): name one, as in FILE.safetensors#%s", len(matrices), list, matrices[0])
	case s.tensor == "":
		return matrices[0], nil
	case !slices.Contains(matrices, s.tensor):
		return "", fmt.Errorf("holds no matrix %q, only %s", s.tensor, list)
	}
	return s.tensor, nil
}

func isFloat(t safetensors.Type) bool {
	return slices.Contains([]safetensors.Type{safetensors.F16, safetensors.BF16, safetensors.F32, safetensors.F64}, t)
}

// dense returns a tensor of two dimensions as a row-major matrix, and adds what rounding float64 lost to loss unless
// that is nil.
func dense[V npy.Float](t safetensors.Tensor, loss *formats.Loss) (*formats.Dense[V], error) {
	rows, cols := int(t.Shape[0]), int(t.Shape[1])
	switch {
	case t.Type == safetensors.F16:
		return denseOf[half.F16, V](t, rows, cols)
	case t.Type == safetensors.BF16:
		return denseOf[half.BF16, V](t, rows, cols)
	case t.Type == safetensors.F32:
		return denseOf[float32, V](t, rows, cols)
	case formats.TypeOf[V]() == dtype.F64:
		return denseOf[float64, V](t, rows, cols)
	}
	wide, err := safetensors.Elements[float64](t)
	if err != nil {
		return nil, err
	}
	d := formats.NewDense[V](rows, cols)
	l := formats.NarrowSlice(d.Data, wide)
	if loss != nil {
		loss.Add(l)
	}
	for i, x := range wide {
		if l.Overflowed > 0 && math.IsInf(float64(d.Data[i]), 0) && !math.IsInf(x, 0) {
			return nil, fmt.Errorf("tensor %q, row %d, column %d: %v is beyond the range of float32", t.Name, i/cols, i%cols, x)
		}
	}
	return d, nil
}

// denseOf is dense for a tensor of T, whose values are all values of V.
func denseOf[T formats.Value, V npy.Float](t safetensors.Tensor, rows, cols int) (*formats.Dense[V], error) {
	data, err := safetensors.Elements[T](t)
	if err != nil {
		return nil, err
	}
	d := &formats.Dense[T]{Rows: rows, Cols: cols, LD: cols, Data: data}
	if same, ok := any(d).(*formats.Dense[V]); ok {
		return same, nil
	}
	return formats.ConvertDense[V](d), nil
}
