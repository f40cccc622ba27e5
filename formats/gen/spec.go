// Package gen makes matrices from a seed, the same on every machine.
//
// Sparse matrices are described by a spec,
//
//	gen:KIND,key=value,…
//
// where KIND is one of
//
//	uniform   columns drawn at random in each row
//	vector    v×1 columns: the v rows of a panel share their columns
//	block     block×block squares, aligned
//	nm        n of every m columns (m is then not the number of rows); panels of v rows share them
//	banded    columns within band of the diagonal
//	powerlaw  row lengths distributed as length^-alpha
//	onedense  uniform, but one row is full
//	diagonal  the main diagonal
//	rmat      a graph whose degrees follow a power law: the Kronecker graph of Chakrabarti et al. (SDM 2004) and
//	          Graph500, a = 0.57, b = c = 0.19; edges that are drawn twice are one
//	stencil   neighbours on a grid, fewer at its borders
//
// and the keys, with their defaults, are
//
//	rows, m      rows, 1024; not for rmat and stencil
//	cols, k      columns, as many as rows; not for rmat and stencil
//	scale        of rmat: 2^scale rows and columns, 10; at most 30
//	degree       of rmat: edges that are drawn, per row on average, 16; at most 65536
//	permute      of rmat: 1 if vertices are numbered at random, 0 if those of low numbers have the most edges; 1
//	side         of stencil: points along each edge of the grid, 32
//	points       of stencil: 5 or 9 in a square, 7 or 27 in a cube, 27
//	density      entries per place of a non-empty row, 0.1 (banded: 1); row lengths are about binomial
//	sparsity     1 - density
//	jitter       of uniform: each row has a density of its own, from 1-jitter to 1+jitter times density, as
//	             variational pruning leaves them; 0, at most 1
//	nnz-per-row  instead of density: entries of a row, exactly (powerlaw: their mean)
//	v            rows of a panel, 8 (nm: 1)
//	n, m         of nm: 2 of 4
//	block        16
//	band         8; 0 is the diagonal alone
//	alpha        2; more than 1, at most 8
//	row          the row that onedense fills, rows/2
//	empty        fraction of rows (panels, rows of blocks) without entries, 0
//	seed         0
//	values       normal, uniform, ones, int (-8 to 8) or int:LO:HI; normal. No entry is 0.
//	type         f16 or bf16: values are rounded to it; f32
//
// Random numbers are hashes of seed and position, and no step depends on floating-point functions
// that machines compute differently.
package gen

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spmmrun/spmm/dtype"
)

// Prefix starts every spec.
const Prefix = "gen:"

// Spec is a parsed spec: a sparse matrix to be made by Generate.
type Spec struct {
	Kind       string
	Rows, Cols int
	Seed       uint64
	Values     Values

	density  float64
	jitter   float64
	rowNNZ   int // -1: by density
	n, m     int
	v, block int
	band     int
	alpha    float64
	row      int
	empty    float64

	scale, degree, permute int
	side, points           int
}

// kinds lists, for each kind, the keys that it takes besides those that all do.
var kinds = map[string]string{
	"rmat":     "scale degree permute",
	"stencil":  "side points",
	"uniform":  "density sparsity nnz-per-row jitter",
	"vector":   "density sparsity nnz-per-row v",
	"block":    "density sparsity nnz-per-row block",
	"nm":       "n m v",
	"banded":   "density sparsity nnz-per-row band",
	"powerlaw": "density sparsity nnz-per-row alpha",
	"onedense": "density sparsity nnz-per-row row",
	"diagonal": "",
}

// commonKeys are those that all kinds take, sizeKeys those that all do whose size does not follow from other keys.
const (
	commonKeys = "empty seed values type"
	sizeKeys   = "rows m cols k"
)

func sized(kind string) bool { return kind != "rmat" && kind != "stencil" }

