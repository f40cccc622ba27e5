// Package api declares what calls of package spmm return, for programs and for the packages behind spmm. Programs have
// these types as spmm.Timing, spmm.PlanInfo and so on.
package api

import (
	"time"

	"github.com/spmmrun/spmm/backend"
)

// Timing tells how long a call that multiplies took.
type Timing struct {
	// Device is how long the device worked, by its own clock; 0 if it has none. Of several devices it is that of the
	// slowest.
	Device time.Duration
	// Host is how long the call took, by the host's clock.
	Host time.Duration

	Each  []backend.Timing // of each of several devices; zero for one that had nothing to do
	Moved int64            // bytes that went from one device to another
	Move  time.Duration    // how long that took, by the host's clock
	// Streamed tells what copying A took, where it does not fit the devices: Device is 0 then.
	Streamed Streamed
}

// TimingOf is the Timing of one device.
func TimingOf(t backend.Timing) Timing { return Timing{Device: t.Device, Host: t.Host} }

// Best is Device where it is known, else Host.
func (t Timing) Best() time.Duration { return backend.Timing{Device: t.Device, Host: t.Host}.Best() }

// Binds names what takes longer where A is streamed: "link" or "compute".
func (t Timing) Binds() string {
	if t.Streamed.Copy > t.Streamed.Compute {
		return "link"
	}
	return "compute"
}

// Streamed tells how products spend their time whose A stays in the host's memory: copies of its panels go on during
// launches with those before. It is the sum over devices.
type Streamed struct {
	Panels  int           // of a device, at most
	Bytes   int64         // copied to the devices
	Copy    time.Duration // what the copies took
	Compute time.Duration // what the launches took
}

// Bound is the least time that each limit of a device allows a multiplication: the work over the rate that was
// measured on the device. A limit whose rate is not known is 0.
type Bound struct {
	Memory  time.Duration // moving every byte of A, B and C once
	Gather  time.Duration // fetching rows of B from cache, once for each entry or vector of A that needs them
	Compute time.Duration // multiplying and adding, padding included
}

// Time is the attainable time: the largest of the three.
func (b Bound) Time() time.Duration { return max(b.Memory, b.Gather, b.Compute) }
