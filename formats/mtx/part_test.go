// Parts of a file, one after the other, are the file.

package mtx_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/mtx"
)

// joined reads a file in parts, and returns the matrix that they make.
func joined(text string, parts int, limits formats.Limits) (*formats.CSR[float32], error) {
	var all *formats.COO[float32]
	listed, declared := int64(0), int64(0)
	for k := range parts {
		p, err := mtx.ReadPart(strings.NewReader(text), int64(len(text)), k, parts, mtx.Options{Name: "f", Limits: limits})
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = &formats.COO[float32]{Rows: p.Rows, Cols: p.Cols}
		}
		listed, declared = listed+p.Listed, p.Declared
		all.Row, all.Col, all.Val = append(all.Row, p.Entries.Row...), append(all.Col, p.Entries.Col...),
			append(all.Val, p.Entries.Val...)
	}
	if listed != declared {
		return nil, fmt.Errorf("%d of %d entries", listed, declared)
	}
	return all.ToCSR(formats.SumDuplicates)
}

func TestParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "n")
		kind := rapid.SampledFrom([]string{"real general", "real symmetric", "real skew-symmetric", "integer general",
			"pattern general", "pattern symmetric"}).Draw(t, "kind")
		var lines []string
		for range rapid.IntRange(0, 60).Draw(t, "entries") {
			i, j := rapid.IntRange(1, n).Draw(t, "i"), rapid.IntRange(1, n).Draw(t, "j")
			if !strings.Contains(kind, "general") && i < j {
				i, j = j, i
			}
			if strings.Contains(kind, "skew") && i == j {
				continue
			}
			line := fmt.Sprintf("%d %d", i, j)
			switch {
			case strings.HasPrefix(kind, "real"):
				line += fmt.Sprintf(" %.*f", rapid.IntRange(0, 9).Draw(t, "digits"), rapid.Float32Range(-9, 9).Draw(t, "v"))
			case strings.HasPrefix(kind, "integer"):
				line += fmt.Sprintf(" %d", rapid.IntRange(-9, 9).Draw(t, "v"))
			}
			lines = append(lines, line)
		}
		between := rapid.SampledFrom([]string{"\n", "\r\n", "\n\n", "\n% comment\n"}).Draw(t, "between")
		text := "%%MatrixMarket matrix coordinate " + kind + "\n% c\n" + fmt.Sprintf("%d %d %d\n", n, n, len(lines)) +
			strings.Join(lines, between)
		if rapid.Bool().Draw(t, "ends") {
			text += "\n"
		}
		want, err := mtx.Read(strings.NewReader(text), mtx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, parts := range []int{1, 2, 3, 50} {
			got, err := joined(text, parts, formats.Limits{})
			if err != nil || !got.Equal(want) {
				t.Fatalf("%d parts of\n%s: %v", parts, text, err)
			}
		}
	})
}

// Errors are those of the whole file, with its line numbers.
func TestPartErrors(t *testing.T) {
	body := strings.Repeat("1 1 2.5\n", 40)
	for _, text := range []string{
		"%%MatrixMarket matrix coordinate real general\n3 3 41\n" + body + "4 1 2\n",
		"%%MatrixMarket matrix coordinate real general\n3 3 81\n" + body + "1 1 x\n" + body,
		"%%MatrixMarket matrix coordinate real general\n3 3\n",
	} {
		_, want := mtx.Read(strings.NewReader(text), mtx.Options{Name: "f"})
		_, got := joined(text, 3, formats.Limits{})
		if want == nil || got == nil || got.Error() != want.Error() {
			t.Errorf("%v, want %v", got, want)
		}
	}
	// Limits are for a part.
	text := "%%MatrixMarket matrix coordinate real general\n3 3 40\n" + body
	for entries, refused := range map[int64]bool{19: true, 21: false} {
		o := mtx.Options{Limits: formats.Limits{NNZ: entries}}
		if _, err := mtx.ReadPart(strings.NewReader(text), int64(len(text)), 0, 2, o); (err != nil) != refused {
			t.Errorf("at most %d entries in each of two parts of 40: %v", entries, err)
		}
	}
	zipped, err := os.ReadFile("../../testdata/matrices/ca-CondMat.mtx.gz")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"gzip": zipped,
		"array": []byte("%%MatrixMarket matrix array real general\n1 1\n2\n"), "nothing": nil, "text": []byte("1 2 3")} {
		if _, err := mtx.ReadPart(bytes.NewReader(b), int64(len(b)), 0, 2, mtx.Options{}); !errors.Is(err, mtx.ErrWhole) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a file says: its parts make the matrix that the whole is, or one of them is refused where the whole is.
func FuzzParts(f *testing.F) {
	for _, s := range []string{
		"%%MatrixMarket matrix coordinate real general\n3 4 3\n1 1 2.5\n2 4 -1\n3 2 1e-3\n",
		"%%MatrixMarket matrix coordinate integer symmetric\n% c\n4 4 3\n1 1 2\n\n4 1 3\n% c\n3 2 -1",
		"%%MatrixMarket matrix coordinate pattern general\r\n2 2 2\r\n1 2\r\n1 2\r\n",
		"%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 1\n3 1 7\n",
	} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, parts uint8) {
		n := int(parts)%8 + 1
		limits := formats.Limits{Rows: 1e4, Cols: 1e4, NNZ: 1e4}
		want, err := mtx.Read(bytes.NewReader(text), mtx.Options{Limits: limits})
		got, err2 := joined(string(text), n, limits)
		switch {
		case errors.Is(err2, mtx.ErrWhole):
		case (err == nil) != (err2 == nil):
			t.Fatalf("the whole: %v, %d parts: %v", err, n, err2)
		case err == nil && !got.Equal(want):
			t.Fatalf("%d parts make another matrix: %+v, want %+v", n, got, want)
		}
	})
}
