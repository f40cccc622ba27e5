// Command figures writes the tables and pictures of measurements into the documents, from the reports in bench/results.
//
//	go run ./tools/figures        (make figures)
//
// bench/figures.json says which figures there are. In a document a table stands between two lines:
//
//	<!-- figures: NAME -->
//	<!-- end -->
//
// A test fails when what is checked in differs from what this writes.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

func main() {
	root := flag.String("root", ".", "the tree's `FOLDER`")
	flag.Parse()
	if err := write(*root); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// list is bench/figures.json.
type list struct {
	Pictures []picture `json:"pictures"`
	Tables   []table   `json:"tables"`
}

// picture is drawn as spmmrun bench --plot does.
type picture struct {
	File    string   `json:"file"` // in docs/pictures
	Reports []string `json:"reports"`
}

// readList reads bench/figures.json of a tree.
func readList(root string) (list, error) {
	var l list
	name := filepath.Join(root, "bench", "figures.json")
	text, err := os.ReadFile(name)
	if err != nil {
		return l, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return l, fmt.Errorf("%s: %w", name, err)
	}
	return l, nil
}

// generated returns the files of a tree that have figures, as they must be.
func generated(root string) (map[string][]byte, error) {
	l, err := readList(root)
	if err != nil {
		return nil, err
	}
	rs := reports{folder: filepath.Join(root, "bench", "results")}
	files := map[string][]byte{}
	for _, p := range l.Pictures {
		r, err := rs.merged(p.Reports)
		if err != nil {
			return nil, err
		}
		var drawn bytes.Buffer
		if err := r.Draw(&drawn); err != nil {
			return nil, fmt.Errorf("%s: %w", p.File, err)
		}
		files[filepath.Join("docs", "pictures", p.File)] = drawn.Bytes()
	}
	tables := map[string]string{}
	for _, t := range l.Tables {
		if _, twice := tables[t.Name]; twice {
			return nil, fmt.Errorf("two tables have the name %s", t.Name)
		}
		if tables[t.Name], err = t.markdown(rs); err != nil {
			return nil, fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	return files, fill(root, tables, files)
}

// block is a table in a document: its name, and what is between its lines; begun is the first of these.
var (
	block = regexp.MustCompile(`(?ms)^<!-- figures: (\S+) -->\n(.*?)^<!-- end -->`)
	begun = regexp.MustCompile(`(?m)^<!-- figures:`)
)

// fill adds the documents that have tables, with these, to files. A table that stands nowhere is an error, as is a name
// that no table has.
func fill(root string, tables map[string]string, files map[string][]byte) error {
	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, path := range append(documents, filepath.Join(root, "README.md"), filepath.Join(root, "python", "README.md")) {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		unknown := ""
		filled := block.ReplaceAllStringFunc(string(text), func(b string) string {
			figure := block.FindStringSubmatch(b)[1]
			content, ok := tables[figure]
			if used[figure] = true; !ok {
				unknown = figure
			}
			return fmt.Sprintf("<!-- figures: %s -->\n%s<!-- end -->", figure, content)
		})
		if unknown != "" {
			return fmt.Errorf("%s: bench/figures.json has no table %s", name, unknown)
		}
		if len(begun.FindAllString(filled, -1)) != len(block.FindAllString(filled, -1)) {
			return fmt.Errorf("%s: a line <!-- figures: NAME --> without <!-- end -->", name)
		}
		if begun.MatchString(filled) {
			files[name] = []byte(filled)
		}
	}
	for name := range tables {
		if !used[name] {
			return fmt.Errorf("table %s is in no document", name)
		}
	}
	return nil
}

func write(root string) error {
	files, err := generated(root)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
