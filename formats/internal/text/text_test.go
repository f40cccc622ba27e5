// Numbers held against strconv, and lines and tokens from awkward readers.

package text_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/spmmrun/spmm/formats/internal/text"
)

// checkFloat holds Float32 and Float64 against strconv.
func checkFloat(t *testing.T, tok string) {
	t.Helper()
	got, n, _ := text.Float32([]byte(tok))
	want, _ := strconv.ParseFloat(strings.Replace(strings.ToLower(tok), "d", "e", 1), 64)
	if n != len(tok) || math.Float32bits(got) != math.Float32bits(float32(want)) {
		t.Fatalf("%q: %v (%#x) and %d bytes, want %v (%#x)", tok, got, math.Float32bits(got), n, want,
			math.Float32bits(float32(want)))
	}
	if wide, n, _ := text.Float64([]byte(tok)); n != len(tok) || math.Float64bits(wide) != math.Float64bits(want) {
		t.Fatalf("%q as float64: %v and %d bytes, want %v", tok, wide, n, want)
	}
}

func TestFloat32(t *testing.T) {
	for _, tok := range []string{
		"0", "-0", "+0.0e5", "1", "-1", ".5", "5.", "1e0", "1E+2", "1d-3", "2D3", "0.1", "16777217", "16777219",
		"33554435e-1",
		"3.4028234e38", "3.4028235677973366e38", "3.4028236e38", "-1e39", "1e400", "1e-400", "1.1754943508222875e-38",
		"1e-45", "7e-46", "1.4e-45", "1e-57", "18446744073709551615e-57", "9999999999999999999e19", "99999999999999999999",
		"1.00000005960464477539062500000000000001", "1.000000059604644775390625", "1.00000005960464477539062499999999999999",
		"0.000000000000000000000000000000000000000000000000000000012345678901234567890123", "1" + strings.Repeat("0", 60) + "e-60",
		"1e99999999999999999999", "1e-99999999999999999999", "0e99999999", strings.Repeat("9", 400), "0." +
			strings.Repeat("0", 400) + "1e401",
	} {
		checkFloat(t, tok)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 60000 {
		x := math.Float32frombits(r.Uint32() &^ 0x80000000)
		if x != x || math.IsInf(float64(x), 0) {
			continue
		}
		next := math.Float32frombits(math.Float32bits(x) + 1)
		mid := (float64(x) + float64(next)) / 2 // exact, as are its 17 digits plus more
		checkFloat(t, strconv.FormatFloat(float64(x), 'e', r.IntN(24), 64))
		checkFloat(t, strconv.FormatFloat(mid, 'e', 15+r.IntN(30), 64))
		checkFloat(t, strconv.FormatFloat(mid*(1+float64(r.IntN(9)-4)*0x1p-52), 'e', 16+r.IntN(8), 64))
		checkFloat(t, fmt.Sprintf("%de%d", r.Uint64()>>r.IntN(64), r.IntN(80)-60))
		checkFloat(t, strconv.FormatFloat(float64(r.IntN(2000000))/1000, 'f', r.IntN(6), 64))
	}
}

func TestFloat32Prefixes(t *testing.T) {
	for tok, want := range map[string]int{
		"": 0, "-": 0, ".": 0, "+.": 0, "e5": 0, "1e": 0, "1e+": 0, "nan": 0, "inf": 0, "-Inf": 0, "x": 0,
		"1 2": 1, "1.5.5": 3, "0x10": 1, "1_0": 1, "--1": 0, "12abc": 2, "1e5e5": 3,
	} {
		if _, n, _ := text.Float32([]byte(tok)); n != want {
			t.Errorf("%q: %d bytes are a number, want %d", tok, n, want)
		}
	}
	for tok, want := range map[string]bool{"12": true, "-7": true, "1.": false, "1e0": false,
		"99999999999999999999999": true} {
		if _, _, integer := text.Float32([]byte(tok)); integer != want {
			t.Errorf("%q: integer is %v", tok, integer)
		}
	}
}

func TestInt(t *testing.T) {
	for tok, want := range map[string][2]int64{
		"7": {7, 1}, "-12 ": {-12, 3}, "+5": {5, 2}, "": {0, 0}, "-": {0, 0}, "x": {0, 0}, "007": {7, 3},
		"999999999999999999": {999999999999999999, 18}, "1000000000000000000": {0, 0}, "3.5": {3, 1},
	} {
		if v, n := text.Int([]byte(tok)); v != want[0] || int64(n) != want[1] {
			t.Errorf("%q: %d in %d bytes, want %v", tok, v, n, want)
		}
	}
}

func FuzzFloat32(f *testing.F) {
	for _, s := range []string{"1.5e3", "-0.1", "1d5", "8388608.5", "1e-45", "18446744073709551616"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, n, _ := text.Float32([]byte(s)); n > 0 {
			checkFloat(t, s[:n])
		}
	})
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	input := "a\r\n\n" + long + "\n" + long + "\nlast"
	for _, r := range []io.Reader{strings.NewReader(input), iotest.OneByteReader(strings.NewReader(input)),
		iotest.DataErrReader(strings.NewReader(input))} {
		s := text.NewScanner(r, "f")
		for _, want := range []string{"a", "", long, long, "last"} {
			if got, ok := s.Line(); !ok || string(got) != want {
				t.Fatalf("line %q, want %q", text.Quote(got), text.Quote([]byte(want)))
			}
		}
		if _, ok := s.Line(); ok || s.Err() != nil {
			t.Fatalf("after the last line: %v, %v", ok, s.Err())
		}
	}
}

