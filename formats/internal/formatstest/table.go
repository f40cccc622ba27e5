// Tables of documents that the code computes.

package formatstest

import (
	"os"
	"strings"
	"testing"
)

const begin, end = "<!-- table -->\n", "<!-- end -->\n"

// Table holds the table in a document against what the code gives, or writes it.
func Table(t *testing.T, document, want string, write bool) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	have, tail, ok2 := strings.Cut(rest, end)
	switch {
	case !ok || !ok2:
		t.Fatalf("%s has no place for the table", document)
	case have == want:
	case !write:
		t.Fatalf("%s differs from what the code gives; to write it, use -write:\n%s", document, want)
	default:
		if err := os.WriteFile(document, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
