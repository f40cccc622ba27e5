// What sources say of themselves.

package shaders_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders"
)

// A kernel's source begins with what it computes, its tile, how data move, and what bounds it.
func TestSourcesBeginWithTheirDesign(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range shaders.All() {
		for _, v := range k.Forms() {
			file := filepath.Join(k.Name, v.Unit.Source)
			if v.Code == backend.CodeGo || seen[file] {
				continue
			}
			seen[file] = true
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text := head(string(source))
			for _, label := range []string{"// Computes: ", "// Tile: ", "// Data movement: ", "// Bound by: "} {
				_, after, found := strings.Cut(text, label)
				if !found {
					t.Errorf("%s: its first comment has no %q after those before it", file, label)
					break
				}
				text = after
			}
		}
	}
	if len(seen) < 50 {
		t.Errorf("found %d sources", len(seen))
	}
}

// head is the comment that a text begins with.
func head(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "//") {
			break
		}
		b.WriteString(line)
	}
	return b.String()
}
