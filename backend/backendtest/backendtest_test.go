// The contract finds what is wrong: devices with one mistake each must fail it.

package backendtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
	"github.com/spmmrun/spmm/portable/cpu"
)

// wrong is the cpu driver with a mistake: one of its fields replaces what a device does.
type wrong struct {
	backend.Driver
	run    func(d backend.Device, ctx context.Context, l []backend.Launch) (backend.Timing, error)
	start  func(d backend.Device, ctx context.Context, l []backend.Launch) (backend.Pending, error)
	record func(d backend.Device, l []backend.Launch) (backend.Recording, error)
	alloc  func(d backend.Device, bytes int64) (backend.Buffer, error)
	load   func(d backend.Device, b backend.Binary) (backend.Kernel, error)
	close  func(d backend.Device) error
	list   func() ([]backend.Info, error)
}

func (w wrong) Devices(ctx context.Context) ([]backend.Info, error) {
	if w.list != nil {
		return w.list()
	}
	return w.Driver.Devices(ctx)
}

func (w wrong) Open(ctx context.Context, i backend.Info) (backend.Device, error) {
	d, err := w.Driver.Open(ctx, i)
	if err != nil {
		return nil, err
	}
	return device{d, w}, nil
}

type device struct {
	backend.Device
	w wrong
}

func (d device) Run(ctx context.Context, l ...backend.Launch) (backend.Timing, error) {
	if d.w.run != nil {
		return d.w.run(d.Device, ctx, l)
	}
	return d.Device.Run(ctx, l...)
}

func (d device) Start(ctx context.Context, l ...backend.Launch) (backend.Pending, error) {
	if d.w.start != nil {
		return d.w.start(d.Device, ctx, l)
	}
	return d.Device.Start(ctx, l...)
}

func (d device) Record(l ...backend.Launch) (backend.Recording, error) {
	if d.w.record != nil {
		return d.w.record(d.Device, l)
	}
	return d.Device.Record(l...)
}

func (d device) Alloc(bytes int64) (backend.Buffer, error) {
	if d.w.alloc != nil {
		return d.w.alloc(d.Device, bytes)
	}
	return d.Device.Alloc(bytes)
}

func (d device) Load(b backend.Binary) (backend.Kernel, error) {
	if d.w.load != nil {
		return d.w.load(d.Device, b)
	}
	return d.Device.Load(b)
}

func (d device) Close() error {
	if d.w.close != nil {
		return d.w.close(d.Device)
	}
	return d.Device.Close()
}

