// Launches that were started: a goroutine runs them in order, and ends when none are left.

package cpu

import (
	"context"
	"time"

	"github.com/spmmrun/spmm/backend"
)

// job is launches that were started.
type job struct {
	launches []backend.Launch
	begun    time.Time
	done     chan struct{}
	t        backend.Timing // once done
	err      error
}

// Start hands a copy of the launches to the device's goroutine.
func (d *device) Start(ctx context.Context, launches ...backend.Launch) (backend.Pending, error) {
	j := &job{begun: time.Now(), done: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.checkAll(launches); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	j.launches = backend.CloneLaunches(launches)
	d.jobs = append(d.jobs, j)
	if len(d.jobs) == 1 {
		go d.work()
	}
	return j, nil
}

// work runs jobs until there are none. Who holds the device's lock while there are none has the pool to itself.
func (d *device) work() {
	for more := true; more; {
		d.mu.Lock()
		j := d.jobs[0]
		d.mu.Unlock()
		start := time.Now()
		for i := range j.launches {
			if j.err = d.launch(context.Background(), &j.launches[i]); j.err != nil {
				break
			}
		}
		if j.err == nil {
			j.t = backend.Timing{Device: time.Since(start), Host: time.Since(j.begun)}
		}
		d.mu.Lock()
		d.jobs[0] = nil
		d.jobs = d.jobs[1:]
		more = len(d.jobs) > 0
		close(j.done)
		d.mu.Unlock()
	}
}

func (j *job) Wait(ctx context.Context) (backend.Timing, error) {
	select {
	case <-j.done:
		return j.t, j.err
	default:
	}
	select {
	case <-j.done:
		return j.t, j.err
	case <-ctx.Done():
		return backend.Timing{}, ctx.Err()
	}
}

// settle waits until all jobs are done, with the lock released; it is held again when settle returns.
func (d *device) settle(ctx context.Context) error {
	for len(d.jobs) > 0 {
		last := d.jobs[len(d.jobs)-1]
		d.mu.Unlock()
		select {
		case <-last.done:
		case <-ctx.Done():
		}
		d.mu.Lock()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Record keeps a copy of the launches: there is nothing to prepare.
func (d *device) Record(launches ...backend.Launch) (backend.Recording, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.checkAll(launches); err != nil {
		return nil, err
	}
	return backend.Replay(d, launches), nil
}
