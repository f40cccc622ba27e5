// Copies, transposes and conversions on every device present.

package densecopy_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/densecopy"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// each runs f with the types that each device has, and its variants.
func each(t *testing.T, f func(t *testing.T, types []dtype.Type, run func(t *testing.T, op densecopy.Op, src,
	dst matrix))) {
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		types := []dtype.Type{dtype.F32, dtype.F16, dtype.BF16}
		if dev.Caps().F64 {
			types = append(types, dtype.F64)
		} else {
			_, err := densecopy.Variant(dev.Caps(), dtype.F64)
			shadertest.Refused(t, "f64 on a device without", err, true)
		}
		f(t, types, func(t *testing.T, op densecopy.Op, src, dst matrix) {
			t.Helper()
			op.Src, op.Dst = src.layout, dst.layout
			v, err := densecopy.Suited(dev.Caps(), op)
			if err != nil {
				t.Fatal(err)
			}
			l, err := densecopy.Launch(v, op)
			if err != nil {
				t.Fatal(err)
			}
			shadertest.Fold(densecopy.Program, &l) // as for huge matrices
			shadertest.Run(t, dev, densecopy.Program, l, src.Data, bias(v.In), dst.Data)
		})
	})
}

// bias returns the bias of all tests: whole numbers, 8 elements apart, NaN in between.
func bias(t dtype.Type) []byte {
	x := make([]float64, 301*8)
	for i := range x {
		x[i] = math.NaN()
		if i%8 == 0 {
			x[i] = float64(i/8%7 - 3)
		}
	}
	if t != dtype.F64 {
		t = dtype.F32
	}
	return shadertest.NewArray(t, x).Data
}

// matrix is elements and how they lie.
type matrix struct {
	shadertest.Array
	layout densecopy.Layout
}

// newMatrix has room for lines of ld elements. All of it holds a pattern that stands for "untouched".
func newMatrix(l densecopy.Layout, lines int) matrix {
	m := matrix{shadertest.Array{Type: l.Type, Data: make([]byte, (l.First+lines*l.LD)*l.Type.Size())}, l}
	for i := range m.Data {
		m.Data[i] = byte(0x91 + 7*i)
	}
	return m
}

// index returns the number of an element in the buffer.
func (m matrix) index(i, j int) int {
	if m.layout.ColMajor {
		i, j = j, i
	}
	return m.layout.First + i*m.layout.LD + j
}

// Small integers in every layout: what is copied is exact, what lies between is untouched.
func TestCopy(t *testing.T) {
	sizes := [][2]int{{1, 1}, {1, 2}, {2, 1}, {3, 1}, {1, 301}, {5, 7}, {32, 64}, {33, 65}, {63, 31}, {70, 129}, {129, 70}}
	scales := [][2]float64{{1, 0}, {2, 0}, {1, 1}, {-3, 0.5}}
	each(t, func(t *testing.T, types []dtype.Type, run func(*testing.T, densecopy.Op, matrix, matrix)) {
		n := 0
		for _, size := range sizes {
			for order := range 4 {
				for pads := range 16 {
					k := len(types)
					st, dt := types[n%k], types[n/k%k]
					scale := scales[(n+n/(k*k))%4]
					n++
					op := densecopy.Op{Rows: size[0], Cols: size[1], Alpha: scale[0], Beta: scale[1]}
					if n%2 == 0 {
						op.Epilogue = spec.Epilogue{Bias: spec.Bias(n / 2 % 3), BiasShift: 3, Activation: spec.Activation(n / 6 % 2)}
					}
					src := newLayout(st, size, order&1 != 0, pads&3, n/4%2*(n%11))
					dst := newLayout(dt, size, order&2 != 0, pads>>2, 0)
					name := fmt.Sprintf("%d×%d %v ld %d col %v to %v ld %d col %v, alpha %v beta %v %v", op.Rows, op.Cols,
						st, src.layout.LD, src.layout.ColMajor, dt, dst.layout.LD, dst.layout.ColMajor, op.Alpha,
						op.Beta, op.Epilogue)
					t.Run(name, func(t *testing.T) { testCopy(t, run, op, src, dst) })
				}
			}
		}
	})
}

