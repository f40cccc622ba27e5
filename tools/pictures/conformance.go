// The conformance matrix: formats by devices, from the manifests that are checked in.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/conformance"
)

// counts are of the cases of one format on one device.
type counts struct{ right, failed, unsupported int }

func conformed(folder string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json.gz"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s: no manifest: %w", folder, err)
	}
	var c canvas
	var formats []string
	table := map[[2]string]*counts{}
	heads := map[string]*conformance.Manifest{}
	for _, file := range files {
		m, err := readManifest(file)
		if err != nil {
			return nil, err
		}
		heads[file] = m
		for _, x := range m.Cases {
			format, _, _ := strings.Cut(x.ID, "/")
			if !slices.Contains(formats, format) {
				formats = append(formats, format)
			}
			n := table[[2]string{file, format}]
			if n == nil {
				n = new(counts)
				table[[2]string{file, format}] = n
			}
			n.add(x.Status)
		}
	}
	slices.Sort(formats)
	const cell, high, left = 82, 38, 270
	for i, format := range formats {
		c.words(left+i*cell+cell/2, 14, middle, format)
	}
	for j, file := range files {
		m, y := heads[file], 24+j*high
		name, _, _ := strings.Cut(m.Device.Name, " (")
		c.words(0, y+15, bold, m.Device.Backend+": "+name)
		c.words(0, y+29, small, short(m.Device.Driver, 32)+", suite "+m.Suite)
		for i, format := range formats {
			n := table[[2]string{file, format}]
			fill, top, below := n.cell()
			c.box(left+i*cell, y, cell-4, high-4, fill, "none")
			c.words(left+i*cell+cell/2-2, y+15, middle, top)
			c.words(left+i*cell+cell/2-2, y+29, middle+" "+small, below)
		}
	}
	c.reach(left+len(formats)*cell, 24+len(files)*high+16)
	c.words(0, 24+len(files)*high+16, small, "cases whose outputs are right, on each device; below: cases that the device has no capability for")
	return c.text(), nil
}

func (n *counts) add(s conformance.Status) {
	switch s {
	case conformance.Unsupported:
		n.unsupported++
	case conformance.Fail:
		n.failed++
	default:
		n.right++
	}
}

// cell is how it is shown.
func (n *counts) cell() (fill, top, below string) {
	switch {
	case n == nil:
		return "#eee", "–", ""
	case n.failed > 0:
		return "#f5b5a8", fmt.Sprint(n.right), fmt.Sprintf("%d wrong", n.failed)
	case n.unsupported > 0:
		below = fmt.Sprintf("(%d)", n.unsupported)
	}
	if n.right == 0 {
		return "#eee", "–", below
	}
	return "#bfe3c0", fmt.Sprint(n.right), below
}

func readManifest(file string) (*conformance.Manifest, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return conformance.Decode(f)
}

func short(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
