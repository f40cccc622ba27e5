//go:build cuda && cgo && linux && (amd64 || arm64)

// The driver: what is present, and opening it.

package cuda

import (
	"context"
	"fmt"
	"math/bits"
	"strings"
	"unicode"

	"gorgonia.org/cu"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/cuda/internal/driver"
)

func init() { backend.Register(present{}) }

type present struct{}

func (present) Name() string { return "cuda" }

func (present) Devices(ctx context.Context) ([]backend.Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n, err := count()
	if err != nil {
		return nil, err
	}
	list := make([]backend.Info, n)
	for i := range list {
		if list[i], err = describe(i); err != nil {
			return nil, unavailable(err, "")
		}
	}
	return list, nil
}

func (present) Open(ctx context.Context, info backend.Info) (backend.Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n, err := count()
	if err != nil {
		return nil, err
	}
	if info.Index < 0 || info.Index >= n {
		return nil, fmt.Errorf("cuda: %w: there is no device %d (%d present)", backend.ErrUnavailable, info.Index, n)
	}
	return open(info.Index, cu.CUContext{})
}

// count opens the driver, checks that it is new enough and returns how many devices it has.
func count() (int, error) {
	if text, err := driver.Open(); err != nil {
		return 0, unavailable(err, text)
	}
	if v := cu.Version(); v < oldest {
		return 0, fmt.Errorf("cuda: %w: the NVIDIA driver is for CUDA %s and at least %s is needed: update it",
			backend.ErrUnavailable, versionString(v), versionString(oldest))
	}
	if names := driver.Missing(); len(names) > 0 {
		return 0, fmt.Errorf("cuda: %w: the NVIDIA driver lacks %s: update it", backend.ErrUnavailable,
			strings.Join(names, ", "))
	}
	n, err := cu.NumDevices()
	if err == nil && n == 0 {
		err = driver.NoDevice
	}
	if err != nil {
		return 0, unavailable(err, "")
	}
	if n < 0 || n > mostDevices {
		return 0, impossible("the driver", "there are %d GPUs", n)
	}
	return n, nil
}

// What no driver tells, by far.
const (
	mostDevices = 1 << 10
	mostMemory  = 1 << 50 // bytes
	mostUnits   = 1 << 16
)

// impossible is the error of a driver, or a device, that reports an impossible property.
func impossible(who, format string, args ...any) error {
	return fmt.Errorf("cuda: %w: %s says that %s, which cannot be: reinstall the NVIDIA driver", backend.ErrUnavailable, who, fmt.Sprintf(format, args...))
}

// describe returns what identifies a device.
func describe(index int) (backend.Info, error) {
	info := backend.Info{Backend: "cuda", Index: index, Vendor: "NVIDIA", Kind: "discrete"}
	dev, err := cu.GetDevice(index)
	if err != nil {
		return info, err
	}
	if info.Name, err = dev.Name(); err != nil {
		return info, err
	}
	info.Name = printable(info.Name)
	if info.Memory, err = dev.TotalMem(); err != nil {
		return info, err
	}
	info.Memory = min(max(info.Memory, 0), mostMemory)
	integrated, err := dev.Attribute(cu.Integrated)
	if integrated != 0 {
		info.Kind = "integrated"
	}
	info.Driver = "CUDA " + versionString(cu.Version())
	if k := kernelDriver(); k != "" {
		info.Driver += ", NVIDIA " + k
	}
	return info, err
}

// sharedOptin is the device attribute for the most dynamic shared memory a kernel can ask for, which
// gorgonia.org/cu does not name (CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN).
const sharedOptin cu.DeviceAttribute = 97

// capabilities reads what a device can do.
func capabilities(dev cu.Device) (backend.Caps, error) {
	c := backend.Caps{Code: backend.CodePTX, SubgroupPinned: true}
	var major, minor, warp, shared, threads int
	var local, grid [3]int
	for _, q := range []struct {
		attr cu.DeviceAttribute
		to   *int
	}{
		{cu.ComputeCapabilityMajor, &major}, {cu.ComputeCapabilityMinor, &minor},
		{cu.WarpSize, &warp}, {sharedOptin, &shared}, {cu.MaxThreadsPerBlock, &threads},
		{cu.MaxBlockDimX, &local[0]}, {cu.MaxBlockDimY, &local[1]}, {cu.MaxBlockDimZ, &local[2]},
		{cu.MaxGridDimX, &grid[0]}, {cu.MaxGridDimY, &grid[1]}, {cu.MaxGridDimZ, &grid[2]},
		{cu.MultiprocessorCount, &c.Units},
	} {
		v, err := dev.Attribute(q.attr)
		if err != nil {
			return c, err
		}
		*q.to = v
	}
	if err := plausible(warp, threads, shared, major, local, grid); err != nil {
		return c, err
	}
	if c.Units < 0 || c.Units > mostUnits {
		c.Units = 0 // nobody knows
	}
	c.Arch = 10*major + minor
	c.Matrix = shapes(c.Arch)
	c.SubgroupMin, c.SubgroupMax = uint32(warp), uint32(warp)
	c.SharedBytes, c.MaxInvocations = uint32(shared), uint32(threads)
	for i := range grid {
		c.MaxLocal[i], c.MaxGroups[i] = uint32(local[i]), uint32(grid[i])
	}
	// half arithmetic; dp4a; what kernels for f64 are compiled for
	c.F16, c.Int8, c.F64 = c.Arch >= 53, c.Arch >= 61, c.Arch >= 80
	return c, nil
}

// plausible refuses what no GPU has.
func plausible(warp, threads, shared, major int, local, grid [3]int) error {
	const gpu = "the GPU's driver"
	switch {
	case major < 1 || major > 99:
		return impossible(gpu, "its compute capability is %d", major)
	case warp < 1 || warp > 128 || bits.OnesCount(uint(warp)) != 1:
		return impossible(gpu, "a warp has %d threads", warp)
	case threads < warp || threads > 1<<16:
		return impossible(gpu, "a block has %d threads", threads)
	case shared < 1<<10 || shared > 1<<24:
		return impossible(gpu, "a block has %d bytes of shared memory", shared)
	case min(local[0], local[1], local[2]) < 1:
		return impossible(gpu, "blocks are %v threads", local)
	case min(grid[0], grid[1], grid[2]) < 65535:
		return impossible(gpu, "grids are %v blocks", grid)
	}
	return nil
}

// printable replaces what a terminal might obey.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
