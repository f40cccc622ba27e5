// Recordings: launches that are run again and again.

package backendtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/spmmrun/spmm/backend"
)

var recording = []subtest{
	{"recorded launches in order", recordedInOrder},
	{"recordings started and run by turns", recordedByTurns},
	{"launches are the caller's after record", recordCopies},
	{"wrong launches are not recorded", recordRefuses},
	{"nothing recorded", recordNothing},
	{"recording of closed things", recordingOfClosed},
	{"recording closed while it runs", closeRecording},
	{"cancelled recording", cancelRecording},
	{"timing of a recording", timingOfRecording},
	{"repeated recordings allocate little", recordingAllocations},
}

// record returns a recording that lives as long as the test.
func (r *rig) record(t testing.TB, l ...backend.Launch) backend.Recording {
	t.Helper()
	rec := must[backend.Recording](t, "Record")(r.dev.Record(l...))
	t.Cleanup(func() { rec.Close() })
	return rec
}

func runRecording(t testing.TB, rec backend.Recording) backend.Timing {
	t.Helper()
	return must[backend.Timing](t, "Run of a recording")(rec.Run(t.Context()))
}

func startRecording(t testing.TB, rec backend.Recording) backend.Pending {
	t.Helper()
	return must[backend.Pending](t, "Start of a recording")(rec.Start(t.Context()))
}

// Each launch sees what the one before wrote, at the first run and at later ones, however many there are.
func recordedInOrder(t *testing.T, r *rig) {
	for _, count := range []int{1, 2, 16, 700} {
		const n = 3001
		k, tile := r.load(t, "step"), r.load(t, "tile") // kernels that have not run
		a, b, c := r.upload(t, ramp(n)), r.alloc(t, 4*n), r.alloc(t, 4*64*50)
		ls, want := steps(k, a, b, n, 2*count)
		// Between them one of another kernel, whose output nobody reads.
		ls = slices.Insert(ls, count, backend.Launch{Kernel: tile, Groups: [3]uint32{n / 64, 1, 1},
			Args: []backend.Buffer{a, c}})
		rec := r.record(t, ls...)
		for range 4 {
			Write(t, a, ramp(n))
			runRecording(t, rec)
			equalWords(t, "recorded launches", read(t, a, n), want)
		}
	}
}

func recordedByTurns(t *testing.T, r *rig) {
	const n = 777
	k, a, b := r.load(t, "step"), r.upload(t, ramp(n)), r.alloc(t, 4*n)
	var recs []backend.Recording
	var lists []step
	for i := range uint32(3) {
		s := step{n: n, rot: 5*i + 1, mul: 2*i + 3, add: i}
		lists = append(lists, s)
		recs = append(recs, r.record(t, stepLaunch(k, a, b, s), stepLaunch(k, b, a, s)))
	}
	want := ramp(n)
	var all []backend.Pending
	for i := range 60 {
		j := i * i % 3
		want = lists[j].apply(lists[j].apply(want))
		if i%5 == 4 {
			runRecording(t, recs[j])
			continue
		}
		all = append(all, startRecording(t, recs[j]))
		if i%7 == 6 {
			want = lists[0].apply(lists[0].apply(want))
			r.start(t, stepLaunch(k, a, b, lists[0]), stepLaunch(k, b, a, lists[0]))
		}
	}
	equalWords(t, "three recordings by turns", read(t, a, n), want)
	for _, p := range all {
		wait(t, p)
	}
}

func recordCopies(t *testing.T, r *rig) {
	const n = 640
	k, a, b, c := r.load(t, "step"), r.upload(t, ramp(n)), r.alloc(t, 4*n), r.upload(t, ramp(n))
	s := step{n: n, rot: 7, mul: 3, add: 1}
	l := stepLaunch(k, a, b, s)
	ls := []backend.Launch{l}
	rec := r.record(t, ls...)
	clear(l.Params)
	l.Args[1] = c
	ls[0] = backend.Launch{}
	for range 3 {
		Write(t, b, make([]uint32, n))
		runRecording(t, rec)
		equalWords(t, "a launch whose list was changed after Record", read(t, b, n), s.apply(ramp(n)))
	}
	equalWords(t, "a buffer that was put into the list after Record", read(t, c, n), ramp(n))
}

func recordRefuses(t *testing.T, r *rig) {
	k, src, dst := r.load(t, "step"), r.upload(t, ramp(64)), r.upload(t, ramp(64))
	good := stepLaunch(k, src, dst, step{n: 64, mul: 3})
	for what, change := range map[string]func(*backend.Launch){
		"no kernel":          func(l *backend.Launch) { l.Kernel = nil },
		"a foreign kernel":   func(l *backend.Launch) { l.Kernel = nobody{} },
		"one argument":       func(l *backend.Launch) { l.Args = l.Args[:1] },
		"a foreign argument": func(l *backend.Launch) { l.Args = []backend.Buffer{nobody{}, dst} },
		"few parameters":     func(l *backend.Launch) { l.Params = l.Params[:12] },
	} {
		bad := good
		change(&bad)
		_, err := r.dev.Record(good, bad)
		checkError(t, err, "Record with "+what)
	}
	rec := r.record(t, good)
	for range 3 {
		_, err := rec.Run(cancelled())
		checkError(t, err, "Run of a recording with a cancelled context", context.Canceled)
		_, err = rec.Start(cancelled())
		checkError(t, err, "Start of a recording with a cancelled context", context.Canceled)
		equalWords(t, "output of launches that must not run", read(t, dst, 64), ramp(64))
		runRecording(t, rec)
		Write(t, dst, ramp(64))
	}
	r.works(t)
}

