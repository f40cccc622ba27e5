// Strips: the rows of a panel by a few, which strips.cu multiplies on the float units.

package hrpb

import (
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/hrpb"
	"github.com/spmmrun/spmm/shaders/spec"
)

// strips are the variants of strips.cu, for each architecture first the one that a matrix is packed for.
var strips = []*spec.Variant{
	stripsVariant("cuda90_strips_n128_f32", 90, 128),
	stripsVariant("cuda90_strips_n64_f32", 90, 64),
	stripsVariant("cuda90_strips_n32_f32", 90, 32),
	stripsVariant("cuda_strips_n128_f32", 80, 128),
	stripsVariant("cuda_strips_n64_f32", 80, 64),
	stripsVariant("cuda_strips_n32_f32", 80, 32),
}

const stripWarps = 4 // of a workgroup

func stripsVariant(name string, arch int, cols uint32) *spec.Variant {
	defines := map[string]string{"ENTRY": "hrpb", "LEAST": "7"}
	if arch == 90 {
		defines["OVERLAP"] = "1"
	}
	return &spec.Variant{
		Name: name, In: dtype.F32, Code: backend.CodePTX, Local: [3]uint32{32 * stripWarps, 1, 1}, Entry: "hrpb", Overlaps: arch == 90,
		Need: spec.Need{Arch: arch},
		Consts: []spec.Const{
			spec.Define("HEIGHT", hrpb.StripRows), spec.Define("COLS", cols), spec.Define("WARPS", stripWarps),
			spec.Define("BLOCK", cudaBlock), spec.Define("WORKERS", cudaWorkers), spec.Define("ORDER", 1),
		},
		Out:  []dtype.Type{dtype.F16, dtype.BF16},
		Unit: spec.Unit{Source: "strips.cu", Blob: name + ".ptx", Arch: fmt.Sprintf("compute_%d", arch), Defines: defines},
	}
}

// arrangeStrips makes the arrays that strips.cu reads.
func arrangeStrips[T formats.Value](m *hrpb.Matrix[T], v *spec.Variant) (*spec.Packed, error) {
	s, err := m.Strips()
	if err != nil {
		return nil, fmt.Errorf("kernel hrpb/%s: %w: %w", v.Name, err, backend.ErrUnsupported)
	}
	e := &spec.Packed{
		Rows: m.Rows, Cols: m.Cols, NNZ: m.NNZ(),
		Arrays: []spec.Array{
			spec.NewArray("work", append(workList(s.Parts, s.Splits), m.RowIdx...)),
			spec.NewArray("columns", s.Columns),
			spec.NewArray("sizes", []uint32(nil)),
			spec.NewArray("packed", s.Values),
		},
		Items:  int64(len(s.Parts)),
		Format: m.WithStrips(s),
	}
	vectors := int64(len(s.Columns))
	e.Stats = formats.Stats{Slots: vectors * hrpb.StripRows, MACs: vectors * hrpb.StripRows, Gathers: vectors}
	for _, x := range e.Arrays {
		e.Stats.StoredBytes += int64(len(x.Data))
	}
	if vectors > 0 {
		e.Stats.Fill = float64(e.NNZ) / float64(e.Stats.Slots)
	}
	for _, p := range s.Parts {
		e.Stats.Longest = max(e.Stats.Longest, int64(p.Last-p.First))
	}
	return e, nil
}

// stripParts and stripSums are the grids of the phases: a warp for each part, or for each row of a cut strip.
func stripParts(v *spec.Variant, w hrpb.Work) grid {
	return grid{(int64(w.Parts) + stripWarps - 1) / stripWarps, int(v.Const("COLS"))}
}
func stripSums(w hrpb.Work) grid {
	return grid{(int64(w.Splits)*hrpb.StripRows + stripWarps - 1) / stripWarps, 128}
}

// suitedStrips returns the variant for as many columns as there are; that for 64 also where few strips, which a device has room for all at once,
// wait for one much longer than most: it takes twice as many vectors at a time.
func suitedStrips(v *spec.Variant, e *spec.Packed, p spec.Problem) *spec.Variant {
	const resident = 7 * stripWarps // strips of a multiprocessor
	n := uint32(p.N)
	if average := e.Stats.Gathers / max(1, e.Items); n > 64 && n <= 128 && e.Items <= resident*int64(p.Caps.Units) && 2*e.Stats.Longest > 5*average {
		n = 64
	}
	at := slices.Index(strips, v)
	for at >= 0 && at+1 < len(strips) && strips[at+1].Unit.Arch == v.Unit.Arch && n <= strips[at+1].Const("COLS") {
		at++
	}
	if at < 0 {
		return v
	}
	return strips[at]
}