// Aligned matrices of 16-bit elements, for which some devices have another kernel.
func TestTranspose(t *testing.T) {
	sizes := [][2]int{{2, 2}, {8, 5}, {64, 64}, {65, 63}, {1, 40}, {40, 1}, {200, 129}, {7, 300}, {1030, 24},
		{128, 64}, {64, 192}}
	each(t, func(t *testing.T, _ []dtype.Type, run func(*testing.T, densecopy.Op, matrix, matrix)) {
		for i, size := range sizes {
			for _, colMajor := range []bool{false, true} {
				typ := []dtype.Type{dtype.F16, dtype.BF16}[i%2]
				up := func(n int) int { return -n & 7 } // padding
				src := newLayout(typ, size, colMajor, up(size[pick(colMajor, 0, 1)])+i%3*8, 0)
				dst := newLayout(typ, size, !colMajor, up(size[pick(colMajor, 1, 0)])+i%2*8, 0)
				src.layout.Aligned, dst.layout.Aligned = true, true
				op := densecopy.Op{Rows: size[0], Cols: size[1], Alpha: 1}
				t.Run(fmt.Sprintf("%d×%d, column-major %v", op.Rows, op.Cols, colMajor),
					func(t *testing.T) { testCopy(t, run, op, src, dst) })
			}
		}
	})
}

func pick(c bool, a, b int) int {
	if c {
		return a
	}
	return b
}

// newLayout is a matrix with the given padding of each line, which begins with a buffer's element of that number.
func newLayout(t dtype.Type, size [2]int, colMajor bool, pad, first int) matrix {
	lines, length := size[0], size[1]
	if colMajor {
		lines, length = length, lines
	}
	return newMatrix(densecopy.Layout{Type: t, First: first, LD: length + pad, ColMajor: colMajor}, lines)
}

func testCopy(t *testing.T, run func(*testing.T, densecopy.Op, matrix, matrix), op densecopy.Op, src, dst matrix) {
	want := matrix{shadertest.Array{Type: dst.Type, Data: bytes.Clone(dst.Data)}, dst.layout}
	for i := range op.Rows {
		for j := range op.Cols {
			s, d := src.index(i, j), dst.index(i, j)
			src.Set(s, float64((i*31+j*7)%23-11))
			y := op.Alpha * src.At(s)
			if op.Beta != 0 {
				dst.Set(d, float64((i+j)%5))
				y += op.Beta * dst.At(d)
			}
			switch op.Epilogue.Bias {
			case spec.RowBias:
				y += float64(i%7 - 3)
			case spec.ColBias:
				y += float64(j%7 - 3)
			}
			if op.Epilogue.Activation == spec.ReLU {
				y = max(y, 0)
			}
			want.Set(d, y)
		}
	}
	run(t, op, src, dst)
	for i := range dst.Len() {
		if dst.Bits(i) != want.Bits(i) {
			t.Fatalf("element %d of the buffer is %#x, want %#x", i, dst.Bits(i), want.Bits(i))
		}
	}
}

