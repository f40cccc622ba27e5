// Checks that every backend makes before any work, so that all refuse the same things in the same words.

package backend

import (
	"fmt"
	"math"
)

// CheckAlloc refuses sizes that no device can allocate: below one byte, or so large that rounding up overflows.
func CheckAlloc(bytes int64) error {
	if bytes <= 0 {
		return fmt.Errorf("buffer of %d bytes: the size must be positive", bytes)
	}
	if bytes > math.MaxInt64-4096 {
		return fmt.Errorf("buffer of %d bytes: %w", bytes, ErrOutOfMemory)
	}
	return nil
}

// CheckRange checks that n bytes at off may be copied to or from a buffer of this size: they must be inside it, off
// must be a multiple of 4, and n too unless the range ends at the buffer's end.
func CheckRange(size, off int64, n int) error {
	if off < 0 || off > size || int64(n) > size-off {
		return fmt.Errorf("bytes %d…+%d are outside a buffer of %d bytes", off, n, size)
	}
	if off%4 != 0 || n%4 != 0 && off+int64(n) != size {
		return fmt.Errorf("bytes %d…+%d of a buffer: offset and length must be multiples of 4 (or end at the buffer's end)", off, n)
	}
	return nil
}

// CheckBinary refuses code that no device with these capabilities can load, whatever the code contains.
func CheckBinary(b *Binary, c *Caps) error {
	switch {
	case b.Kind != c.Code:
		return fmt.Errorf("kernel %s: %v code on a device that loads %v: %w", b.Name, b.Kind, c.Code, ErrUnsupported)
	case b.Kind == CodeGo && b.Func == nil, b.Kind != CodeGo && (len(b.Code) == 0 || b.Entry == ""):
		return fmt.Errorf("kernel %s: no code or no entry point", b.Name)
	case b.Args < 0 || b.Args > MaxArgs:
		return fmt.Errorf("kernel %s: %d arguments, at most %d are possible", b.Name, b.Args, MaxArgs)
	case b.ParamBytes < 0 || b.ParamBytes > MaxParams || b.ParamBytes%4 != 0:
		return fmt.Errorf("kernel %s: %d bytes of parameters, a multiple of 4 up to %d is possible", b.Name, b.ParamBytes, MaxParams)
	case b.Early&^b.ReadOnly != 0:
		return fmt.Errorf("kernel %s: arguments %b are read early, and %b are only read", b.Name, b.Early, b.ReadOnly)
	case b.Maps < 0 || b.Maps > MaxMaps || b.Maps > 0 && b.Kind != CodePTX:
		return fmt.Errorf("kernel %s: %d tensor maps, up to %d are possible, for PTX", b.Name, b.Maps, MaxMaps)
	case b.Kind == CodeGo:
		return nil
	}
	n := uint64(1)
	for i, l := range b.Local {
		if l == 0 || l > c.MaxLocal[i] {
			return fmt.Errorf("kernel %s: workgroup %v, the device allows %v: %w", b.Name, b.Local, c.MaxLocal, ErrUnsupported)
		}
		n *= uint64(l)
	}
	if n > uint64(c.MaxInvocations) {
		return fmt.Errorf("kernel %s: %d invocations in a workgroup, the device allows %d: %w", b.Name, n, c.MaxInvocations, ErrUnsupported)
	}
	if b.Shared > c.SharedBytes {
		return fmt.Errorf("kernel %s: %d bytes of shared memory, the device allows %d: %w", b.Name, b.Shared, c.SharedBytes, ErrUnsupported)
	}
	return nil
}

// CheckLaunch checks a launch of a kernel loaded from b: the number of arguments, the size of the parameter block, the
// tensor maps, the grid. The backend checks that the buffers are its own.
func CheckLaunch(l *Launch, b *Binary, c *Caps) error {
	if len(l.Args) != b.Args {
		return fmt.Errorf("kernel %s: launched with %d arguments, it takes %d", b.Name, len(l.Args), b.Args)
	}
	if len(l.Params) != b.ParamBytes {
		return fmt.Errorf("kernel %s: launched with %d bytes of parameters, it takes %d", b.Name, len(l.Params), b.ParamBytes)
	}
	if len(l.Maps) != b.Maps {
		return fmt.Errorf("kernel %s: launched with %d tensor maps, it takes %d", b.Name, len(l.Maps), b.Maps)
	}
	for _, m := range l.Maps {
		if m.Arg < 0 || m.Arg >= b.Args || m.Rows == 0 || m.Cols == 0 || m.Pitch < m.Cols || m.Pitch%8 != 0 || !m.tiles() {
			return fmt.Errorf("kernel %s: no tensor map can be made of %+v", b.Name, m)
		}
	}
	for i, g := range l.Groups {
		if g > c.MaxGroups[i] {
			return fmt.Errorf("kernel %s: grid of %d×%d×%d workgroups, the device allows %d×%d×%d: %w", b.Name,
				l.Groups[0], l.Groups[1], l.Groups[2], c.MaxGroups[0], c.MaxGroups[1], c.MaxGroups[2], ErrUnsupported)
		}
	}
	return nil
}

// tiles reports whether there can be tiles of this size.
func (m *TileMap) tiles() bool {
	switch m.TileCols {
	case 0, 8, 16, 32, 64:
		return m.TileRows > 0 && m.TileRows <= 256
	}
	return false
}
