// Package memory tells how much memory this process may take, so that what does not fit is refused in words
// rather than ended by the system.
package memory

// Available returns the bytes this process may still take without pushing others out: what the system calls
// available, and less if one of the control groups that hold the process, or its address space, is bounded. 0: unknown.
func Available() int64 { return available() }

// Total returns the bytes of memory this process can ever have. 0: unknown.
func Total() int64 { return total() }
