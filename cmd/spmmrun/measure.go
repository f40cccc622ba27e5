// Timing a job's products.

package main

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/formats"
)

// onDevices times the requested number of multiplications on the devices, where the data stay, and leaves C in c. It
// returns how long one of the last repeat took.
func onDevices[T formats.Value, S oracle.Number](ctx context.Context, x setup, t task[T, S], e spmm.Epilogue,
	c *formats.Dense[S], p *progress) (ts timings, last spmm.Timing, err error) {
	p.step("copying to the device", -1)
	j, q := x.job, t.data()
	b, y, err := t.tensors()
	if err := x.r.agree(err); err != nil {
		return ts, last, err
	}
	defer b.Close()
	defer y.Close()
	begin := func() error {
		if q.c0 == nil {
			return nil
		}
		return y.Upload(ctx, across(j, q.c0))
	}
	if err := x.r.agree(cmp.Or(b.Upload(ctx, across(j, q.b)), begin())); err != nil {
		return ts, last, err
	}
	ts, err = timeRuns(j, p, func(times int) (spmm.Timing, error) {
		t, err := t.Repeat(ctx, times, j.alpha, b, j.beta, y, e)
		last = each(t, times)
		return t, err
	})
	if err != nil {
		return ts, last, err
	}
	if q.c0 != nil { // C has taken part in every run so far: once more from the start
		err := begin()
		if err == nil {
			_, err = t.Repeat(ctx, 1, j.alpha, b, j.beta, y, e)
		}
		if err != nil {
			return ts, last, err
		}
	}
	return ts, last, y.Download(ctx, across(j, c))
}

// each is the time of one of several multiplications.
func each(t spmm.Timing, times int) spmm.Timing {
	n := time.Duration(times)
	for d := range t.Each {
		t.Each[d].Device /= n
		t.Each[d].Host /= n
	}
	t.Device, t.Host = t.Device/n, t.Host/n
	t.Streamed.Bytes /= int64(times)
	t.Streamed.Copy /= n
	t.Streamed.Compute /= n
	return t
}

// timeRuns times the requested number of batches of multiplications.
func timeRuns(j *job, p *progress, repeat func(times int) (spmm.Timing, error)) (timings, error) {
	ts := timings{batch: 1}
	p.step("multiplying", int64(j.warmup+j.repeats))
	once, err := repeat(1) // also brings the kernel onto the device
	if err != nil {
		return ts, err
	}
	for i := range j.warmup + j.repeats {
		if i == j.warmup {
			ts.batch = batch(once.Best())
		}
		t, err := repeat(ts.batch)
		if err != nil {
			return ts, err
		}
		if i >= j.warmup {
			ts.add(t)
		} else {
			once = t
		}
		p.add(1)
	}
	return ts, nil
}

// batch returns how many multiplications that take so long are timed together: starting a launch costs
// a GPU a few microseconds, which a program that keeps it busy does not see.
func batch(one time.Duration) int {
	const least, most = 500 * time.Microsecond, 50
	return int(min(most, 1+least/max(one, 1)))
}

// timings are the times of the multiplications.
type timings struct {
	batch int             // multiplications timed together
	each  []time.Duration // of one
	host  bool            // some were taken with the host's clock
}

func (ts *timings) add(t spmm.Timing) {
	ts.each = append(ts.each, t.Best()/time.Duration(ts.batch))
	ts.host = ts.host || t.Device == 0
}

// quantile returns the time that a fraction q of the runs did not exceed.
func (ts *timings) quantile(q float64) time.Duration {
	s := slices.Sorted(slices.Values(ts.each))
	return s[int(math.Ceil(q*float64(len(s)-1)))]
}
