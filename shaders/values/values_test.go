// New values at their places, on every device present.

package values_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
	"github.com/spmmrun/spmm/shaders/values"
)

type array = shadertest.Array

// newArray has room for n elements, of bytes that stand for "untouched".
func newArray(t dtype.Type, n int, fill byte) array {
	return array{Type: t, Data: bytes.Repeat([]byte{fill}, (n*t.Size()+15)&^15)}
}

// hard are floats that rounding must get right; random ones follow.
var hard = []float32{0, float32(math.Copysign(0, -1)), 1, -1, 65504, 65519.996, 65520, -1e30, 6e-8, 2.98e-8, 2.99e-8,
	1 + 1.0/2048, 1 + 3.0/2048, 1 + 1.0/256, 1 + 3.0/256,
	float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.SmallestNonzeroFloat32, math.MaxFloat32}

func newValues(r *rand.Rand, t dtype.Type, n, stride int) array {
	a := newArray(t, n*stride, 0x5b)
	for i := range n {
		x := math.Float32frombits(r.Uint32())
		if k := r.IntN(2 * len(hard)); k < len(hard) {
			x = hard[k]
		}
		if x != x {
			x = float32(math.NaN())
		}
		bits := shadertest.Converted(uint64(math.Float32bits(x)), dtype.F32, t)
		if t == dtype.F64 && x != 0 && x-x == 0 { // also next to values of a shorter type: rounding twice would show
			bits += uint64(r.IntN(3)) - 1
		}
		a.SetBits(i*stride, bits)
	}
	return a
}

// each runs f for each device with the types that it has, whether lists are taken, and a function that runs op on
// copies of the arrays and brings dst back.
func each(t *testing.T, f func(t *testing.T, types []dtype.Type, v *spec.Variant,
	run func(t *testing.T, op values.Op, src array, groups, sources []uint32, dst array))) {
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		types := []dtype.Type{dtype.F32, dtype.F16, dtype.BF16}
		if dev.Caps().F64 {
			types = append(types, dtype.F64)
		}
		first, err := values.Variant(dev.Caps(), dtype.F32, dtype.F32)
		if err != nil {
			t.Fatal(err)
		}
		f(t, types, first, func(t *testing.T, op values.Op, src array, groups, sources []uint32, dst array) {
			t.Helper()
			v, err := values.Variant(dev.Caps(), op.Src, op.Dst)
			if err != nil {
				t.Fatal(err)
			}
			l, err := values.Launch(v, op)
			if err != nil {
				t.Fatal(err)
			}
			shadertest.Fold(values.Program, &l) // as for huge matrices
			shadertest.Run(t, dev, values.Program, l, src.Data, backend.Bytes(groups), backend.Bytes(sources), dst.Data)
		})
	})
}

// Slots in any order, in windows of the entries, whole words or with neighbours that must stay.
func TestMapped(t *testing.T) {
	each(t, func(t *testing.T, types []dtype.Type, v *spec.Variant, run func(*testing.T, values.Op, array, []uint32,
		[]uint32, array)) {
		n := 0
		for _, groups := range []int{1, 3, 40, 150} {
			for full := values.FullNone; full <= values.FullQuads; full++ {
				for _, density := range []float64{0.05, 0.5, 1} {
					for _, st := range types {
						dt := types[(n+n/len(types))%len(types)]
						n++
						name := fmt.Sprintf("%d groups, %v to %v, full %d, density %g", groups, st, dt, full, density)
						t.Run(name, func(t *testing.T) { testMapped(t, v, run, groups, full, density, st, dt, 1+n%2*7, uint64(n)) })
					}
				}
			}
		}
	})
}

func testMapped(t *testing.T, v *spec.Variant, run func(*testing.T, values.Op, array, []uint32, []uint32, array),
	groups, full int, density float64, st, dt dtype.Type, stride int, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	const skip = 2 // groups before those that are mapped
	fill := byte(0)
	if full == values.FullNone {
		fill = 0x37
	}
	dst := newArray(dt, (skip+groups)*values.GroupSlots, fill)
	mask := make([]uint32, 2*groups)
	var slots []int
	for s := range groups * values.GroupSlots {
		if s%values.GroupSlots == 0 {
			mask[2*(s/values.GroupSlots)+1] = uint32(len(slots))
		}
		if r.Float64() < density {
			mask[2*(s/values.GroupSlots)] |= 1 << (s % values.GroupSlots)
			slots = append(slots, skip*values.GroupSlots+s)
		}
	}
	src := newValues(r, st, len(slots), stride)
	sources := make([]uint32, max(4, len(slots)))
	for i, e := range r.Perm(len(slots)) {
		sources[i] = uint32(e)
	}
	windows := [][2]int{{0, len(slots)}}
	if full == values.FullNone && len(slots) > 2 { // the middle stays as it is
		windows = [][2]int{{0, len(slots) / 3}, {len(slots)/2 + 1, len(slots)}}
	}
	want, listed := array{Type: dt, Data: bytes.Clone(dst.Data)}, array{Type: dt, Data: bytes.Clone(dst.Data)}
	for _, w := range windows {
		for i, s := range slots {
			if e := int(sources[i]); e >= w[0] && e < w[1] {
				want.SetBits(s, shadertest.Converted(src.Bits(e*stride), st, dt))
			}
		}
		op := values.Op{
			Src: st, Lo: int64(w[0]), Count: int64(w[1] - w[0]), Stride: stride, Dst: dt,
			Groups: int64(groups), Base: skip, Full: full, All: len(windows) == 1,
		}
		from := aligned(array{Type: st, Data: src.Data[w[0]*stride*st.Size()&^3:]}, w[0]*stride)
		run(t, op, from, mask, sources, dst)
		if values.Listed(v) && len(slots) > 0 {
			op.Groups, op.Entries = 0, int64(len(slots))
			list := []uint32{0, 0, 0, 0}
			if op.Run = len(slots) == groups*values.GroupSlots; op.Run {
				op.Base, op.First = 0, int64(slots[0])
			} else {
				list = list[:0]
				for _, s := range slots {
					list = append(list, uint32(s))
				}
			}
			run(t, op, from, list, sources, listed)
		}
	}
	compare(t, dst, want)
	if values.Listed(v) {
		compare(t, listed, want)
	}
}

