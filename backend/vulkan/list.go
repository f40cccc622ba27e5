// Lists that the API fills: it is called for their number, then for the entries.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

import (
	"errors"
	"fmt"

	vk "github.com/vulkan-go/vulkan"
)

// list asks for entries by a call that is given room for n of them, none at first, and sets n to how many there are.
// More than most are an error: no driver has more, and memory is not sized by what a broken one says. Where there
// are more by the time that the entries are fetched, it calls again, a few times. start prepares an entry, if it is
// not nil.
func list[T any](most uint32, start func(*T), call func(n *uint32, first *T) vk.Result) ([]T, error) {
	var entries []T
	for range 4 {
		var n uint32
		if r := call(&n, nil); r < 0 {
			return nil, errors.New(resultName(r))
		}
		if n > most {
			return nil, fmt.Errorf("%d entries, at most %d are possible", n, most)
		}
		if n == 0 {
			return nil, nil
		}
		entries = make([]T, n)
		for i := range entries {
			if start != nil {
				start(&entries[i])
			}
		}
		r := call(&n, &entries[0])
		if r < 0 {
			return nil, errors.New(resultName(r))
		}
		entries = entries[:min(n, uint32(len(entries)))]
		if r != vk.Incomplete {
			break
		}
	}
	return entries, nil
}
