// The variants: one for each code and element type.

package csr

import (
	"maps"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// local is the number of invocations of a workgroup. Every device allows it.
const local = 128

func variants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F32, dtype.F16, dtype.BF16} {
		out := []dtype.Type{dtype.F16, dtype.BF16}
		elem := map[string]string{"ELEM": include.Define(t)}
		vs = append(vs,
			rowwise[t], many[t],
			packing{}.sized(spec.PTX("cuda_"+t.String(), spec.Variant{
				In: t, Entry: "csr", Local: spec.Line(local), Out: out, Unit: spec.Unit{Defines: elem},
			}), rowsKind, 0),
			vulkanTeams[t], vulkanRows[t],
			packing{}.sized(spec.WGSL("webgpu_"+t.String(), spec.Variant{
				In: t, Need: spec.Need{Shared: shared(t)}, Local: spec.Line(local),
				Unit: spec.Unit{Defines: map[string]string{"ELEM": include.Define(t),
					"EPILOGUE": include.EpilogueWGSL}},
			}), rowsKind, 0),
			packing{}.sized(spec.CPU("cpu_"+t.String(), t, cpuFunc(t)), cpuKind, 0))
	}
	return slices.Concat(vs, []*spec.Variant{skewed, wide[dtype.F32]}, doubles(), streams)
}

// rowwise has the variants of kernel.cu from compute capability 9.0 on, by element type.
var rowwise = map[dtype.Type]*spec.Variant{
	dtype.F32:  rows90("cuda90_", dtype.F32, rowsKind, "kernel.cu"),
	dtype.F16:  rows90("cuda90_", dtype.F16, rowsKind, "kernel.cu"),
	dtype.BF16: rows90("cuda90_", dtype.BF16, rowsKind, "kernel.cu"),
}

// many has the variants for products with many warps, by element type.
var many = map[dtype.Type]*spec.Variant{
	dtype.F32: manyVariant(dtype.F32), dtype.F16: manyVariant(dtype.F16), dtype.BF16: manyVariant(dtype.BF16),
}

func manyVariant(t dtype.Type) *spec.Variant {
	return rows90("cuda90_many_", t, manyKind, "kernel.cu", spec.Define("BLOCKS", 12))
}

// wide has the variants whose lanes have twice the columns, by element type.
var wide = map[dtype.Type]*spec.Variant{
	dtype.F32: rows90("cuda90_wide_", dtype.F32, wideKind, "kernel.cu", spec.Define("BLOCKS", 8),
		spec.Define("CHUNKS", 2)),
}

// rows90 returns a variant of a source from compute capability 9.0 on.
func rows90(prefix string, t dtype.Type, kind *spec.Kind, source string, consts ...spec.Const) *spec.Variant {
	return rows90Packing(t).sized(spec.PTX(prefix+t.String(), spec.Variant{
		In: t, Entry: "csr", Need: spec.Need{Arch: 90}, Local: spec.Line(local), Overlaps: true,
		Out: []dtype.Type{dtype.F16, dtype.BF16},
		Consts: append([]spec.Const{spec.Define("TEAMS", 1), spec.Define("MIDDLE", 1),
			spec.Define("STREAM", spec.Flag(t == dtype.F32))}, consts...),
		Unit: spec.Unit{Source: source, Defines: map[string]string{"ELEM": include.Define(t), "OVERLAP": "1"}},
	}), kind, 0)
}

// rows90Packing is the packing of rows90.
func rows90Packing(t dtype.Type) packing {
	return packing{teams: true, warps: true, chunks: t == dtype.F32, short: t != dtype.F32}
}

// takesMany reports whether a product has a fifth more lanes than run at the same time, or six times as many if rows
// were cut: with fewer, lanes wait for the few loads of each, above all in segments, and are better off with entries
// loaded ahead. It was measured for 32 columns or more. For a prediction e is a sample of the matrix, with the stats of
// all of it.
func takesMany(v *spec.Variant, e *spec.Packed, p spec.Problem) bool {
	s, split, of := pickShape(v, e, p), e.Format.(spec.Split), int(max(1, e.Stats.MACs/max(1, e.NNZ)))
	tile := split.Items*s.across*s.along + of*(int(split.Segments)*local+int(split.Middle+split.Warps)*lanes)
	has, resident := int64(tile)*int64(spec.Ceil(p.N, s.columns)), waveLanes*int64(max(1, p.Caps.Units))
	if split.Rows > 0 {
		return s.across >= 8 && has > 6*resident
	}
	return s.across >= 8 && 5*has > 6*resident
}

