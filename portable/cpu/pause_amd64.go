// Pauses on amd64.

package cpu

// pause has the processor wait n times for some tens of cycles.
//
//go:noescape
func pause(n int)