func recordNothing(t *testing.T, r *rig) {
	k, src, dst := r.load(t, "step"), r.upload(t, ramp(64)), r.upload(t, ramp(64))
	empty := stepLaunch(k, src, dst, step{n: 64, mul: 3})
	empty.Groups[0] = 0
	for _, rec := range []backend.Recording{r.record(t), r.record(t, empty)} {
		for range 3 {
			runRecording(t, rec)
			wait(t, startRecording(t, rec))
		}
		closeTwice(t, "recording of nothing", rec)
	}
	equalWords(t, "zero-sized grid", read(t, dst, 64), ramp(64))
}

// Whatever of a recording is closed, it does not run any more, and none of it.
func recordingOfClosed(t *testing.T, r *rig) {
	for _, runs := range []int{0, 1, 3} { // before
		for _, what := range []string{"buffer", "kernel", "recording", "device"} {
			o := r
			if what == "device" {
				dev, err := r.drv.Open(t.Context(), r.info)
				if err != nil {
					t.Fatal(err)
				}
				defer dev.Close()
				o = &rig{r.drv, r.info, dev, dev.Caps()}
			}
			k, k2 := o.load(t, "step"), o.load(t, "tile")
			a, b, c := o.upload(t, ramp(64)), o.alloc(t, 256), o.alloc(t, 256)
			rec := o.record(t, stepLaunch(k, a, b, step{n: 64, mul: 3}),
				backend.Launch{Kernel: k2, Groups: [3]uint32{1, 1, 1}, Args: []backend.Buffer{b, c}})
			for range runs {
				runRecording(t, rec)
			}
			if runs > 0 {
				startRecording(t, rec) // which Close waits for
			}
			closeTwice(t, what+" of a recording", map[string]interface{ Close() error }{
				"buffer": c, "kernel": k2, "recording": rec, "device": o.dev}[what])
			if what != "device" {
				Write(t, b, make([]uint32, 64))
			}
			_, err := rec.Run(t.Context())
			checkError(t, err, "Run of a recording whose "+what+" is closed", backend.ErrClosed)
			_, err = rec.Start(t.Context())
			checkError(t, err, "Start of a recording whose "+what+" is closed", backend.ErrClosed)
			if what != "device" {
				equalWords(t, "output of a recording that must not run", read(t, b, 64), make([]uint32, 64))
			}
			closeTwice(t, "recording whose "+what+" is closed", rec)
		}
	}
	r.works(t)
}

func closeRecording(t *testing.T, r *rig) {
	k, dst := r.load(t, "spin"), r.alloc(t, 256)
	rec := r.record(t, slices.Repeat([]backend.Launch{r.spinLaunch(t, k, dst, long/40)}, 3)...)
	runRecording(t, rec)
	p := startRecording(t, rec)
	closeTwice(t, "recording that runs", rec)
	wait(t, p)
	r.works(t)
}

// Of a long recording the device has no more than some parts when Run returns.
func cancelRecording(t *testing.T, r *rig) {
	k, dst := r.load(t, "spin"), r.alloc(t, 256)
	l := r.spinLaunch(t, k, dst, long/100)
	r.run(t, l)
	rec := r.record(t, slices.Repeat([]backend.Launch{l}, 300)...)
	start := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(10*time.Millisecond, cancel).Stop()
	_, err := rec.Run(ctx)
	if took := time.Since(start); took > soon {
		t.Errorf("Run returned %v after its context ended", took)
	}
	checkError(t, err, "cancelled Run of a recording", context.Canceled)
	r.works(t)
	if took := time.Since(start); took > 2*long {
		t.Errorf("the device worked for %v after a cancelled recording of 300 launches of %v", took, long/100)
	}
	few := r.record(t, l, l)
	runRecording(t, few)
}

// Device time is the sum of all parts of a recording, and no more than it took.
func timingOfRecording(t *testing.T, r *rig) {
	l, one := r.timedSpin(t)
	rec := r.record(t, slices.Repeat([]backend.Launch{l}, 8)...)
	for i := range 2 {
		start, all := time.Now(), backend.Timing{}
		if i == 0 {
			all = runRecording(t, rec)
		} else {
			all = wait(t, startRecording(t, rec))
		}
		if wall := time.Since(start); all.Host <= 0 || all.Host > wall || all.Device > wall+wall/10 {
			t.Errorf("times %+v of a recording that took %v", all, wall)
		}
		if one.Device > 0 && all.Device < 2*one.Device { // other programs may have slowed down the one
			t.Errorf("8 launches took the device %v, one of them %v", all.Device, one.Device)
		}
	}
}

func recordingAllocations(t *testing.T, r *rig) {
	k, a, b := r.load(t, "step"), r.upload(t, ramp(64)), r.alloc(t, 256)
	ls, _ := steps(k, a, b, 64, 16)
	rec := r.record(t, ls...)
	ctx := t.Context()
	for range 3 {
		runRecording(t, rec)
	}
	got := testing.AllocsPerRun(50, func() {
		if _, err := rec.Run(ctx); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("a repeated run of a recording of 16 launches makes %.1f heap allocations", got)
	if got > maxAllocs {
		t.Errorf("a repeated run of a recording makes %.1f heap allocations, at most %d are allowed", got, maxAllocs)
	}
}
