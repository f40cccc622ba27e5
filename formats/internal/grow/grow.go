// Package grow makes slices that are filled from files grow with what has been read rather than with
// what a header announces.
package grow

// By returns s with room for at least n more elements. Room doubles each time, but not beyond the
// expected final length, which is at least len(s)+n.
func By[T any](s []T, n int, expected int64) []T {
	need := len(s) + n
	if need <= cap(s) {
		return s
	}
	room := int64(max(need, 2*cap(s), 4096))
	out := make([]T, len(s), max(int64(need), min(room, expected)))
	copy(out, s)
	return out
}

// Append appends v to s, whose final length is expected to be at most expected.
func Append[T any](s []T, v T, expected int64) []T {
	if len(s) == cap(s) {
		s = By(s, 1, expected)
	}
	return append(s, v)
}
