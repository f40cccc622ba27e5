// Package devicetest has devices that do not exist, for tests of what is picked: only abilities and rates are needed
// for that.
package devicetest

import (
	"slices"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/model"
)

// described is a device that has a description and nothing else.
type described struct {
	backend.Device
	caps backend.Caps
}

func (d described) Caps() backend.Caps            { return d.caps }
func (d described) Info() backend.Info            { return backend.Info{Backend: "described", Name: "large GPU"} }
func (d described) Memory() (int64, int64, error) { return 100 << 30, 140 << 30, nil }

// New returns a device with these abilities, for which these rates were measured.
func New(caps backend.Caps, rates api.Rates) *device.Device {
	d := device.New(described{caps: caps})
	d.Speed.Rates = &model.Rates{Rates: rates}
	return d
}

// H200 returns what an NVIDIA H200 lists, of its matrix units these shapes.
func H200(code backend.Code, shapes ...backend.MatrixShape) backend.Caps {
	return backend.Caps{
		Code: code, Arch: 90, SubgroupMin: 32, SubgroupMax: 32, SharedBytes: 227 << 10, MaxInvocations: 1024,
		MaxLocal: [3]uint32{1024, 1024, 64}, F16: true, Int8: true, Units: 132, Matrix: shapes,
	}
}

// H200Rates returns what was measured on one, of its matrix units these rates.
func H200Rates(matrix map[string]float64) api.Rates {
	return api.Rates{
		Copy: Bandwidths(1<<21, 0.55e12, 1<<23, 2e12, 1<<25, 4.9e12, 1<<27, 3.7e12, 1<<29, 3.9e12), Cache: 14e12,
		FMA: 6.5e13, Matrix: matrix,
	}
}

// Bandwidths are those of copies, given as pairs of bytes in use and bytes a second.
func Bandwidths(pairs ...float64) []api.Bandwidth {
	var bs []api.Bandwidth
	for p := range slices.Chunk(pairs, 2) {
		bs = append(bs, api.Bandwidth{Bytes: int64(p[0]), PerSecond: p[1]})
	}
	return bs
}
