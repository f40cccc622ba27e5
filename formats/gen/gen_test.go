// What specs promise: the same matrix everywhere, patterns, densities, values, refusals.

package gen_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
)

func mustCSR(t testing.TB, spec string) *formats.CSR[float32] {
	t.Helper()
	a, err := gen.CSR(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Validate(); err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	return a
}

func digest(a *formats.CSR[float32]) string {
	h := sha256.New()
	for _, array := range []any{a.RowPtr, a.ColIdx, a.Val} {
		if err := binary.Write(h, binary.LittleEndian, array); err != nil {
			panic(err)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

func row(a *formats.CSR[float32], i int) []int32 { return a.ColIdx[a.RowPtr[i]:a.RowPtr[i+1]] }

// The digests are part of what the package promises: the same matrix everywhere, for ever.
func TestSameOnEveryMachine(t *testing.T) {
	for spec, want := range map[string]string{
		"gen:uniform,rows=1000,cols=777,density=0.1,seed=1":                          "baa061a39b4f911c",
		"gen:uniform,rows=1000,cols=50,sparsity=0.03":                                "5bb1baaccb40d31b",
		"gen:uniform,rows=10000,cols=10000,density=0.00001":                          "5713aa3af5efb8c7",
		"gen:uniform,rows=1000,cols=10000,nnz-per-row=7":                             "a3b92ce6930093a4",
		"gen:uniform,rows=10,cols=100000,nnz-per-row=20":                             "a0e78d196e6a941d",
		"gen:uniform,rows=1000,cols=777,density=0.3,jitter=0.9":                      "56c76dda4e7d92ab",
		"gen:vector,rows=1003,cols=99,v=8":                                           "95d9b0e4b0ed3b56",
		"gen:block,rows=1003,cols=997,block=16":                                      "d6d5a46893ab5774",
		"gen:nm,rows=33,cols=1001,n=2,m=4,v=4":                                       "1846485f6354b71d",
		"gen:banded,rows=1000,cols=500":                                              "87f73061bd7693b5",
		"gen:powerlaw,rows=100000,cols=100000,density=0.0001,alpha=2.2":              "e92c47b63bc7d943",
		"gen:powerlaw,rows=10000,alpha=1.5,nnz-per-row=20":                           "fb538f637adfef0b",
		"gen:onedense,density=0.001":                                                 "00b874cd53e50b9a",
		"gen:diagonal,rows=10,cols=20,values=uniform":                                "955206eb5d56b627",
		"gen:rmat,scale=11,seed=3":                                                   "03cfd4516e1b269f",
		"gen:rmat,scale=12,degree=3,permute=0,empty=0.1,values=int":                  "9e7358f1c2e73c4a",
		"gen:stencil,side=11":                                                        "8bcd51f52d8258a4",
		"gen:stencil,side=50,points=9":                                               "2e76aaa6087ab48e",
		"gen:vector,v=16,empty=0.5,values=int:-3:3,type=bf16,seed=99,nnz-per-row=40": "4f0dabc43fd0173e",
	} {
		if got := digest(mustCSR(t, spec)); got != want {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
	}
}

func TestPatterns(t *testing.T) {
	tests := []struct {
		spec  string
		check func(a *formats.CSR[float32], i int) error // of row i
	}{
		{"gen:uniform,rows=200,cols=3000,nnz-per-row=100", wantLen(100)},
		{"gen:uniform,rows=20,cols=3,nnz-per-row=100", wantLen(3)},
		{"gen:uniform,rows=20,cols=300,density=1", wantLen(300)},
		{"gen:uniform,rows=20,cols=300,density=0", wantLen(0)},
		{"gen:uniform,rows=20,cols=300,empty=1", wantLen(0)},
		{"gen:vector,rows=83,cols=500,v=8,density=0.2", func(a *formats.CSR[float32], i int) error {
			return same(row(a, i), row(a, i/8*8))
		}},
		{"gen:nm,rows=30,cols=1002,n=2,m=4", perGroup(2, 4)},
		{"gen:nm,rows=30,cols=1003,n=1,m=16,v=3", perGroup(1, 16)},
		{"gen:nm,rows=3,cols=1003,n=20,m=100", perGroup(20, 100)},
		{"gen:banded,rows=300,cols=200,band=3", func(a *formats.CSR[float32], i int) error {
			var want []int32
			for j := max(0, i-3); j < min(200, i+4); j++ {
				want = append(want, int32(j))
			}
			return same(row(a, i), want)
		}},
		{"gen:diagonal,rows=7,cols=5", func(a *formats.CSR[float32], i int) error {
			if i < 5 {
				return same(row(a, i), []int32{int32(i)})
			}
			return same(row(a, i), nil)
		}},
		{"gen:block,rows=70,cols=67,block=8,density=0.5", func(a *formats.CSR[float32], i int) error {
			for _, j := range row(a, i) {
				for c := j / 8 * 8; c < min(67, j/8*8+8); c++ {
					if !slices.Contains(row(a, i/8*8), c) {
						return fmt.Errorf("column %d is missing from its block", c)
					}
				}
			}
			return same(row(a, i), row(a, i/8*8))
		}},
		{"gen:onedense,rows=64,cols=900,row=3,density=0.01,empty=0.5", func(a *formats.CSR[float32], i int) error {
			if n := len(row(a, i)); (n == 900) != (i == 3) {
				return fmt.Errorf("%d entries", n)
			}
			return nil
		}},
	}
	for _, tt := range tests {
		a := mustCSR(t, tt.spec)
		for i := range a.Rows {
			if err := tt.check(a, i); err != nil {
				t.Errorf("%s: row %d: %v", tt.spec, i, err)
				break
			}
		}
	}
}

func wantLen(n int) func(*formats.CSR[float32], int) error {
	return func(a *formats.CSR[float32], i int) error {
		if len(row(a, i)) != n {
			return fmt.Errorf("%d entries, want %d", len(row(a, i)), n)
		}
		return nil
	}
}

func perGroup(n, m int) func(*formats.CSR[float32], int) error {
	return func(a *formats.CSR[float32], i int) error {
		count := make([]int, (a.Cols+m-1)/m)
		for _, j := range row(a, i) {
			count[int(j)/m]++
		}
		for g, c := range count {
			if c != min(n, a.Cols-g*m) {
				return fmt.Errorf("group %d has %d", g, c)
			}
		}
		return nil
	}
}

func same(got, want []int32) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("columns %v, want %v", got, want)
	}
	return nil
}

// Densities are right on average, whichever way row lengths are drawn, and columns are even.
func TestDensity(t *testing.T) {
	for _, tt := range []struct {
		spec string
		want float64
	}{
		{"gen:uniform,rows=20000,cols=1000,density=0.0003", 0.0003},
		{"gen:uniform,rows=5000,cols=1000,density=0.01", 0.01},
		{"gen:uniform,rows=2000,cols=1000,density=0.1", 0.1},
		{"gen:uniform,rows=2000,cols=1000,sparsity=0.25", 0.75},
		{"gen:uniform,rows=2000,cols=40,density=0.6", 0.6},
		{"gen:uniform,rows=2000,cols=1000,density=0.5,jitter=1", 0.5},
		{"gen:uniform,rows=20000,cols=1000,density=0.01,jitter=0.5", 0.01},
		{"gen:uniform,rows=2000,cols=1000,density=0.1,empty=0.25", 0.075},
		{"gen:block,rows=8000,cols=1001,block=4,density=0.1", 0.1},
		{"gen:powerlaw,rows=20000,cols=20000,density=0.001,alpha=2.5", 0.001},
	} {
		a := mustCSR(t, tt.spec)
		got := float64(a.NNZ()) / float64(a.Rows) / float64(a.Cols)
		if math.Abs(got-tt.want) > 0.03*tt.want {
			t.Errorf("%s: density %v, want about %v", tt.spec, got, tt.want)
		}
	}
	count := make([]int, 100)
	a := mustCSR(t, "gen:uniform,rows=30000,cols=100,density=0.3")
	for _, j := range a.ColIdx {
		count[j]++
	}
	for j, n := range count {
		if n < 8500 || n > 9500 {
			t.Errorf("column %d has %d entries, want about 9000", j, n)
		}
	}
}

// Rows have all densities that jitter allows, and no others, equally often.
func TestJitter(t *testing.T) {
	a := mustCSR(t, "gen:uniform,rows=8000,cols=10000,density=0.2,jitter=0.5")
	var twentieths [20]int
	for i := range a.Rows {
		density := float64(len(row(a, i))) / 10000
		if density < 0.09 || density > 0.32 {
			t.Fatalf("row %d has density %v, want 0.1 to 0.3", i, density)
		}
		twentieths[min(19, max(0, int((density-0.1)*100)))]++
	}
	for i, n := range twentieths {
		if n < 300 || n > 500 {
			t.Errorf("%d rows with a density about %.3g, want about 400", n, 0.105+float64(i)/100)
		}
	}
}

func TestPowerLawHasHeavyRows(t *testing.T) {
	a := mustCSR(t, "gen:powerlaw,rows=20000,cols=20000,nnz-per-row=10,alpha=2")
	lengths := make([]int, a.Rows)
	for i := range lengths {
		lengths[i] = len(row(a, i))
	}
	slices.Sort(lengths)
	if median, most := lengths[len(lengths)/2], lengths[len(lengths)-1]; median > 5 || most < 1000 {
		t.Errorf("median %d, longest %d: no power law", median, most)
	}
}

func TestValues(t *testing.T) {
	for _, name := range []string{"normal", "uniform", "ones", "int", "int:-3:0", "int:5:5"} {
		for _, typ := range []dtype.Type{dtype.F32, dtype.F16, dtype.BF16} {
			a := mustCSR(t, fmt.Sprintf("gen:uniform,rows=300,cols=300,values=%s,type=%v", name, typ))
			v, err := gen.ParseValues(name)
			if err != nil {
				t.Fatal(err)
			}
			v.Type = typ
			sum, squares := checkValues(t, v, a)
			n := float64(a.NNZ())
			if v.Kind == gen.Normal && (math.Abs(sum/n) > 0.05 || math.Abs(squares/n-1) > 0.05) {
				t.Errorf("normal %v: mean %v, variance %v", typ, sum/n, squares/n)
			}
		}
	}
}

// checkValues checks range and type of all of a's entries and returns their sum and sum of squares.
func checkValues(t *testing.T, v gen.Values, a *formats.CSR[float32]) (sum, squares float64) {
	t.Helper()
	f16, bf16 := formats.Convert[half.F16](a), formats.Convert[half.BF16](a)
	for p, x := range a.Val {
		switch {
		case x == 0:
			t.Fatalf("%v: entry %d is 0", v, p)
		case v.Kind == gen.Uniform && (x < -1 || x > 1), v.Kind == gen.Ones && x != 1,
			v.Kind == gen.Int && (x != float32(int(x)) || int(x) < v.Lo || int(x) > v.Hi):
			t.Fatalf("%v: entry %d is %v", v, p, x)
		case v.Type == dtype.F16 && f16.Val[p].Float32() != x, v.Type == dtype.BF16 && bf16.Val[p].Float32() != x:
			t.Fatalf("%v: entry %d is %v, no %v", v, p, x, v.Type)
		}
		sum, squares = sum+float64(x), squares+float64(x)*float64(x)
	}
	return sum, squares
}

func TestEntryIsTheMatrixEntry(t *testing.T) {
	a := mustCSR(t, "gen:uniform,rows=30,cols=40,seed=5,values=uniform")
	for i := range a.Rows {
		for p, j := range row(a, i) {
			if want := (gen.Values{Kind: gen.Uniform}).Entry(5, i, int(j)); a.Val[a.RowPtr[i]+int64(p)] != want {
				t.Fatalf("entry (%d, %d) differs from Entry", i, j)
			}
		}
	}
}

func TestDense(t *testing.T) {
	d := gen.Dense(100, 37, 3, gen.Values{Kind: gen.Int, Lo: -2, Hi: 2})
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	count := map[float32]int{}
	for _, x := range d.Data {
		count[x]++
	}
	for x := float32(-2); x <= 2; x++ {
		if n := count[x]; n < 600 || n > 900 {
			t.Errorf("%v appears %d times among %d, want about a fifth", x, n, len(d.Data))
		}
	}
	if len(count) != 5 {
		t.Errorf("values %v, want -2 to 2", count)
	}
	if d.Equal(gen.Dense(100, 37, 4, gen.Values{Kind: gen.Int, Lo: -2, Hi: 2})) {
		t.Error("another seed gives the same matrix")
	}
}

func TestErrors(t *testing.T) {
	for spec, want := range map[string]string{
		"uniform":                                `does not start with "gen:"`,
		"gen:":                                   `unknown kind "" (banded, block, diagonal, nm, onedense, powerlaw, rmat, stencil, uniform, vector)`,
		"gen:unifrom":                            `unknown kind "unifrom"`,
		"gen:uniform,rowz=3":                     `unknown key "rowz" (uniform takes cols, density, empty, jitter, k, m, nnz-per-row, rows, seed, sparsity, type, values)`,
		"gen:uniform,v=3":                        `unknown key "v"`,
		"gen:uniform,":                           `unknown key ""`,
		"gen:uniform,rows":                       "rows=: want an integer from 0 to 2147483647",
		"gen:uniform,rows=-1":                    "rows=-1: want an integer",
		"gen:uniform,rows=1e3":                   "rows=1e3: want an integer",
		"gen:uniform,rows=99999999999999":        "want an integer",
		"gen:uniform,rows=3,rows=4":              "rows is given twice",
		"gen:uniform,rows=3,m=4":                 "rows and m say the same thing",
		"gen:uniform,density=0.1,sparsity=0.9":   "density and sparsity say the same thing",
		"gen:uniform,density=1.5":                "density=1.5: want a number from 0 to 1",
		"gen:uniform,density=NaN":                "want a number",
		"gen:uniform,jitter=1.5":                 "jitter=1.5: want a number from 0 to 1",
		"gen:vector,jitter=0.5":                  `unknown key "jitter"`,
		"gen:uniform,density=0.8,jitter=0.5":     "jitter=0.5 makes rows more than full, with density 0.8: want at most 0.25",
		"gen:uniform,nnz-per-row=3,jitter=0.5":   "jitter=0.5 varies a density, and rows have exactly nnz-per-row=3 entries",
		"gen:powerlaw,alpha=1":                   "alpha=1: want more than 1",
		"gen:vector,v=0":                         "v=0: want an integer from 1",
		"gen:nm,n=5,m=4":                         "n=5 is more than m=4",
		"gen:block,block=16,nnz-per-row=20":      "nnz-per-row=20 is no multiple of block=16",
		"gen:onedense,rows=4,row=4":              "row=4 is outside the 4 rows",
		"gen:uniform,seed=-1":                    "seed=-1: want an integer from 0",
		"gen:uniform,values=gauss":               `unknown values "gauss" (normal, uniform, ones, int or int:LO:HI)`,
		"gen:uniform,values=int:3:1":             "want int:LO:HI",
		"gen:uniform,values=int:0:0":             "want int:LO:HI",
		"gen:uniform,values=ones:1":              "unknown values",
		"gen:uniform,type=f64":                   "type=f64: want f16, bf16 or f32",
		"gen:uniform,values=int:0:257,type=bf16": "bf16 holds the integers to ±256, not all of 0 to 257",
	} {
		_, err := gen.Parse(spec, 0)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
}

func TestLimits(t *testing.T) {
	for spec, want := range map[string]string{
		"gen:uniform,rows=2000000000,cols=10":             "2000000000 rows are beyond the limit of 1000000",
		"gen:uniform,rows=10,cols=2000000000":             "columns are beyond",
		"gen:uniform,rows=1000000,cols=1000000,density=1": "entries are beyond the limit of 5000",
	} {
		s, err := gen.Parse(spec, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Generate(context.Background(), formats.Limits{Rows: 1e6, Cols: 1e6, NNZ: 5000})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, spec := range []string{"gen:uniform,rows=100", "gen:powerlaw,rows=2000000000,cols=10"} {
		s, err := gen.Parse(spec, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Generate(ctx, formats.Limits{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", spec, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"gen:uniform,rows=9,density=0.5", "gen:nm,n=2,m=4,v=2", "gen:block,block=3,cols=10",
		"gen:powerlaw,alpha=1.01,empty=0.5", "gen:onedense,row=1", "gen:banded,band=0,values=int:-1:1,type=f16"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		s, err := gen.Parse(spec, 0)
		if err != nil {
			return
		}
		a, err := s.Generate(context.Background(), formats.Limits{Rows: 300, Cols: 300, NNZ: 1e5})
		if err != nil {
			return
		}
		if err := a.Validate(); err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
	})
}

func ExampleCSR() {
	a, err := gen.CSR("gen:nm,rows=2,cols=8,n=2,m=4,values=int:1:9,seed=4")
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range a.Rows {
		fmt.Println(a.ColIdx[a.RowPtr[i]:a.RowPtr[i+1]], a.Val[a.RowPtr[i]:a.RowPtr[i+1]])
	}
	// Output:
	// [2 3 5 7] [4 9 4 2]
	// [2 3 4 6] [3 7 9 5]
}

func ExampleDense() {
	b := gen.Dense(2, 3, 1, gen.Values{Kind: gen.Int, Lo: -9, Hi: 9})
	fmt.Println(b.Data)
	// Output: [-5 9 3 0 -3 -8]
}

func BenchmarkUniform(b *testing.B) {
	var n int64
	for b.Loop() {
		n = mustCSR(b, "gen:uniform,rows=4096,sparsity=0.9").NNZ()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mnnz/s")
}

func BenchmarkDense(b *testing.B) {
	b.SetBytes(4 << 20)
	for b.Loop() {
		gen.Dense(1024, 1024, 1, gen.Values{})
	}
}