func valid(kind string) []string {
	keys := append(strings.Fields(commonKeys), strings.Fields(kinds[kind])...)
	if sized(kind) {
		keys = append(keys, strings.Fields(sizeKeys)...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Parse reads a spec. seed is used if the spec has none. Errors list what is valid.
func Parse(spec string, seed uint64) (*Spec, error) {
	s, err := parse(spec, seed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec, err)
	}
	return s, nil
}

func parse(spec string, seed uint64) (*Spec, error) {
	rest, ok := strings.CutPrefix(spec, Prefix)
	if !ok {
		return nil, fmt.Errorf("does not start with %q", Prefix)
	}
	fields := strings.Split(rest, ",")
	s := &Spec{
		Kind: fields[0], Rows: 1024, Cols: -1, Seed: seed,
		density: -1, rowNNZ: -1, n: 2, m: 4, v: 8, block: 16, band: 8, alpha: 2, row: -1,
		scale: 10, degree: 16, permute: 1, side: 32, points: 27,
	}
	if _, ok := kinds[s.Kind]; !ok {
		return nil, fmt.Errorf("unknown kind %q (%s)", s.Kind, strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
	}
	if s.Kind == "nm" {
		s.v = 1
	}
	seen := map[string]bool{}
	for _, f := range fields[1:] {
		key, val, _ := strings.Cut(f, "=")
		if !slices.Contains(valid(s.Kind), key) {
			return nil, fmt.Errorf("unknown key %q (%s takes %s)", key, s.Kind, strings.Join(valid(s.Kind), ", "))
		}
		if seen[key] {
			return nil, fmt.Errorf("%s is given twice", key)
		}
		seen[key] = true
		if err := s.set(key, val); err != nil {
			return nil, err
		}
	}
	return s, s.finish(seen)
}

// integerKey is a key that holds an integer: where that goes, and the least that it may be.
type integerKey struct {
	to    *int
	least int
}

func (s *Spec) integerKeys() map[string]integerKey {
	m := integerKey{&s.Rows, 0}
	if s.Kind == "nm" {
		m = integerKey{&s.m, 1}
	}
	return map[string]integerKey{
		"rows": {&s.Rows, 0}, "cols": {&s.Cols, 0}, "k": {&s.Cols, 0}, "m": m,
		"n": {&s.n, 0}, "v": {&s.v, 1}, "block": {&s.block, 1}, "band": {&s.band, 0},
		"row": {&s.row, 0}, "nnz-per-row": {&s.rowNNZ, 0},
		"scale": {&s.scale, 0}, "degree": {&s.degree, 0}, "permute": {&s.permute, 0},
		"side": {&s.side, 1}, "points": {&s.points, 5},
	}
}

// set sets one key.
func (s *Spec) set(key, val string) (err error) {
	if n, ok := s.integerKeys()[key]; ok {
		*n.to, err = integer(key, val, n.least)
		return err
	}
	switch key {
	case "density":
		s.density, err = number(key, val, 0, 1)
	case "sparsity":
		s.density, err = number(key, val, 0, 1)
		s.density = 1 - s.density
	case "jitter":
		s.jitter, err = number(key, val, 0, 1)
	case "empty":
		s.empty, err = number(key, val, 0, 1)
	case "alpha":
		s.alpha, err = number(key, val, 1, 8)
		if err == nil && s.alpha == 1 {
			err = fmt.Errorf("alpha=%s: want more than 1", val)
		}
	case "seed":
		if s.Seed, err = strconv.ParseUint(val, 10, 64); err != nil {
			err = fmt.Errorf("seed=%s: want an integer from 0 to 2⁶⁴-1", val)
		}
	case "values":
		t := s.Values.Type
		s.Values, err = ParseValues(val)
		s.Values.Type = t
	case "type":
		s.Values.Type, err = dtype.Parse(val)
		if t := s.Values.Type; err != nil || t != dtype.F16 && t != dtype.BF16 && t != dtype.F32 {
			err = fmt.Errorf("type=%s: want f16, bf16 or f32", val)
		}
	}
	return err
}

// finish fills in the defaults that depend on other keys and checks what keys say together.
func (s *Spec) finish(seen map[string]bool) error {
	pairs := [][2]string{{"cols", "k"}, {"density", "sparsity"}, {"density", "nnz-per-row"}, {"sparsity", "nnz-per-row"}}
	if s.Kind != "nm" {
		pairs = append(pairs, [2]string{"rows", "m"})
	}
	for _, p := range pairs {
		if seen[p[0]] && seen[p[1]] {
			return fmt.Errorf("%s and %s say the same thing", p[0], p[1])
		}
	}
	if err := s.size(); err != nil {
		return err
	}
	if s.Cols < 0 {
		s.Cols = s.Rows
	}
	if s.density < 0 {
		s.density = 0.1
		if s.Kind == "banded" {
			s.density = 1
		}
	}
	if s.row < 0 {
		s.row = s.Rows / 2
	}
	switch {
	case s.Kind == "nm" && s.n > s.m:
		return fmt.Errorf("n=%d is more than m=%d", s.n, s.m)
	case s.Kind == "onedense" && s.row >= s.Rows && s.Rows > 0:
		return fmt.Errorf("row=%d is outside the %d rows", s.row, s.Rows)
	case s.Values.Kind == Int && max(-s.Values.Lo, s.Values.Hi) > exactInts(s.Values.Type):
		return fmt.Errorf("%v holds the integers to ±%d, not all of %d to %d",
			s.Values.Type, exactInts(s.Values.Type), s.Values.Lo, s.Values.Hi)
	case s.jitter > 0 && s.rowNNZ >= 0:
		return fmt.Errorf("jitter=%v varies a density, and rows have exactly nnz-per-row=%d entries", s.jitter, s.rowNNZ)
	case s.density*(1+s.jitter) > 1:
		return fmt.Errorf("jitter=%v makes rows more than full, with density %v: want at most %.3g", s.jitter, s.density, 1/s.density-1)
	case s.Kind == "block" && s.rowNNZ%s.block > 0:
		return fmt.Errorf("nnz-per-row=%d is no multiple of block=%d", s.rowNNZ, s.block)
	}
	return nil
}

func integer(key, val string, least int) (int, error) {
	n, err := strconv.Atoi(val)
	if err != nil || n < least || n > 1<<31-1 {
		return 0, fmt.Errorf("%s=%s: want an integer from %d to 2147483647", key, val, least)
	}
	return n, nil
}

func number(key, val string, lo, hi float64) (float64, error) {
	x, err := strconv.ParseFloat(val, 64)
	if err != nil || !(x >= lo && x <= hi) {
		return 0, fmt.Errorf("%s=%s: want a number from %v to %v", key, val, lo, hi)
	}
	return x, nil
}
