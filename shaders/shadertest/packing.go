// What formats pack and launch, and what they refuse, without a device.

package shadertest

import (
	"errors"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Packed calls f with a matrix as each variant packs it.
func (s *Suite) Packed(t *testing.T, a *formats.CSR[float32], f func(v *spec.Variant, e *spec.Packed)) {
	t.Helper()
	for _, v := range s.Format.Variants {
		e, err := s.Format.Encode(formats.ConvertTo(a, v.In), v)
		if err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		f(v, e)
	}
}

// encode: the arrays are those that the program takes, and another element type or a column outside the matrix is
// refused.
func (s *Suite) encode(t *testing.T) {
	a := &formats.CSR[float32]{Rows: 9, Cols: 3, RowPtr: []int64{0, 1, 1, 1, 1, 1, 1, 1, 1, 3},
		ColIdx: []int32{2, 0, 1}, Val: []float32{5, 0, 0}}
	bad := *a
	bad.ColIdx = []int32{2, 0, 3}
	for _, v := range s.Format.Variants {
		if _, err := s.Format.Encode(formats.ConvertTo(&bad, v.In), v); err == nil {
			t.Errorf("%s: a column outside the matrix is accepted", v.Name)
		}
		other := dtype.F16
		if v.In == other {
			other = dtype.BF16
		}
		if _, err := s.Format.Encode(formats.ConvertTo(a, other), v); err == nil {
			t.Errorf("%s packs another element type", v.Name)
		}
		e, err := s.Format.Encode(formats.ConvertTo(a, v.In), v)
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		if e.Rows != 9 || e.Cols != 3 || e.NNZ != 3 || e.Stats.Fill <= 0 || len(e.Arrays) != s.Format.Arg("b") {
			t.Errorf("%s: %d×%d, %d entries, %d arrays, stats %+v", v.Name, e.Rows, e.Cols, e.NNZ,
				len(e.Arrays), e.Stats)
		}
		for i, x := range e.Arrays {
			if x.Name != s.Format.Args[i].Name || len(x.Data) == 0 {
				t.Errorf("%s: array %d is %s of %d bytes, want %s", v.Name, i, x.Name, len(x.Data),
					s.Format.Args[i].Name)
			}
		}
	}
}

// launch: grids cover C, there is none for no columns, and problems that do not fit the matrix are refused.
func (s *Suite) launch(t *testing.T) {
	empty := &formats.CSR[float32]{Rows: 100, Cols: 3, RowPtr: make([]int64, 101)}
	s.Packed(t, empty, func(v *spec.Variant, e *spec.Packed) {
		p := spec.Problem{M: 100, K: 3, N: 700, LDB: 704, LDC: 700, Out: v.Sums()}
		for _, p.Caps.Units = range []int{0, 4, 1000} {
			l, err := s.Format.LaunchSuited(v, e, p)
			if err != nil {
				t.Errorf("%s: %v", v.Name, err)
			} else if s.Covers != nil && !s.Covers(v, p, l) {
				t.Errorf("%s: a grid of %v for %d×%d on %d units", v.Name, l.Passes[0].Groups, p.M, p.N, p.Caps.Units)
			}
		}
		p.N, p.Caps.Units = 0, 0
		l, err := s.Format.LaunchSuited(v, e, p)
		if err != nil || slices.Min(l.Passes[0].Groups[:]) != 0 {
			t.Errorf("%s: no columns: a grid of %v, error %v", v.Name, l.Passes, err)
		}
		Refuses(t, s.Format, v, e)
		s.exact(t, v, e)
	})
}

// exact: a launch runs the variant that it is given, whatever the number of columns, or refuses the problem.
func (s *Suite) exact(t *testing.T, v *spec.Variant, e *spec.Packed) {
	t.Helper()
	for _, n := range []int{1, 8, 33, 64, 200, 1000} {
		p := spec.Problem{M: e.Rows, K: e.Cols, N: n, LDB: (n + 7) &^ 7, LDC: n, Out: v.Sums(),
			Caps: backend.Caps{Units: 132}}
		l, err := s.Format.Launch(v, e, p)
		if err != nil {
			if !errors.Is(err, backend.ErrUnsupported) {
				t.Errorf("%s, %d columns: %v", v.Name, n, err)
			}
			continue
		}
		pass := l.Passes[0]
		if pass.Variant == v.Before {
			pass = l.Passes[1]
		}
		if pass.Variant.Kind != v.Kind || pass.Variant.Tile != v.Tile {
			t.Errorf("%s, %d columns: %s runs", v.Name, n, pass.Variant.Name)
		}
	}
}

// Refusal is a problem that a launch refuses, as the change of one that it takes.
type Refusal struct {
	Name        string
	Change      func(*spec.Problem)
	Unsupported bool         // as what the code or the device cannot do
	Code        backend.Code // of the variants that refuse it; 0: all
}

// Refuses checks that a variant takes a problem of 5 columns with a packed matrix, and refuses what no kernel takes,
// and more.
func Refuses(t *testing.T, k *spec.Format, v *spec.Variant, e *spec.Packed, more ...Refusal) {
	t.Helper()
	good := spec.Problem{M: e.Rows, K: e.Cols, N: 5, LDB: 8, LDC: 5, Out: v.Sums(),
		Caps: backend.Caps{MaxBinding: 1 << 20}}
	if _, err := k.LaunchSuited(v, e, good); err != nil {
		t.Errorf("%s: %v", v.Name, err)
	}
	for _, r := range append([]Refusal{
		{Name: "more rows", Change: func(p *spec.Problem) { p.M++ }},
		{Name: "fewer rows", Change: func(p *spec.Problem) { p.M-- }},
		{Name: "inner", Change: func(p *spec.Problem) { p.K-- }},
		{Name: "ldb", Change: func(p *spec.Problem) { p.LDB = 9 }},
		{Name: "narrow ldb", Change: func(p *spec.Problem) { p.LDB = 0 }},
		{Name: "narrow ldc", Change: func(p *spec.Problem) { p.LDC = 4 }},
		{Name: "negative", Change: func(p *spec.Problem) { p.N = -1 }},
		{Name: "wide", Change: func(p *spec.Problem) { p.LDB = 1 << 30 }, Unsupported: true},
		{Name: "out", Change: func(p *spec.Problem) { p.Out = dtype.S8 }, Unsupported: true},
		{Name: "binding", Change: func(p *spec.Problem) { p.Caps.MaxBinding = 30 }, Unsupported: true,
			Code: backend.CodeWGSL}, // others address whole buffers
	}, more...) {
		if r.Code != 0 && r.Code != v.Code {
			continue
		}
		p := good
		r.Change(&p)
		_, err := k.LaunchSuited(v, e, p)
		Refused(t, v.Name+", "+r.Name, err, r.Unsupported)
	}
}

// Refused checks that there is an error, and that it is ErrUnsupported or not.
func Refused(t *testing.T, what string, err error, unsupported bool) {
	t.Helper()
	if err == nil || errors.Is(err, backend.ErrUnsupported) != unsupported {
		t.Errorf("%s: %v", what, err)
	}
}

// tiles: what kernels for cooperative matrices take for granted of their constants.
func (s *Suite) tiles(t *testing.T) {
	for _, v := range s.Format.Variants {
		if !v.Matrix || v.Need.Lanes {
			continue
		}
		c := v.Const
		across, down := c("TN"), c("TM")
		if c("SWAP") == 1 {
			across, down = down, across
		}
		stage, rows := s.Tiles(v)
		for _, whole := range []struct {
			name string
			a, b uint32
		}{
			{"columns of A of a stage in steps of the operation", stage, c("TK")},
			{"loads of a stage by all invocations", stage * c("COLS") / 8, v.Local[0]},
			{"invocations in subgroups", v.Local[0], v.Sub * c("SUBS")},
			{"a subgroup's columns in tiles", c("COLS") / c("SUBS"), across},
			{"a subgroup's columns in loads", c("COLS") / c("SUBS"), 8},
			{"rows in tiles", rows, down},
			{"columns in powers of two", 1 << 16, c("COLS")},
			{"subgroups in powers of two", 1 << 16, c("SUBS")},
		} {
			if whole.a < whole.b || whole.a%whole.b != 0 {
				t.Errorf("%s: %s: %d is no multiple of %d", v.Name, whole.name, whole.a, whole.b)
			}
		}
		if v.Need.Shared > 32<<10 {
			t.Errorf("%s needs %d bytes of shared memory, more than most devices have", v.Name, v.Need.Shared)
		}
	}
}
