// What the tests of all formats have in common.

package shadertest

import (
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Suite is the tests that formats have in common, for one of them. A format's test is
//
//	func TestFormat(t *testing.T) { suite.Run(t) }
//
// and what only that format does has tests of its own, on the devices with Each.
type Suite struct {
	Format *spec.Format
	// Types are those that a device must have a variant for, in each of Heights, the values of constant V, if there are
	// any.
	Types   func(caps backend.Caps) []dtype.Type
	Heights []uint32

	// Others, if set, returns variants for the matrix units of all vendors, made over for a subgroup size. They are
	// loaded by the driver that only compiles, and multiplied with on one that computes shapes that it does not list.
	Others func(sub uint32) []*spec.Variant
	// Slow tells which of Others are not multiplied with.
	Slow func(v *spec.Variant) bool
	// Also, if set, returns another form of a variant, which is multiplied with too, or nil.
	Also func(v *spec.Variant) *spec.Variant
	// Preferred tells whether the variants that the driver that only compiles loads are in the right order.
	Preferred func(vs []*spec.Variant) bool
	// Tiles, if set, is shared by variants for cooperative matrices: the columns of A that are multiplied at a time, and
	// the rows that share them.
	Tiles func(v *spec.Variant) (stage, rows uint32)

	// Cases are products that a variant computes, with C in a type.
	Cases func(v *spec.Variant, out dtype.Type) []Case
	// Twice, if set, are products whose bits are the same in each run, also as on devices with this number of Units.
	Twice func(v *spec.Variant) []Case
	Units []int
	// Specials are products by a B that is not finite. Without it they are those that all formats take: NonFinite.
	Specials func(v *spec.Variant) []Specials
	// Panel, if set, is a constant of variants whose grid counts panels of that number of rows: they multiply more panels
	// than one side of a grid has room for.
	Panel spec.Const

	// Covers, if set, tells whether the grids of a launch cover C.
	Covers func(v *spec.Variant, p spec.Problem, l spec.Launch) bool
}

// Floats are the types that most formats have variants for on all devices.
func Floats(backend.Caps) []dtype.Type { return []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} }

// FloatsAndF64 are Floats, and f64 where the device has it.
func FloatsAndF64(caps backend.Caps) []dtype.Type {
	if caps.F64 {
		return append(Floats(caps), dtype.F64)
	}
	return Floats(caps)
}

// Always has the same for all variants.
func Always[T any](x ...T) func(*spec.Variant) []T { return func(*spec.Variant) []T { return x } }

// CoversColumns is Covers for grids whose y counts tiles of columns.
func CoversColumns(v *spec.Variant, p spec.Problem, l spec.Launch) bool {
	return int(l.Passes[0].Groups[1]) == spec.Ceil(p.N, v.Tile.Cols)
}

// Run runs the tests as subtests: by devices, variants and types of C, and those that need no device.
func (s *Suite) Run(t *testing.T) {
	many := map[string]bool{}
	s.Each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		t.Run("multiply", func(t *testing.T) {
			for _, q := range s.Cases(v, out) {
				t.Run(q.Name, func(t *testing.T) { q.Run(t, dev, s.Format, v, out) })
			}
		})
		if s.Twice != nil {
			t.Run("reproducible", func(t *testing.T) {
				for _, q := range s.Twice(v) {
					q.RunTwice(t, dev, s.Format, v, out, s.Units...)
				}
			})
		}
		t.Run("not finite", func(t *testing.T) { s.nonFinite(t, dev, v, out) })
		kind, panel := dev.Info().Backend+v.Unit.Source, s.Panel
		if panel.Value > 0 && v.Const(panel.Name) == panel.Value && v.In == dtype.F16 && !many[kind] {
			many[kind] = true
			t.Run("many panels", func(t *testing.T) { manyPanels(int(panel.Value)).Run(t, dev, s.Format, v, out) })
		}
	})
	if s.Others != nil {
		t.Run("load", s.load)
	}
	if s.Tiles != nil {
		t.Run("tiles", s.tiles)
	}
	t.Run("encode", s.encode)
	t.Run("launch", s.launch)
}

// Each runs f for each variant of each device, and type of C that the variant writes. With ForeignShapes, where the
// device is the software driver with cooperative matrices, it runs other vendors' tiles too, which the driver does not
// list but computes.
func (s *Suite) Each(t *testing.T, f func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type)) {
	t.Helper()
	if CompileOnly() {
		t.Log("this device runs nothing; it loads the code")
		return
	}
	Each(t, func(t *testing.T, dev backend.Device) {
		vs := Variants(dev, s.Format.Program)
		if c := dev.Caps(); ForeignShapes() && s.Others != nil && len(c.Matrix) > 0 && dev.Info().Kind == "cpu" {
			vs = append(vs, slices.DeleteFunc(s.Others(c.SubgroupMin),
				func(v *spec.Variant) bool { return s.Slow != nil && s.Slow(v) })...)
		}
		for _, v := range slices.Clone(vs) {
			if s.Also != nil && s.Also(v) != nil {
				vs = append(vs, s.Also(v))
			}
		}
		seen := map[string]bool{}
		for _, v := range vs {
			if seen[v.Name] {
				continue
			}
			seen[v.Name] = true
			for _, out := range append([]dtype.Type{v.Sums()}, v.Out...) {
				t.Run(v.Name+"/"+out.String(), func(t *testing.T) { f(t, dev, v, out) })
			}
		}
		s.complete(t, dev.Caps(), vs)
	})
}

// complete reports what there is no variant for.
func (s *Suite) complete(t *testing.T, caps backend.Caps, vs []*spec.Variant) {
	t.Helper()
	if s.Types == nil {
		return
	}
	for _, in := range s.Types(caps) {
		of := slices.DeleteFunc(slices.Clone(vs), func(v *spec.Variant) bool { return v.In != in })
		if len(of) == 0 {
			t.Errorf("no variant for %v", in)
		}
		for _, rows := range s.Heights {
			if !slices.ContainsFunc(of, func(v *spec.Variant) bool { return uint32(v.Tile.Panel) == rows }) {
				t.Errorf("no variant for %v and V = %d", in, rows)
			}
		}
	}
}

// manyPanels is a product with more panels than one side of a grid has room for.
func manyPanels(rows int) Case {
	q := Case{Pattern: make([][]int32, rows*65536+9), K: 5, N: 3, LDC: 3}
	for i := range q.Pattern {
		if i%997 == 0 || i == len(q.Pattern)-1 {
			q.Pattern[i] = []int32{int32(i % 5)}
		}
	}
	return q
}

// load: every device loads what its capabilities say it runs. On the driver that only compiles (AMD's) that is all that
// can be tested, and there all tiles are compiled in both wave sizes.
func (s *Suite) load(t *testing.T) {
	Each(t, func(t *testing.T, dev backend.Device) {
		vs := Variants(dev, s.Format.Program)
		if CompileOnly() {
			if s.Preferred != nil && !s.Preferred(vs) {
				t.Errorf("the variant for 16×16×16 and waves of 32 is not the first for this device")
			}
			vs = slices.Concat(vs, s.Others(32), s.Others(64))
		}
		for _, v := range vs {
			bin, err := s.Format.Binary(v)
			if err != nil {
				t.Fatal(err)
			}
			k, err := dev.Load(bin)
			if err != nil {
				t.Errorf("%s: %v", v.Name, err)
				continue
			}
			k.Close()
		}
	})
}
