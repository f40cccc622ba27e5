// Command site makes web pages of the documents: every Markdown file of the tree, and the pictures.
//
//	go run ./tools/site -o bin/site
//
// README.md becomes index.html. Links to documents lead to their pages, those to other files to the repository.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"html/template"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

const repository = "https://github.com/spmmrun/spmm/blob/main/"

func main() {
	out := flag.String("o", "bin/site", "write the pages to `FOLDER`")
	root := flag.String("root", ".", "the tree's `FOLDER`, a checkout")
	flag.Parse()
	if err := run(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(root, out string) error {
	files, err := exec.Command("git", "-C", root, "ls-files", "-z", "*.md", "docs/pictures", ":!:internal").Output()
	if err != nil {
		return fmt.Errorf("git ls-files in %s: %w", root, err)
	}
	for _, file := range strings.Split(strings.TrimRight(string(files), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return err
		}
		if path.Ext(file) == ".md" {
			if content, err = page(file, content); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
		to := filepath.Join(out, filepath.FromSlash(target(file)))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// target is where a file of the tree lies in the site.
func target(file string) string {
	switch {
	case path.Base(file) == "README.md":
		return path.Join(path.Dir(file), "index.html")
	case path.Ext(file) == ".md":
		return strings.TrimSuffix(file, ".md") + ".html"
	}
	return file
}

// resolve turns a link of a document into one of its page: to another page, to a picture, or into the repository.
func resolve(file, link string) string {
	u, err := url.Parse(link)
	if err != nil || u.IsAbs() || u.Path == "" {
		return link
	}
	at := path.Join(path.Dir(file), u.Path)
	if path.Ext(at) != ".md" && !strings.HasPrefix(at, "docs/pictures/") {
		return repository + at
	}
	u.Path = strings.Repeat("../", strings.Count(file, "/")) + target(at)
	return u.String()
}

var markdown = goldmark.New(
	goldmark.WithExtensions(extension.GFM),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(html.WithUnsafe()), // <img>, in documents of our own
)

// page is the whole HTML of a document.
func page(file string, content []byte) ([]byte, error) {
	doc := markdown.Parser().Parse(text.NewReader(content))
	title := file
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 1 && title == file {
				title = string(n.Lines().Value(content))
			}
		case *ast.Link:
			n.Destination = []byte(resolve(file, string(n.Destination)))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	var body, out bytes.Buffer
	if err := markdown.Renderer().Render(&body, content, doc); err != nil {
		return nil, err
	}
	err = layout.Execute(&out, map[string]any{
		"Title": title, "Up": strings.Repeat("../", strings.Count(file, "/")),
		"Body": template.HTML(pictures(file, body.String())),
	})
	return out.Bytes(), err
}

var source = regexp.MustCompile(`(<img src=")([^"]+)`)

// pictures resolves those that a document shows, by Markdown or HTML.
func pictures(file, body string) string {
	return source.ReplaceAllStringFunc(body, func(s string) string {
		m := source.FindStringSubmatch(s)
		return m[1] + resolve(file, m[2])
	})
}

var layout = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
:root { color-scheme: light dark }
body { font: 1rem/1.55 system-ui, sans-serif; max-width: 56rem; margin: 0 auto; padding: 1rem }
pre { overflow-x: auto; padding: .8rem; background: #8882; border-radius: .4rem }
code { font: .92em ui-monospace, monospace }
table { display: block; overflow-x: auto; border-collapse: collapse }
td, th { border: 1px solid #8886; padding: .3rem .6rem; vertical-align: top; text-align: left }
img { max-width: 100% }
nav a { margin-right: 1rem }
</style>
<nav><a href="{{.Up}}index.html">spmm</a><a href="{{.Up}}docs/index.html">Documents</a
><a href="{{.Up}}run/index.html">Run it in your browser</a><a href="https://github.com/spmmrun/spmm">Sources</a></nav>
<main>
{{.Body}}</main>
</html>
`))
