//go:build cgo && amd64 && (linux || (windows && webgpu))

// Device time. wgpu-native 0.17 gives timestamps in ticks and no way to ask how long a tick is, so the clock is
// measured against the host's: between a first submission, at opening, and the latest.

package webgpu

// #include "native.h"
import "C"

import (
	"context"
	"math"
	"time"
)

// settle is how long opening waits between two submissions: their times are known to 0.1 ms or so, which is a
// hundredth of it. Later runs make it better.
const settle = 10 * time.Millisecond

type clock struct {
	first, last C.wg_stamps
	span        uint64  // host nanoseconds that tick was measured over
	tick        float64 // nanoseconds; 0: no timestamps
}

func (g *gpu) setClock(d *device) error {
	if g.nat.queries == nil {
		return nil
	}
	if _, err := d.submit(context.Background()); err != nil {
		return err
	}
	g.clock.first = g.clock.last
	time.Sleep(settle)
	_, err := d.submit(context.Background())
	return err
}

// worked returns the last submission's time on the device. now: it has just ended, so that the host's clock says
// when.
func (c *clock) worked(now bool) time.Duration {
	if c.last.end < c.last.begin {
		return 0
	}
	if now {
		c.measure()
	}
	return time.Duration(float64(c.last.end-c.last.begin) * c.tick)
}

// measure improves the length of a tick whenever the time since opening has doubled. Most devices tick in
// nanoseconds: what comes close to that is taken for it.
func (c *clock) measure() {
	if c.first.hostEnd == 0 {
		return
	}
	span := uint64(c.last.hostEnd - c.first.hostEnd)
	if span < 2*c.span || c.last.end <= c.first.end {
		return
	}
	c.span, c.tick = span, float64(span)/float64(c.last.end-c.first.end)
	if math.Abs(c.tick-1) < 0.03 {
		c.tick = 1
	}
}
