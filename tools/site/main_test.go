// What becomes of links, and that all those between the pages of this tree lead to a page.

package main

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestResolve(t *testing.T) {
	for _, c := range []struct{ file, link, want string }{
		{"README.md", "docs/browser.md", "docs/browser.html"},
		{"README.md", "docs/browser.md#what-runs-where", "docs/browser.html#what-runs-where"},
		{"docs/browser.md", "conformance.md", "../docs/conformance.html"},
		{"docs/README.md", "../README.md", "../index.html"},
		{"docs/decisions/README.md", "../../ARCHITECTURE.md", "../../ARCHITECTURE.html"},
		{"docs/browser.md", "../portable/webgpu/browser.go", repository + "portable/webgpu/browser.go"},
		{"docs/browser.md", "pictures/a.png", "../docs/pictures/a.png"},
		{"docs/browser.md", "#here", "#here"},
		{"docs/browser.md", "https://example.com/a.md", "https://example.com/a.md"},
	} {
		if got := resolve(c.file, c.link); got != c.want {
			t.Errorf("%s in %s: %s, want %s", c.link, c.file, got, c.want)
		}
	}
}

func TestPage(t *testing.T) {
	got, err := page("docs/x.md", []byte("# A title\n\n| a |\n| --- |\n| [b](bound.md) |\n\n<img src=\"pictures/p.png\" width=\"3\"> ![q](pictures/q.png)\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"<title>A title</title>", "<td><a href=\"../docs/bound.html\">b</a></td>",
		"<img src=\"../docs/pictures/p.png\"", "<img src=\"../docs/pictures/q.png\"", "<a href=\"../index.html\">",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

func TestSite(t *testing.T) {
	out := t.TempDir()
	if _, err := os.Stat("../../.git"); err != nil {
		t.Skip("the tree is not a checkout")
	}
	if err := run("../..", out); err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`(?:href|src)="([^"#]+)`)
	pages := 0
	err := filepath.WalkDir(out, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".html" {
			return err
		}
		pages++
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, m := range links.FindAllStringSubmatch(string(text), -1) {
			u, err := url.Parse(m[1])
			if err != nil || u.IsAbs() || strings.HasSuffix(u.Path, "run/index.html") { // which make site puts there
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), u.Path)); err != nil {
				t.Errorf("%s: %s leads nowhere", strings.TrimPrefix(file, out), m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pages < 20 {
		t.Errorf("%d pages", pages)
	}
}
