// The pictures that are checked in are those that the tree gives.

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestPictures(t *testing.T) {
	const root = "../.."
	all, err := draw(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			for d := xml.NewDecoder(bytes.NewReader(want)); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("no XML: %v", err)
				}
			}
			got, err := os.ReadFile(filepath.Join(root, "docs", "pictures", name))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("it is not what the tree gives (%v): go run ./tools/pictures draws it anew", err)
			}
		})
	}
}
