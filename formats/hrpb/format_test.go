// Files of the format, of every version.

package hrpb_test

import (
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/hrpb"
)

// TestVersions: files of version 1, which have no row indices, are still read.
func TestVersions(t *testing.T) {
	a := shuffled(scattered(200, 90, 4), 2)
	without := func(c *formats.Container) {
		c.Arrays = slices.DeleteFunc(c.Arrays, func(x formats.Array) bool { return x.Name == "rowidx" })
	}
	tests := []struct {
		name  string
		order int
		spoil func(c *formats.Container)
		want  string
	}{
		{"version 2, another order", 1, func(c *formats.Container) {}, ""},
		{"version 2, the matrix's order", 0, func(c *formats.Container) {}, ""},
		{"version 1", 0, func(c *formats.Container) { c.Version = 1; delete(c.Options, "order"); without(c) }, ""},
		{"version 2 without row indices", 0, without, `no array "rowidx"`},
		{"version 0", 0, func(c *formats.Container) { c.Version = 0 }, "version 0"},
		{"version 3", 0, func(c *formats.Container) { c.Version = 3 }, "version 3"},
		{"no such order", 0, func(c *formats.Container) { c.Options["order"] = 5 }, "order 5"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e, err := hrpb.Format.Encode(a, map[string]int{"order": test.order})
			if err != nil {
				t.Fatal(err)
			}
			c := formats.NewContainer(e)
			test.spoil(c)
			got, err := hrpb.Format.Open(c)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want one with %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := diff.Diff(a, got.Sparse()); d != "" {
				t.Error("decoded differs")
			}
		})
	}
	if _, err := hrpb.Format.Encode(a, map[string]int{"order": 2}); err == nil {
		t.Error("order 2 is encoded")
	}
}
