// What assembly that takes eight elements at a time does of them.

//go:build amd64 || arm64

package simd

// eights returns how many of n elements the assembly does; the caller does the others.
func eights(n int) int {
	if level == goOnly {
		return 0
	}
	return n &^ 7
}