// Every 16-bit pattern, and float32 of all magnitudes and around ties, come out as package half has it.
func TestConvert(t *testing.T) {
	var floats []float32
	for h := range uint32(1 << 16) {
		for _, low := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001} {
			floats = append(floats, math.Float32frombits(h<<16|low)) // near bfloat16's values and ties
		}
		f := half.F16(h).Float32()
		tie := (f + half.F16(h+1).Float32()) / 2
		floats = append(floats, f, tie, math.Nextafter32(tie, 0), math.Nextafter32(tie, 1e9))
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 1 << 16 {
		floats = append(floats, math.Float32frombits(r.Uint32()))
	}
	each(t, func(t *testing.T, types []dtype.Type, run func(*testing.T, densecopy.Op, matrix, matrix)) {
		for _, st := range types {
			for _, dt := range types {
				for _, turned := range []bool{false, true} {
					t.Run(fmt.Sprintf("%v to %v, turned %v", st, dt, turned), func(t *testing.T) {
						n := len(floats)
						if st.Size() == 2 {
							n = 1 << 16
						}
						src := newMatrix(densecopy.Layout{Type: st, LD: 1, ColMajor: turned}, n)
						if turned {
							src.layout.LD = n
							src.Data = src.Data[:n*st.Size()]
						}
						for i := range n {
							switch st {
							case dtype.F64: // and what is a little more or less: rounding twice would tell
								x := float64(floats[i])
								src.Set(i, []float64{x, math.Nextafter(x, math.Inf(1)),
									math.Nextafter(x, math.Inf(-1))}[i%3])
							case dtype.F32:
								backend.View[float32](src.Data)[i] = floats[i]
							default:
								backend.View[uint16](src.Data)[i] = uint16(i)
							}
						}
						dst := newMatrix(densecopy.Layout{Type: dt, LD: 1}, n)
						run(t, densecopy.Op{Rows: n, Cols: 1, Alpha: 1}, src, dst)
						for i := range n {
							x, got, want := src.At(i), dst.At(i), shadertest.Converted(src.Bits(i), st, dt)
							if dst.Bits(i) != want && !(x != x && got != got) {
								t.Fatalf("%v (%#x) is %v (%#x), want %#x", x, src.Bits(i), got, dst.Bits(i), want)
							}
						}
					})
				}
			}
		}
	})
}

func TestLaunchRefuses(t *testing.T) {
	f16 := func(ld int) densecopy.Layout { return densecopy.Layout{Type: dtype.F16, LD: ld} }
	tests := []struct {
		name        string
		op          densecopy.Op
		unsupported bool
	}{
		{"type", densecopy.Op{Rows: 1, Cols: 1, Src: f16(1), Dst: densecopy.Layout{Type: dtype.S8, LD: 1}}, false},
		{"negative", densecopy.Op{Rows: -1, Cols: 1, Src: f16(1), Dst: f16(1)}, false},
		{"source ld", densecopy.Op{Rows: 2, Cols: 9, Src: f16(8), Dst: f16(9)}, false},
		{"destination ld", densecopy.Op{Rows: 9, Cols: 2, Src: f16(2), Dst: densecopy.Layout{Type: dtype.F32, LD: 8,
			ColMajor: true}}, false},
		{"huge ld", densecopy.Op{Rows: 9, Cols: 2, Src: f16(2), Dst: f16(1 << 30)}, true},
		{"huge grid", densecopy.Op{Rows: math.MaxInt32, Cols: 1 << 28, Src: f16(1 << 28),
			Dst: densecopy.Layout{Type: dtype.F32, LD: 1 << 29}}, true},
	}
	for _, v := range densecopy.Program.Variants {
		for _, tt := range tests {
			tt.op.Alpha = 1
			_, err := densecopy.Launch(v, tt.op)
			shadertest.Refused(t, v.Name+", "+tt.name, err, tt.unsupported)
		}
		empty := densecopy.Op{Rows: 0, Cols: 5, Src: f16(8), Dst: f16(8)}
		if v.Name == "cuda_transpose" { // which takes no other
			empty.Cols, empty.Src.LD = 64, 64
			empty.Src.Aligned, empty.Dst.Aligned, empty.Dst.ColMajor, empty.Alpha = true, true, true, 1
		}
		l, err := densecopy.Launch(v, empty)
		if err != nil || l.Passes[0].Groups[0] != 0 {
			t.Errorf("%s: an empty copy gives groups %v, error %v", v.Name, l.Passes, err)
		}
	}
	_, err := densecopy.Variant(backend.Caps{})
	shadertest.Refused(t, "a device without code", err, true)
}
