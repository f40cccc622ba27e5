// Words reads the prose of the tree and refuses what makes readers stop: the words that docs/glossary.md bans, lines of
// more than 120 characters, and a README of more than 120 lines.
//
//	words           prints what it refuses, and exits with 1 if there is any
//	words PATH...   prints everything that it finds below these paths
//	words -allow    writes the file of allowed findings anew
//
// It reads Markdown, comments of Go, C, CUDA C++, GLSL, WGSL, JavaScript, assembly, Makefiles and scripts, and the
// sentences in Go's string literals (help texts, reports, errors). Test data, generated files and frozen history are
// left out. While the tree is being cleaned, the file allowed.txt says how many findings each file had; all files
// together may have as many, so that a file may move.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	glossary = "docs/glossary.md"
	allowed  = "tools/words/allowed.txt"
)

func main() {
	allow := flag.Bool("allow", false, "write "+allowed+" anew")
	flag.Parse()
	if err := run(os.DirFS("."), os.Stdout, *allow, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

func run(tree fs.FS, out io.Writer, allow bool, paths []string) error {
	found, err := checkTree(tree)
	if err != nil {
		return err
	}
	if allow {
		return os.WriteFile(filepath.FromSlash(allowed), writeAllowed(found), 0o666)
	}
	if len(paths) > 0 {
		print(out, found, func(file string) bool {
			return slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(file, path.Clean(p)) })
		})
		return nil
	}
	list, err := readAllowed(tree)
	if err != nil {
		return err
	}
	if refused := total(found) - sum(list); refused > 0 {
		print(out, found, func(file string) bool { return len(found[file]) > list[file] })
		return fmt.Errorf("%d findings more than allowed; %s says what to write instead", refused, glossary)
	}
	return nil
}

// print prints the findings of some files.
func print(out io.Writer, found map[string][]finding, of func(file string) bool) {
	for _, file := range slices.Sorted(maps.Keys(found)) {
		if of(file) {
			for _, f := range found[file] {
				fmt.Fprintln(out, f)
			}
		}
	}
}

func total(found map[string][]finding) (n int) {
	for _, f := range found {
		n += len(f)
	}
	return n
}

func sum(list map[string]int) (n int) {
	for _, m := range list {
		n += m
	}
	return n
}

// checkTree returns the findings of all files that have any.
func checkTree(tree fs.FS) (map[string][]finding, error) {
	text, err := fs.ReadFile(tree, glossary)
	if err != nil {
		return nil, err
	}
	banned, err := readBanned(string(text))
	if err != nil {
		return nil, err
	}
	found := map[string][]finding{}
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skippedFolders, d.Name()), d.IsDir() && slices.Contains(skippedPaths, name):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		if findings := check(name, string(src), banned); len(findings) > 0 {
			found[name] = findings
		}
		return nil
	})
	return found, err
}

var (
	skippedFolders = []string{".git", "bin", "testdata", "compiled"}
	skippedPaths   = []string{"docs/history", "bench/results", "conformance/manifests", "shared"}
)

// readAllowed returns how many findings each file had. Without the list there may be none.
func readAllowed(tree fs.FS) (map[string]int, error) {
	text, err := fs.ReadFile(tree, allowed)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	list := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var n int
		var file string
		if _, err := fmt.Sscanf(line, "%d %s\n", &n, &file); err != nil {
			return nil, fmt.Errorf("%s: a line is a number and a file, not %q", allowed, line)
		}
		list[file] = n
	}
	return list, err
}

func writeAllowed(found map[string][]finding) []byte {
	var b strings.Builder
	for _, file := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&b, "%d %s\n", len(found[file]), file)
	}
	return []byte(b.String())
}
