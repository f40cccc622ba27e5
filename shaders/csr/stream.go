// The variants for few columns of B on CUDA from compute capability 9.0 on: stream.cu, which reads A in chunks.

package csr

import (
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	chunkRows    = 128 // rows of a chunk, at most
	streamWarps  = 8   // of a workgroup
	streamBlocks = 3   // workgroups of a multiprocessor
	streamStages = 2   // stage buffers of a warp
	// the least entries of a matrix that is read in chunks: smaller ones stay in the L2 cache
	streamLeast = 4 << 20
)

// streams take the packing of the variants with STREAM, and a B of at most Tile.Cols columns.
var streams = []*spec.Variant{
	streamVariant(dtype.F32, 1), streamVariant(dtype.F32, 2), streamVariant(dtype.F32, 4),
	streamVariant(dtype.F64, 1), streamVariant(dtype.F64, 2), streamVariant(dtype.F64, 4),
}

// chunkSlots returns the most entries of a chunk. With it the stage buffers of a multiprocessor's warps leave 60 KB to
// the L1 cache.
func chunkSlots(t dtype.Type) uint32 {
	if t == dtype.F64 {
		return 256
	}
	return 384
}

// streamVariant returns the variant whose lanes have this number of columns.
func streamVariant(t dtype.Type, columns uint32) *spec.Variant {
	size, slots := uint32(t.Size()), chunkSlots(t)
	v := spec.PTX(fmt.Sprintf("cuda90_stream_n%d_%v", columns, t), spec.Variant{
		In: t, Entry: "csr", Local: spec.Line(32 * streamWarps), Overlaps: true, Tight: true,
		Shared: streamWarps * streamStages * (4*(chunkRows+8) + (slots+8)*(4+size)),
		Need:   spec.Need{Arch: 90, F64: t == dtype.F64}, Unit: spec.Unit{Source: "stream.cu"},
	})
	v.Consts = []spec.Const{
		spec.Define("TEAMS", 1), spec.Define("STREAM", 1), spec.Define("COLS", columns), spec.Define("SLOTS", slots),
		spec.Define("ROWS", chunkRows),
		spec.Define("WARPS", streamWarps), spec.Define("STAGES", streamStages), spec.Define("BLOCKS", streamBlocks),
		spec.Define("UNROLL", min(8, 32/columns/(size/4))),
	}
	if t == dtype.F64 {
		v.Unit.Defines = map[string]string{"DOUBLE": "1"}
	} else {
		v.Out = []dtype.Type{dtype.F16, dtype.BF16}
	}
	return packing{teams: true, warps: t == dtype.F32, chunks: true}.sized(v, streamKind, int(columns))
}

// suitedStream returns the one of streams that suits n columns. It returns nil if there is none, or if v is not one of
// streams and the matrix is small.
func suitedStream(v *spec.Variant, e *spec.Packed, n int) *spec.Variant {
	if !packingOf(v).chunks || v.Kind != streamKind && !e.Format.(spec.Split).Chunks.Large {
		return nil
	}
	for _, x := range streams {
		if x.In == v.In && n <= x.Tile.Cols {
			return x
		}
	}
	return nil
}

// addChunks appends the chunks of rows of a matrix of nnz entries of type t to the words of `heavy`.
func addChunks(split *spec.Split, heavy, rowptr []uint32, nnz int64, t dtype.Type) []uint32 {
	for len(heavy)%spec.ChunkWords != 0 {
		heavy = append(heavy, 0)
	}
	chunks, list := spec.CutChunks(rowptr, int(chunkSlots(t)), chunkRows)
	chunks.First, chunks.Large = uint32(len(heavy)/spec.ChunkWords), nnz >= streamLeast
	split.Chunks = chunks
	return append(heavy, list...)
}

// launchStream launches as many workgroups as run at the same time; their warps take one chunk after another. Phase 1
// has a warp for each row that was cut into segments.
func launchStream(v *spec.Variant, split spec.Split, p spec.Problem) (spec.Launch, error) {
	chunks, ldp := split.Chunks, (p.N+7)&^7
	l := spec.Launch{Workspace: max(spec.NoWorkspace, int64(chunks.Slots)*int64(ldp)*int64(v.Sums().Size()))}
	along := streamLanes(split.Average)
	phase := func(number, first, items uint32, groups int) error {
		g, err := spec.Fold(int64(groups), spec.Ceil(p.N, v.Tile.Cols))
		if err != nil {
			return fmt.Errorf("kernel csr/%s: %w", v.Name, err)
		}
		l.Passes = append(l.Passes, spec.Pass{Variant: v.For(p), Groups: g, Params: spec.BlockFor(v, params{
			phase: number, n: uint32(p.N), ldb: uint32(p.LDB), ldc: uint32(p.LDC), ldp: uint32(ldp),
			segments: first, items: items, width: g[0], longest: uint32(max(64, 16*along)), along: uint32(along),
			store: p.StoreWord(), alpha: float32(p.Alpha), beta: float32(p.Beta),
		}, p.Alpha, p.Beta)})
		return nil
	}
	groups := spec.Ceil(int(chunks.Count), streamWarps)
	err := phase(0, chunks.First, chunks.Count, min(groups, max(1, p.Caps.Units)*streamBlocks))
	if err == nil && chunks.Joins > 0 {
		err = phase(1, chunks.First+chunks.Count, chunks.Joins, spec.Ceil(int(chunks.Joins), streamWarps))
	}
	return l, err
}

// streamLanes returns the number of lanes that compute a row of this average length.
func streamLanes(average int) int {
	along := 1
	for along < lanes && along*16 <= average {
		along *= 2
	}
	return along
}
