// How several devices share a product.

package work

import "fmt"

// Split is how devices share a product.
type Split uint8

// The splits.
const (
	AutoSplit Split = iota // by columns where A fits each device and that is predicted to be no slower, else by rows
	ByColumns              // of B and C: each device holds all of A
	ByRows                 // of A and C: each device takes all of B
)

func (s Split) String() string {
	switch s {
	case AutoSplit:
		return "auto"
	case ByColumns:
		return "columns"
	case ByRows:
		return "rows"
	}
	return fmt.Sprintf("Split(%d)", uint8(s))
}
