// Specs: lists of a spec fill those that products leave out, and what says nothing is refused.

package benchmark

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadSpec(t *testing.T) {
	s, err := ReadSpec(strings.NewReader(`{
		"about": "two lists", "peers": ["p"], "facts": true, "backends": ["cpu"], "formats": ["auto"], "columns": [8],
		"products": [
			{"matrices": ["a"], "ways": [{}, {"packed": 8, "columns": [512]}], "limits": [{"times": 2, "of": "p x"}]},
			{"matrices": ["b"], "formats": ["csr"], "precisions": ["f16"], "modes": ["fast"]}
		]}`), "a.json")
	if err != nil {
		t.Fatal(err)
	}
	common := Lists{Backends: []string{"cpu"}, Formats: []string{"auto"}, Columns: []int{8}}
	want := &Spec{About: "two lists", Peers: []string{"p"}, Facts: true, Lists: common, Products: []Lists{
		{
			Matrices: []string{"a"}, Backends: []string{"cpu"}, Formats: []string{"auto"}, Columns: []int{8},
			Ways: []Way{{}, {Packed: 8, Columns: []int{512}}}, Limits: []Limit{{Times: 2, Of: "p x"}},
		},
		{
			Matrices: []string{"b"}, Backends: []string{"cpu"}, Formats: []string{"csr"}, Columns: []int{8},
			Precisions: []string{"f16"}, Modes: []string{"fast"},
		},
	}}
	if d := cmp.Diff(want, s); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for text, want := range map[string]string{
		`{}`:                                 "a.json is no spec of spmmrun bench: it has no products",
		`[]`:                                 "a.json is no spec of spmmrun bench: json: ",
		`{"products": [{}], "rows": 1}`:      `unknown field "rows"`,
		`{"products": [{"columns": ["8"]}]}`: "a.json is no spec of spmmrun bench: json: ",
		`{"products": [{"ways": [{"packed":-1}]}]}`: "products 0, ways: packed, memory and " +
			"columns: want numbers above 0",
		`{"products": [{}, {"ways": [{"quantise": "int8"}]}]}`: `products 1, ways: quantise "int8": ` +
			`want one of s8, e4m3`,
		`{"products": [{"ways": [{"split": "halves"}]}]}`: `split "halves": want one of columns, rows`,
		`{"products": [{"ways": [{"columns": [0]}]}]}`:    "want numbers above 0",
		`{"products": [{"limits": [{}]}]}`: "products 0, limits: a limit is us, " +
			"or times and of",
		`{"products": [{"limits": [{"us": 1, "of": "x"}]}]}`:             "a limit is us, or times and of",
		`{"products": [{"limits": [{"us": 1, "times": 2, "of": "x"}]}]}`: "a limit is us, or times and of",
		`{"limits": [{"us": -1}], "products": [{}]}`:                     "a limit is us, or times and of",
	} {
		if _, err := ReadSpec(strings.NewReader(text), "a.json"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

// A spec that can be read is read the same from what it is written as.
func FuzzReadSpec(f *testing.F) {
	f.Add([]byte(`{"products": [{"matrices": ["a"], "ways": [{"packed": 8}], "limits": [{"us": 3}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ReadSpec(strings.NewReader(string(text)), "a.json")
		if err != nil {
			return
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := ReadSpec(strings.NewReader(string(again)), "a.json"); err != nil || len(r.Products) != len(s.Products) {
			t.Errorf("%s: %v", again, err)
		}
	})
}

// What a way is called, and where it is measured.
func TestWay(t *testing.T) {
	for want, w := range map[string]Way{
		"":                             {},
		"packed for 8, apart":          {Packed: 8, Calls: Apart},
		"e4m3, recorded":               {Quantise: "e4m3", Calls: Recorded},
		"by rows, B on the first":      {Split: "rows", First: true},
		"1 GB of memory":               {Memory: 1e9},
		"packed for 1, 4 GB of memory": {Packed: 1, Memory: 4e9},
	} {
		if got := w.String(); got != want {
			t.Errorf("%+v is %q, want %q", w, got, want)
		}
	}
	w := Way{Packed: 8, Columns: []int{8, 512}}
	if w.takes(8) || !w.takes(512) || w.takes(64) || !(Way{}).takes(8) {
		t.Error("a way is measured for other columns than it says, or where it is the plain one")
	}
}
