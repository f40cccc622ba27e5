// Command pictures draws those of the documents that follow from the tree: the packages, what each format stores of a
// small matrix, and which case of the conformance suite is right on which device.
//
//	go run ./tools/pictures
//
// A test fails when one that is checked in is not what this draws.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "the tree's `FOLDER`")
	flag.Parse()
	if err := write(*root); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// draw returns the pictures by their names in docs/pictures.
func draw(root string) (map[string][]byte, error) {
	all := map[string][]byte{"architecture.svg": architecture()}
	if err := layouts(all); err != nil {
		return nil, err
	}
	matrix, err := conformed(filepath.Join(root, "conformance", "manifests"))
	all["conformance.svg"] = matrix
	return all, err
}

func write(root string) error {
	all, err := draw(root)
	if err != nil {
		return err
	}
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(root, "docs", "pictures", name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
