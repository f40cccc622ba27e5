// Where no instruction pauses, a loop that waits looks more often.

//go:build !amd64

package cpu

// pause does nothing.
func pause(int) {}
