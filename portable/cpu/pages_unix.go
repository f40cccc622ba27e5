//go:build unix

// Memory from the system, in whole pages.

package cpu

import "golang.org/x/sys/unix"

// mapPages returns zeroed memory, huge pages preferred where the system has them.
func mapPages(bytes int64) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	preferHugePages(mem)
	return mem, nil
}

func unmapPages(mem []byte) error { return unix.Munmap(mem) }
