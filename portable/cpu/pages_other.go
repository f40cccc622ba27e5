//go:build !unix

// Memory from Go's heap, where there is no mmap.

package cpu

import (
	"errors"
	"unsafe"
)

// most is more than any machine has; Go ends the process that asks for it.
const most = 1 << 40

func mapPages(bytes int64) ([]byte, error) {
	if bytes > most {
		return nil, errors.New("more than any machine has")
	}
	raw := make([]byte, bytes+alignment)
	skip := -uintptr(unsafe.Pointer(&raw[0])) % alignment
	return raw[skip:][:bytes:bytes], nil
}

func unmapPages([]byte) error { return nil }