// vulkanTeams has the variants for Vulkan, by element type. vulkanRows has those for matrices without segments, for
// which the code of teams would cost a tenth of the time.
var vulkanTeams, vulkanRows = onVulkan("vulkan", rowsKind, nil),
	onVulkan("vulkan_rows", wholeKind, map[string]string{"ROWS": "1"})

func onVulkan(prefix string, kind *spec.Kind, defines map[string]string) map[dtype.Type]*spec.Variant {
	vs := map[dtype.Type]*spec.Variant{}
	for _, t := range []dtype.Type{dtype.F32, dtype.F16, dtype.BF16, dtype.F64} {
		v := spec.SPIRV(prefix+"_"+t.String(), spec.Variant{
			In: t, Need: spec.Need{Shared: shared(t)}, Local: spec.Line(local),
			Consts: []spec.Const{spec.Define("TEAMS", 1)}, Unit: spec.GLSL("kernel.comp", prefix, t),
		})
		if t == dtype.F64 {
			v.Need, v.Unit.Source, v.Unit.Defines = spec.Need{F64: true, Shared: local * 16}, "double.comp", map[string]string{}
		}
		maps.Copy(v.Unit.Defines, defines)
		vs[t] = packing{teams: true}.sized(v, kind, 0)
	}
	return vs
}

// shared returns the bytes of shared memory in which lane groups add their sums.
func shared(t dtype.Type) uint32 { return uint32(local * 16 / t.Size() * 4) }

// doubles returns the variants for f64, which WebGPU does not have.
func doubles() []*spec.Variant {
	const t = dtype.F64
	return []*spec.Variant{
		narrowDouble90, wideDouble90, narrowDouble, wideDouble,
		vulkanTeams[t], vulkanRows[t],
		packing{}.sized(spec.Go("cpu_f64", t, cpuFunc(t)), cpuKind, 0),
	}
}

// The variants for f64 on CUDA. A lane has two columns, or four, which is faster for many columns. Launches overlap
// from compute capability 9.0 on.
var (
	narrowDouble90, wideDouble90 = cudaDouble("cuda90_f64", 90, 1, 8), cudaDouble("cuda90_wide_f64", 90, 2, 8)
	narrowDouble, wideDouble     = cudaDouble("cuda_f64", 80, 1, 8), cudaDouble("cuda_wide_f64", 80, 2, 6)
)

// cudaDouble returns the variant whose lanes have `chunks` pairs of columns, with `blocks` CTAs on a multiprocessor.
func cudaDouble(name string, arch int, chunks, blocks uint32) *spec.Variant {
	v := spec.PTX(name, spec.Variant{
		In: dtype.F64, Entry: "csr", Need: spec.Need{Arch: arch, F64: true}, Local: spec.Line(local),
		Unit:   spec.Unit{Source: "double.cu"},
		Consts: []spec.Const{spec.Define("CHUNKS", chunks), spec.Define("BLOCKS", blocks)},
	})
	if arch == 90 {
		v.Consts = append(v.Consts, spec.Define("TEAMS", 1), spec.Define("STREAM", 1))
		v.Overlaps, v.Unit.Defines = true, map[string]string{"OVERLAP": "1"}
	}
	kind := rowsKind
	if chunks > 1 {
		kind = wideKind
	}
	return packing{teams: arch == 90, chunks: arch == 90}.sized(v, kind, 0)
}

// suited returns the variant of v's packing that suits the matrix and the number of columns.
func suited(v *spec.Variant, e *spec.Packed, p spec.Problem) *spec.Variant {
	if x := suitedStream(v, e, p.N); x != nil {
		return x
	}
	if x := suitedVector(v, e, p.N); x != nil {
		return x
	}
	switch {
	case v.Kind == vectorKind:
		return suited(rowwise[v.In], e, p)
	case v.Kind == rowsKind && takesSkewed(v, e, p):
		return skewed
	case v.Code == backend.CodeSPIRV:
		if e.Format.(spec.Split).Segments > 0 {
			return vulkanTeams[v.In]
		}
		return vulkanRows[v.In]
	case v.Kind == rowsKind && packingOf(v).warps && wide[v.In] != nil && pickShape(v, e, p).across == lanes:
		return wide[v.In]
	case v.Kind == rowsKind && packingOf(v).warps && many[v.In] != nil && takesMany(v, e, p):
		return many[v.In]
	case p.N <= 64:
		return v
	case v == narrowDouble90:
		return wideDouble90
	case v == narrowDouble:
		return wideDouble
	}
	return v
}
