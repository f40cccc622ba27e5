// Package rowptr turns entry counts into row pointers, in place:
//
//	count entries of row i in ptr[i]; Starts(ptr); for each entry, store it at ptr[row] and
//	increment that; Ends(ptr)
package rowptr

// Starts replaces counts (ptr[i] entries in row i; the last element is ignored) by the position at
// which each row starts, and the last element by the number of entries.
func Starts(ptr []int64) {
	last := len(ptr) - 1
	var sum int64
	for i, n := range ptr[:last] {
		ptr[i] = sum
		sum += n
	}
	ptr[last] = sum
}

// Ends makes row pointers of the starts that filling the rows has moved to the rows' ends.
func Ends(ptr []int64) {
	copy(ptr[1:], ptr[:len(ptr)-1])
	ptr[0] = 0
}