func TestScannerErrors(t *testing.T) {
	tests := map[string]struct {
		r    io.Reader
		want string
	}{
		"long": {strings.NewReader("a\n" + strings.Repeat("x", 300<<10)), "f:2: line longer than 262144 bytes"},
		"failing": {io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(io.ErrClosedPipe)),
			"f:1: io: read/write on closed pipe"},
		"cut": {io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(io.ErrUnexpectedEOF)),
			"f:1: compressed data is cut off"},
		"stalling": {stalling{}, "f:1: multiple Read calls return no data or error"},
	}
	for name, tt := range tests {
		s := text.NewScanner(tt.r, "f")
		for ok := true; ok; {
			_, ok = s.Line()
		}
		if err := s.Err(); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

type stalling struct{}

func (stalling) Read([]byte) (int, error) { return 0, nil }

func TestInts(t *testing.T) {
	var input bytes.Buffer
	const n = 100000
	for i := range n {
		fmt.Fprint(&input, i, []string{" ", ",", "\n", "\r\n", ", ", "\t"}[i%6])
	}
	for _, r := range []io.Reader{bytes.NewReader(input.Bytes()), iotest.HalfReader(bytes.NewReader(input.Bytes()))} {
		s := text.NewScanner(r, "f")
		for i := range int64(n) {
			if v, ok, err := s.Int(); v != i || !ok || err != nil {
				t.Fatalf("integer %d is %d (%v, %v)", i, v, ok, err)
			}
		}
		if _, ok, err := s.Int(); ok || err != nil {
			t.Fatalf("after the last: %v, %v", ok, err)
		}
	}
	for input, want := range map[string]string{
		"1\n2 x3": `f:2: "x3" is not an integer`,
		"1.5":     `f:1: "1.5" is not an integer`,
		"99999999999999999999999999999999999999999": `f:1: "999999999999999999999999"… is not an integer`,
	} {
		s := text.NewScanner(strings.NewReader(input), "f")
		var err error
		for ok := true; ok; {
			_, ok, err = s.Int()
		}
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", input, err, want)
		}
	}
}

func BenchmarkFloat32(b *testing.B) {
	toks := make([][]byte, 1000)
	n := 0
	r := rand.New(rand.NewPCG(1, 1))
	for i := range toks {
		toks[i] = strconv.AppendFloat(nil, r.NormFloat64(), 'e', 15, 64)
		n += len(toks[i])
	}
	b.SetBytes(int64(n))
	for b.Loop() {
		for _, tok := range toks {
			text.Float32(tok)
		}
	}
}