// mistakes are drivers that the contract must refuse, by the subtest that must fail.
var mistakes = map[string]struct {
	fails string
	wrong
}{
	"none": {"", wrong{}},
	"runs backwards": {"launches_in_order",
		wrong{run: func(d backend.Device, ctx context.Context, l []backend.Launch) (backend.Timing, error) {
			l = slices.Clone(l)
			slices.Reverse(l)
			return d.Run(ctx, l...)
		}}},
	"forgets what does not fit a batch": {"more_launches_than_fit_a_batch",
		wrong{run: func(d backend.Device, ctx context.Context, l []backend.Launch) (backend.Timing, error) {
			return d.Run(ctx, l[:min(len(l), 256)]...)
		}}},
	"one dimension of groups": {"grid_in_three_dimensions",
		wrong{run: func(d backend.Device, ctx context.Context, l []backend.Launch) (backend.Timing, error) {
			l = slices.Clone(l)
			for i := range l {
				if l[i].Groups[2] > 1 {
					l[i].Groups[2]--
				}
			}
			return d.Run(ctx, l...)
		}}},
	"runs what is right of a wrong run": {"one_wrong_launch_stops_all",
		wrong{run: func(d backend.Device, ctx context.Context, l []backend.Launch) (t backend.Timing, err error) {
			for i := range l {
				if t, err = d.Run(ctx, l[i]); err != nil {
					return t, err
				}
			}
			return t, nil
		}}},
	"never cancelled": {"cancelled_run",
		wrong{run: func(d backend.Device, _ context.Context, l []backend.Launch) (backend.Timing, error) {
			return d.Run(context.Background(), l...)
		}}},
	"cancelled afterwards": {"cancelled_in_a_long_launch",
		wrong{run: func(d backend.Device, ctx context.Context, l []backend.Launch) (backend.Timing, error) {
			if err := ctx.Err(); err != nil {
				return backend.Timing{}, err
			}
			t, err := d.Run(context.Background(), l...)
			return t, errors.Join(err, ctx.Err())
		}}},
	"counts the last batch": {"timing_in_several_batches",
		wrong{run: func(d backend.Device, ctx context.Context, l []backend.Launch) (backend.Timing, error) {
			t, err := d.Run(ctx, l...)
			if len(l) == 8 {
				t.Device = time.Microsecond
			}
			return t, err
		}}},
	"hides errors": {"wrong_launches",
		wrong{run: func(d backend.Device, ctx context.Context, l []backend.Launch) (backend.Timing, error) {
			t, err := d.Run(ctx, l...)
			if !errors.Is(err, context.Canceled) {
				err = nil
			}
			return t, err
		}}},
	"allocates in every run": {"repeated_runs_allocate_little",
		wrong{run: func(d backend.Device, ctx context.Context, l []backend.Launch) (backend.Timing, error) {
			for range 20 {
				sink = make([]byte, 64)
			}
			return d.Run(ctx, l...)
		}}},
	"no time": {"timing", wrong{run: func(d backend.Device, ctx context.Context, l []backend.Launch) (backend.Timing,
		error) {
		_, err := d.Run(ctx, l...)
		return backend.Timing{}, err
	}}},
	"start waits": {"start_and_wait",
		wrong{start: func(d backend.Device, ctx context.Context, l []backend.Launch) (backend.Pending, error) {
			t, err := d.Run(ctx, l...)
			return backend.Done(t), err
		}}},
	"wait does not wait": {"start_and_wait",
		wrong{start: func(d backend.Device, ctx context.Context, l []backend.Launch) (backend.Pending, error) {
			_, err := d.Start(ctx, l...)
			return backend.Done(backend.Timing{Host: 1}), err
		}}},
	"wait goes on": {"start_and_wait",
		wrong{start: func(d backend.Device, ctx context.Context, l []backend.Launch) (backend.Pending, error) {
			p, err := d.Start(ctx, l...)
			return patient{p}, err
		}}},
	"starts later": {"launches_are_the_caller's_after_start",
		wrong{start: func(d backend.Device, ctx context.Context, l []backend.Launch) (backend.Pending, error) {
			return &later{d: d, l: l}, ctx.Err()
		}}},
	"starts what is right": {"wrong_launches_are_not_started",
		wrong{start: func(d backend.Device, ctx context.Context, l []backend.Launch) (backend.Pending, error) {
			for i := range l {
				if _, err := d.Start(ctx, l[i]); err != nil {
					return nil, err
				}
			}
			return d.Start(ctx)
		}}},
	"records half": {"recorded_launches_in_order",
		wrong{record: func(d backend.Device, l []backend.Launch) (backend.Recording, error) {
			return d.Record(l[:min(len(l), 256)]...)
		}}},
	"records nothing of its own": {"launches_are_the_caller's_after_record",
		wrong{record: func(d backend.Device, l []backend.Launch) (backend.Recording, error) {
			return &alias{d: d, l: l}, nil
		}}},
	"records anything": {"wrong_launches_are_not_recorded",
		wrong{record: func(d backend.Device, l []backend.Launch) (backend.Recording, error) {
			return backend.Replay(d, l), nil
		}}},
	"runs a closed recording": {"recording_of_closed_things",
		wrong{record: func(d backend.Device, l []backend.Launch) (backend.Recording, error) {
			r, err := d.Record(l...)
			return open{r}, err
		}}},
	"takes zero bytes": {"alloc_refuses", wrong{alloc: func(d backend.Device, bytes int64) (backend.Buffer, error) {
		return d.Alloc(max(bytes, 4))
	}}},
	"untyped out of memory": {"alloc_refuses", wrong{alloc: func(d backend.Device, bytes int64) (backend.Buffer, error) {
		b, err := d.Alloc(bytes)
		if err != nil {
			err = errors.New("no")
		}
		return b, err
	}}},
	"rounded sizes": {"alloc_sizes", wrong{alloc: func(d backend.Device, bytes int64) (backend.Buffer, error) {
		if bytes > 0 && bytes < 1<<30 {
			bytes = (bytes + 3) &^ 3
		}
		return d.Alloc(bytes)
	}}},
	"writes elsewhere": {"neighbours_stay", wrong{alloc: stray.alloc, run: stray.run}},
	"any code": {"code_of_another_kind", wrong{load: func(d backend.Device, b backend.Binary) (backend.Kernel, error) {
		if b.Kind != backend.CodeGo {
			b.Kind, b.Func = backend.CodeGo, func([][]byte, []byte, [3]uint32) {}
		}
		return d.Load(b)
	}}},
	"stays open": {"use_of_a_closed_device", wrong{close: func(backend.Device) error { return nil }}},
	"empty list": {"lists no device", wrong{list: func() ([]backend.Info, error) { return nil, nil }}},
	"unhelpful": {"does not say why",
		wrong{list: func() ([]backend.Info, error) { return nil, backend.ErrUnavailable }}},
	"unavailable untyped": {"is none of", wrong{list: func() ([]backend.Info, error) { return nil, errors.New("there is no driver on this machine") }}},
	"unavailable":         {"", wrong{list: unavailable}},
	"required":            {"SPMM_REQUIRE", wrong{list: unavailable}},
}

