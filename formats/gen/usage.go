// What specs look like, for help texts.

package gen

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Usage returns a text with a line for each kind of matrix and the keys that it takes, and then the keys that all kinds
// take.
func Usage() string {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(&b, "%-9s %s\n", kind, strings.ReplaceAll(kinds[kind], " ", ", "))
	}
	fmt.Fprintf(&b, "%-9s %s\n", "all", strings.ReplaceAll(commonKeys, " ", ", "))
	fmt.Fprintf(&b, "%-9s %s\n", "", strings.ReplaceAll(sizeKeys, " ", ", ")+", but for rmat and stencil")
	return b.String()
}
