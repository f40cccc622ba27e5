// Nothing that steers a terminal comes through, whatever it is split into.

package printable_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/internal/printable"
)

func TestString(t *testing.T) {
	for s, want := range map[string]string{
		"a.mtx":                  "a.mtx",
		"naïve 23×7 µs – 2⁶⁴ ░█": "naïve 23×7 µs – 2⁶⁴ ░█",
		"\x1b[31mred\x07":        `\u001b[31mred\u0007`,
		"two\nlines\tand\r":      `two\u000alines\u0009and\u000d`,
		"C1 \u009b2J \x9b2J":     `C1 \u009b2J \x9b2J`,
		"bidi \u202eexe":         `bidi \u202eexe`,
		"tag \U000e0041":         `tag \udb40\udc41`,
		"\xc3":                   `\xc3`,
	} {
		if got := printable.String(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

// Text that is written in chunks comes out as it does whole, printable but for line breaks and tabs.
func TestWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOf(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("\x1b\x9b\xc2\xe2\x80\xae\n\t[")))).Draw(t, "bytes")
		var out bytes.Buffer
		w := printable.NewWriter(&out)
		for rest := in; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			if m, err := w.Write(rest[:n]); m != n || err != nil {
				t.Fatal(m, err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		want := printable.String(string(in))
		want = strings.NewReplacer(`\u000a`, "\n", `\u0009`, "\t").Replace(want)
		if out.String() != want && !bytes.Contains(in, []byte(`\u00`)) {
			t.Fatalf("%q, want %q", out.String(), want)
		}
		for _, r := range out.String() {
			if r == utf8.RuneError && !bytes.ContainsRune(in, r) || !unicode.IsPrint(r) && r != '\n' && r != '\t' {
				t.Fatalf("%q has %q", out.String(), r)
			}
		}
	})
}

// JSON stays JSON, and the same.
func TestJSON(t *testing.T) {
	in := "a\x1b\u009b\u202e\U000e0041é\n"
	var out bytes.Buffer
	w := printable.NewWriter(&out)
	if err := errors.Join(json.NewEncoder(w).Encode(in), w.Close()); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got != in {
		t.Errorf("%s: %q, %v", out.Bytes(), got, err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestErrors(t *testing.T) {
	w := printable.NewWriter(failing{})
	if _, err := w.Write([]byte("a")); err == nil {
		t.Error("no error from Write")
	}
	if err := w.Close(); err == nil || err.Error() != "full" {
		t.Errorf("Close: %v", err)
	}
}