// patient waits whatever the context.
type patient struct{ backend.Pending }

func (p patient) Wait(context.Context) (backend.Timing, error) {
	return p.Pending.Wait(context.Background())
}

// later runs launches when they are awaited.
type later struct {
	d backend.Device
	l []backend.Launch
}

func (p *later) Wait(ctx context.Context) (backend.Timing, error) { return p.d.Run(ctx, p.l...) }

// alias runs the list that it was given, whatever is in it by then.
type alias struct {
	d backend.Device
	l []backend.Launch
}

func (a *alias) Run(ctx context.Context) (backend.Timing, error)    { return a.d.Run(ctx, a.l...) }
func (a *alias) Start(ctx context.Context) (backend.Pending, error) { return a.d.Start(ctx, a.l...) }
func (a *alias) Close() error                                       { return nil }

// open is a recording that cannot be closed.
type open struct{ backend.Recording }

func (open) Close() error { return nil }

var sink []byte

func unavailable() ([]backend.Info, error) {
	return nil, fmt.Errorf("no processor here, buy one: %w", backend.ErrUnavailable)
}

// bleeding is a device whose runs also write to a buffer that is no argument.
type bleeding struct{ all []backend.Buffer }

var stray bleeding

func (s *bleeding) alloc(d backend.Device, bytes int64) (backend.Buffer, error) {
	b, err := d.Alloc(bytes)
	if err == nil && bytes >= 4 {
		s.all = append(s.all, b)
	}
	return b, err
}

func (s *bleeding) run(d backend.Device, ctx context.Context, l []backend.Launch) (backend.Timing, error) {
	for _, b := range s.all {
		if len(l) > 0 && !slices.Contains(l[0].Args, b) {
			b.Write(ctx, 0, make([]byte, 4))
		}
	}
	return d.Run(ctx, l...)
}

// The contract refuses drivers with mistakes, each in the subtest about it, which is all that runs of it. Each runs in
// a process of its own, since a test that fails as it should would fail this one.
func TestContractFindsMistakes(t *testing.T) {
	if name := os.Getenv("MISTAKE"); name != "" {
		m := mistakes[name].wrong
		m.Driver = cpu.Driver{}
		backendtest.Shorten(300 * time.Millisecond) // a mistake shows in short launches, too
		backendtest.Run(t, m)
		return
	}
	for name, m := range mistakes {
		t.Run(name, func(t *testing.T) {
			if !strings.HasPrefix(m.fails, "cancelled") && !strings.HasPrefix(m.fails, "timing") { // which measure times
				t.Parallel()
			}
			run := "-test.run=^TestContractFindsMistakes$"
			// a subtest of a device
			if (strings.Contains(m.fails, "_") || m.fails == "timing") && m.fails != strings.ToUpper(m.fails) {
				run += "/./^" + m.fails
			}
			args := []string{run, "-test.v"}
			if name == "none" { // portable/cpu has the whole contract: what takes long is left out here
				args = append(args, "-test.skip=/./(timing|start_and_wait|closed|recording_closed|cancelled)")
			}
			cmd := exec.Command(os.Args[0], args...)
			cmd.Env = append(os.Environ(), "MISTAKE="+name, "SPMM_REQUIRE=")
			if name == "required" {
				cmd.Env = append(cmd.Env, "SPMM_REQUIRE=other,cpu")
			}
			out, err := cmd.CombinedOutput()
			failed := err != nil
			if failed != (m.fails != "") {
				t.Fatalf("the contract's test ended with %v\n%s", err, out)
			}
			if failed && !slices.ContainsFunc(strings.Split(string(out), "\n"), func(line string) bool {
				return strings.Contains(line, m.fails) && (strings.Contains(line, "--- FAIL") || strings.Contains(line, ".go:"))
			}) {
				t.Errorf("no failure speaks of %q\n%s", m.fails, out)
			}
		})
	}
}
