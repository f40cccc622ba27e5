// Package backendtest is the contract of package backend: what every driver does, refuses and survives.
// A backend's test is one line:
//
//	func TestDriver(t *testing.T) { backendtest.Run(t, Driver{}) }
//
// The contract brings its own small kernels in every kind of code (kernels.go), and checks copies and bounds
// (buffers.go), launches (launches.go), refusals (refusals.go), cancelled runs (cancel.go), launches that are started
// and awaited later (starting.go), recordings (recording.go), the life and sharing of what a device hands out
// (life.go), and what only some devices can do (extensions.go).
package backendtest

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
)

// Run holds every device of the driver against the contract, as subtests. With -short, the first device only.
// What happens when there is no device is Require's to say.
func Run(t *testing.T, d backend.Driver) {
	if d.Name() == "" || strings.ToLower(d.Name()) != d.Name() {
		t.Errorf("driver's name %q: want a lower-case word", d.Name())
	}
	infos := Require(t, d)
	checkInfos(t, d, infos)
	t.Run("no such device", func(t *testing.T) { noSuchDevice(t, d, len(infos)) })
	for i, info := range infos {
		if i > 0 && testing.Short() {
			break
		}
		t.Run(info.Name, func(t *testing.T) { runDevice(t, d, info) })
	}
}

// Require lists the driver's devices. If there are none it fails the test when the environment variable
// SPMM_REQUIRE, a comma-separated list of drivers' names, has this one; otherwise it checks that the error is
// a helpful ErrUnavailable, logs it and returns nothing.
func Require(t testing.TB, d backend.Driver) []backend.Info {
	t.Helper()
	infos, err := d.Devices(t.Context())
	if err == nil && len(infos) == 0 {
		t.Fatalf("%s lists no device and gives no error; want ErrUnavailable", d.Name())
	}
	if err == nil {
		return infos
	}
	if Required(d.Name()) {
		t.Fatalf("SPMM_REQUIRE asks for backend %s: %v", d.Name(), err)
	}
	checkError(t, err, "no device", backend.ErrUnavailable)
	if len(err.Error()) < len(backend.ErrUnavailable.Error())+20 {
		t.Errorf("error %q does not say why, nor what to do", err)
	}
	t.Logf("%s has no device here: %v", d.Name(), err)
	return nil
}

// Required reports whether SPMM_REQUIRE names the backend: that machine must have it.
func Required(name string) bool {
	return slices.Contains(strings.FieldsFunc(os.Getenv("SPMM_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' }), name)
}

func checkInfos(t *testing.T, d backend.Driver, infos []backend.Info) {
	for i, in := range infos {
		if in.Backend != d.Name() || in.Index != i || in.Name == "" || in.Driver == "" || in.Kind == "" || in.Memory < 0 {
			t.Errorf("device %d describes itself as %+v", i, in)
		}
		if strings.ContainsAny(in.String(), "\x00\n") {
			t.Errorf("device %d: control characters in %q", i, in)
		}
	}
}

func noSuchDevice(t *testing.T, d backend.Driver, n int) {
	dev, err := d.Open(t.Context(), backend.Info{Backend: d.Name(), Index: n + 7, Name: "none"})
	if err == nil {
		dev.Close()
	}
	checkError(t, err, "Open of a device that is not there", backend.ErrUnavailable)
}

// rig is one opened device under test.
type rig struct {
	drv  backend.Driver
	info backend.Info
	dev  backend.Device
	caps backend.Caps
}

// another opens the device again.
func (r *rig) another(t *testing.T) *rig {
	t.Helper()
	dev, err := r.drv.Open(t.Context(), r.info)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{r.drv, r.info, dev, dev.Caps()}
}

func runDevice(t *testing.T, d backend.Driver, info backend.Info) {
	dev := open(t, d, info)
	r := &rig{d, info, dev, dev.Caps()}
	for _, g := range [][]subtest{describing, copying, launching, refusing, cancelling, starting, recording, living,
		extending} {
		for _, s := range g {
			t.Run(s.name, func(t *testing.T) { s.run(t, r) })
		}
	}
}

type subtest struct {
	name string
	run  func(*testing.T, *rig)
}

var describing = []subtest{{"describes itself", describes}}

func describes(t *testing.T, r *rig) {
	if got := r.dev.Info(); got != r.info {
		t.Errorf("Info of the opened device is %+v, listed as %+v", got, r.info)
	}
	c := r.caps
	for i := range 3 {
		if c.MaxGroups[i] < 65535 || c.MaxLocal[i] < 1 {
			t.Errorf("limits %v groups of %v invocations", c.MaxGroups, c.MaxLocal)
		}
	}
	if c.MaxInvocations < 1 || c.SubgroupMin > c.SubgroupMax || c.MaxBinding < 0 || c.Units < 0 {
		t.Errorf("capabilities %+v", c)
	}
	for _, s := range c.Matrix {
		if s.M == 0 || s.N == 0 || s.K == 0 || s.A.Size() == 0 || s.B.Size() == 0 || s.C.Size() == 0 || s.D.Size() == 0 {
			t.Errorf("matrix shape %v", s)
		}
	}
	if _, err := r.tryLoad("step"); err != nil {
		t.Fatalf("the contract has no kernel that the device loads: %v", err)
	}
}

// alloc returns a buffer that lives as long as the test.
func (r *rig) alloc(t testing.TB, bytes int64) backend.Buffer {
	t.Helper()
	return Alloc(t, r.dev, bytes)
}

// upload returns a buffer holding the words.
func (r *rig) upload(t testing.TB, w []uint32) backend.Buffer {
	t.Helper()
	return Upload(t, r.dev, w)
}

func (r *rig) tryLoad(name string) (backend.Kernel, error) {
	return r.dev.Load(binaryOf(name, r.caps.Code))
}

// load returns one of the contract's kernels, living as long as the test.
func (r *rig) load(t testing.TB, name string) backend.Kernel {
	t.Helper()
	return Load(t, r.dev, binaryOf(name, r.caps.Code))
}

func (r *rig) run(t testing.TB, l ...backend.Launch) backend.Timing {
	t.Helper()
	return Do(t, r.dev, l...)
}

// works fails the test unless the device still computes; it is called after every refusal.
func (r *rig) works(t testing.TB) {
	t.Helper()
	k := r.load(t, "step")
	src, dst := r.upload(t, ramp(100)), r.alloc(t, 400)
	r.run(t, stepLaunch(k, src, dst, step{n: 100, rot: 3, mul: 5, add: 7}))
	equalWords(t, "after that", read(t, dst, 100), step{n: 100, rot: 3, mul: 5, add: 7}.apply(ramp(100)))
}

func read(t testing.TB, b backend.Buffer, n int) []uint32 {
	t.Helper()
	return Download[uint32](t, b, 0, n)
}

func ramp(n int) []uint32 {
	w := make([]uint32, n)
	for i := range w {
		w[i] = uint32(i)*2654435761 + 12345
	}
	return w
}

func equalWords(t testing.TB, what string, got, want []uint32) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: word %d of %d is %#x, want %#x", what, i, len(want), got[i], want[i])
		}
	}
}

// checkError fails unless err is one line of text and, if kinds are given, wraps one of them.
func checkError(t testing.TB, err error, what string, kinds ...error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	if s := err.Error(); s == "" || strings.ContainsAny(s, "\n\x00") {
		t.Errorf("%s: error is not one line: %q", what, s)
	}
	if len(kinds) > 0 && !slices.ContainsFunc(kinds, func(k error) bool { return errors.Is(err, k) }) {
		t.Errorf("%s: error %q is none of %q", what, err, kinds)
	}
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
