//go:build !unix

// Memory from Go's heap, where there is no mmap.

package cpu

import "unsafe"

func mapPages(bytes int64) ([]byte, error) {
	raw := make([]byte, bytes+alignment)
	skip := -uintptr(unsafe.Pointer(&raw[0])) % alignment
	return raw[skip:][:bytes:bytes], nil
}

func unmapPages([]byte) error { return nil }