// aligned returns the array from where a word starts, whose element odd is half a word further, moved to its start.
func aligned(a array, at int) array {
	if a.Size() > 2 || at%2 == 0 {
		return array{Type: a.Type, Data: bytes.Clone(a.Data)}
	}
	return array{Type: a.Type, Data: append(bytes.Clone(a.Data[2:]), 0, 0)}
}

func compare(t *testing.T, got, want array) {
	t.Helper()
	for i := range got.Len() {
		g, w := got.Bits(i), want.Bits(i)
		if g != w && !(nan(g, got.Type) && nan(w, got.Type)) {
			t.Fatalf("slot %d is %#x, want %#x", i, g, w)
		}
	}
}

func nan(x uint64, t dtype.Type) bool {
	f := math.Float64frombits(shadertest.Converted(x, t, dtype.F64))
	return f != f
}

// Entries in their order: a copy.
func TestStraight(t *testing.T) {
	each(t, func(t *testing.T, types []dtype.Type, v *spec.Variant, run func(*testing.T, values.Op, array, []uint32,
		[]uint32, array)) {
		none := make([]uint32, 4)
		for i, n := range []int{1, 2, 7, 8, 9, 511, 1024, 5000, 20001} {
			for _, st := range types {
				for _, dt := range types {
					for _, first := range []int{0, 5, 16} {
						r := rand.New(rand.NewPCG(uint64(i), uint64(first)))
						stride := 1 + i%2*7
						src := newValues(r, st, first+n, stride)
						dst := newArray(dt, n, 0)
						want := newArray(dt, n, 0)
						for i := range n {
							want.SetBits(i, shadertest.Converted(src.Bits((first+i)*stride), st, dt))
						}
						op := values.Op{
							Src: st, Count: int64(first + n), Stride: stride, Dst: dt, Slots: int64(n), First: int64(first),
							Full: values.FullQuads, All: true,
						}
						run(t, op, src, none, none, dst)
						compare(t, dst, want)
						// And again other values, in a window only: the others stay.
						lo, hi := first+n/4, first+n-n/3
						src = newValues(r, st, hi-lo, stride)
						for i := lo; i < hi; i++ {
							want.SetBits(i-first, shadertest.Converted(src.Bits((i-lo)*stride), st, dt))
						}
						op.Lo, op.Count, op.All = int64(lo), int64(hi-lo), false
						run(t, op, src, none, none, dst)
						compare(t, dst, want)
					}
				}
			}
		}
	})
}

func TestRefuses(t *testing.T) {
	ok := values.Op{Src: dtype.F16, Dst: dtype.F16, Count: 1, Stride: 1, Slots: 1}
	for name, change := range map[string]func(*values.Op){
		"elements of type":  func(o *values.Op) { o.Src = dtype.Invalid },
		"not possible":      func(o *values.Op) { o.Stride = 0 },
		"entries or slots":  func(o *values.Op) { o.Lo = math.MaxUint32 },
		"numbered in 32":    func(o *values.Op) { o.Count, o.Stride = 1<<30, 8 },
		"not possible: {2 ": func(o *values.Op) { o.Src, o.Groups = dtype.F16, -1 },
	} {
		op := ok
		change(&op)
		for _, v := range values.Program.Variants {
			_, err := values.Launch(v, op)
			if v.Code != backend.CodeWGSL && name == "numbered in 32" {
				if err != nil {
					t.Errorf("%s: %v", v.Name, err)
				}
				continue
			}
			if strings.HasPrefix(name, "not possible") {
				name = "not possible"
			}
			if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(name, "numbered") &&
				!errors.Is(err, backend.ErrUnsupported) {
				t.Errorf("%s: %v, want one about %q", v.Name, err, name)
			}
		}
	}
}
