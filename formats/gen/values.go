// Values of entries and of dense matrices.

package gen

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// Kind is a distribution of values.
type Kind uint8

// The distributions.
const (
	Normal  Kind = iota // about standard normal: the scaled sum of four uniform numbers, within ±3.5
	Uniform             // multiples of 2⁻²³ in [-1, 1)
	Ones                // 1
	Int                 // integers from Lo to Hi
)

var kindNames = [...]string{"normal", "uniform", "ones", "int"}

// Values says how to draw values. The zero Values draws normal ones.
type Values struct {
	Kind   Kind
	Lo, Hi int        // the range of Int, at most ±2²⁴
	Type   dtype.Type // F16 or BF16: values are rounded to that type; F32 or 0: they are not
}

// exactInts returns the largest n such that t holds all integers from -n to n.
func exactInts(t dtype.Type) int {
	switch t {
	case dtype.F16:
		return 1 << 11
	case dtype.BF16:
		return 1 << 8
	}
	return 1 << 24
}

// ParseValues reads "normal", "uniform", "ones", "int" (from -8 to 8) or "int:LO:HI".
func ParseValues(s string) (Values, error) {
	name, bounds, ranged := strings.Cut(s, ":")
	for k, n := range kindNames {
		if n != name || ranged && Kind(k) != Int {
			continue
		}
		v := Values{Kind: Kind(k)}
		if v.Kind == Int {
			return parseInt(s, bounds, ranged)
		}
		return v, nil
	}
	return Values{}, fmt.Errorf("unknown values %q (normal, uniform, ones, int or int:LO:HI)", s)
}

func parseInt(s, bounds string, ranged bool) (Values, error) {
	v := Values{Kind: Int, Lo: -8, Hi: 8}
	if !ranged {
		return v, nil
	}
	lo, hi, _ := strings.Cut(bounds, ":")
	var errLo, errHi error
	v.Lo, errLo = strconv.Atoi(lo)
	v.Hi, errHi = strconv.Atoi(hi)
	maxInt := exactInts(dtype.F32)
	if errLo != nil || errHi != nil || v.Lo > v.Hi || v.Lo < -maxInt || v.Hi > maxInt || v.Lo == 0 && v.Hi == 0 {
		return v, fmt.Errorf("values %q: want int:LO:HI, LO ≤ HI within ±%d, not both 0", s, maxInt)
	}
	return v, nil
}

// Entry returns the value of entry (i, j) of a sparse matrix: a function of seed, i and j alone, and
// never 0.
func (v Values) Entry(seed uint64, i, j int) float32 {
	return v.entry(newStream(seed, streamEntry), i, j)
}

func (v Values) entry(s stream, i, j int) float32 {
	x := v.value(s.at(uint64(i)<<32 | uint64(uint32(j))))
	if x != 0 {
		return x
	}
	switch {
	case v.Kind != Int:
		return 0x1p-14
	case v.Hi != 0:
		return v.round(float32(v.Hi))
	}
	return v.round(float32(v.Lo))
}

// value makes a value of 64 random bits: integer arithmetic and one rounding.
func (v Values) value(h uint64) float32 {
	switch v.Kind {
	case Uniform:
		return v.round(float32(int32(h>>40)-1<<23) * 0x1p-23)
	case Ones:
		return 1
	case Int:
		return v.round(float32(v.Lo + int(scale(h, uint64(v.Hi-v.Lo+1)))))
	}
	return v.round(float32(centred(h)) * (1.0 / centredSD))
}

func (v Values) round(x float32) float32 {
	switch v.Type {
	case dtype.F16:
		return half.F16From(x).Float32()
	case dtype.BF16:
		return half.BF16From(x).Float32()
	}
	return x
}

// Dense returns a row-major rows×cols matrix whose element (i, j) is a function of the seed and of
// i·cols+j alone.
func Dense(rows, cols int, seed uint64, v Values) *formats.Dense[float32] {
	return DenseRows(0, rows, cols, seed, v)
}

// DenseRows returns rows first to last-1 of the matrix that Dense returns.
func DenseRows(first, last, cols int, seed uint64, v Values) *formats.Dense[float32] {
	d := formats.NewDense[float32](last-first, cols)
	s, begin := newStream(seed, streamDense), uint64(first)*uint64(cols)
	par.Range(len(d.Data), 1<<15, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			d.Data[i] = v.value(s.at(begin + uint64(i)))
		}
	})
	return d
}
