// Links in the documents lead to files of the tree.

package archtest_test

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// link is a target in Markdown, or of an HTML attribute in it.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:href|src)="([^"]+)"`)

func TestLinks(t *testing.T) {
	documents, links := 0, 0
	for _, file := range tracked(t) {
		if filepath.Ext(file) != ".md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			continue // deleted, not committed yet
		}
		documents++
		for _, m := range link.FindAllStringSubmatch(withoutCode(string(text)), -1) {
			u, err := url.Parse(m[1] + m[2])
			if err != nil {
				t.Errorf("%s: %q: %v", file, m[1]+m[2], err)
				continue
			}
			if u.IsAbs() || u.Path == "" {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(file), u.Path)); err != nil {
				t.Errorf("%s: %s leads nowhere", file, u.Path)
			}
		}
	}
	if documents < 10 || links < 50 {
		t.Errorf("%d documents with %d links were found", documents, links)
	}
}

// withoutCode leaves out indented and fenced blocks.
func withoutCode(text string) string {
	var out []string
	fenced := false
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		} else if !fenced && !strings.HasPrefix(line, "    ") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
