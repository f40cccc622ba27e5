// Refusals: wrong code, wrong launches, cancelled contexts. All are errors before any work, and the device
// computes on.

package backendtest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/spmmrun/spmm/backend"
)

var refusing = []subtest{
	{"code of another kind", otherCode},
	{"code that is none", badCode},
	{"workgroup too large", largeWorkgroup},
	{"wrong launches", wrongLaunches},
	{"grid too large", largeGrid},
	{"one wrong launch stops all", allOrNothing},
	{"buffers and kernels of another device", foreign},
	{"cancelled run", cancelledRun},
}

func refuseLoad(t *testing.T, r *rig, what string, b backend.Binary, kinds ...error) {
	t.Helper()
	k, err := r.dev.Load(b)
	checkError(t, err, "Load of "+what, kinds...)
	if err == nil {
		k.Close()
	}
}

func otherCode(t *testing.T, r *rig) {
	for _, c := range []backend.Code{backend.CodeGo, backend.CodePTX, backend.CodeSPIRV, backend.CodeWGSL} {
		if c != r.caps.Code {
			refuseLoad(t, r, c.String(), binaryOf("step", c), backend.ErrUnsupported)
		}
	}
	r.works(t)
}

func badCode(t *testing.T, r *rig) {
	good := binaryOf("step", r.caps.Code)
	for what, change := range map[string]func(*backend.Binary){
		"nothing":             func(b *backend.Binary) { b.Code, b.Func = nil, nil },
		"nine arguments":      func(b *backend.Binary) { b.Args = 9 },
		"84 parameter bytes":  func(b *backend.Binary) { b.ParamBytes = backend.MaxParams + 4 },
		"minus one arguments": func(b *backend.Binary) { b.Args = -1 },
	} {
		b := good
		change(&b)
		refuseLoad(t, r, what, b)
	}
	if r.caps.Code != backend.CodeGo {
		for what, change := range map[string]func(*backend.Binary){
			"text that is no code": func(b *backend.Binary) { b.Code = []byte("this is not code at all") },
			"zeros":                func(b *backend.Binary) { b.Code = make([]byte, 256) },
			"half a text": func(b *backend.Binary) {
				if b.Code = b.Code[:len(b.Code)/2]; b.Kind == backend.CodeSPIRV {
					b.Code = b.Code[:24] // a header and a torn instruction: modules are not validated
				}
			},
			"an entry that is absent": func(b *backend.Binary) { b.Entry = "nosuchentry" },
		} {
			b := good
			b.Code = bytes.Clone(b.Code)
			change(&b)
			refuseLoad(t, r, what, b)
			if _, err := r.dev.Load(b); errors.Is(err, backend.ErrUnsupported) {
				t.Errorf("%s is no lack of the device: %v", what, err)
			}
		}
	}
	r.works(t)
}

func largeWorkgroup(t *testing.T, r *rig) {
	if r.caps.Code == backend.CodeGo {
		return // a Go function is its whole workgroup
	}
	for i := range 3 {
		b := binaryOf("step", r.caps.Code)
		b.Local[i] = r.caps.MaxLocal[i] + 1
		refuseLoad(t, r, "a workgroup too large", b, backend.ErrUnsupported)
	}
	b := binaryOf("tile", r.caps.Code)
	b.Shared = r.caps.SharedBytes + 4
	refuseLoad(t, r, "too much shared memory", b, backend.ErrUnsupported)
}

func refuseRun(t *testing.T, r *rig, what string, l backend.Launch, kinds ...error) {
	t.Helper()
	_, err := r.dev.Run(t.Context(), l)
	checkError(t, err, "Run with "+what, kinds...)
}

func wrongLaunches(t *testing.T, r *rig) {
	k, src, dst := r.load(t, "step"), r.upload(t, ramp(64)), r.upload(t, ramp(64))
	good := stepLaunch(k, src, dst, step{n: 64, mul: 3})
	for what, change := range map[string]func(*backend.Launch){
		"no kernel":          func(l *backend.Launch) { l.Kernel = nil },
		"a foreign kernel":   func(l *backend.Launch) { l.Kernel = nobody{} },
		"no arguments":       func(l *backend.Launch) { l.Args = nil },
		"one argument":       func(l *backend.Launch) { l.Args = l.Args[:1] },
		"three arguments":    func(l *backend.Launch) { l.Args = []backend.Buffer{src, dst, dst} },
		"a nil argument":     func(l *backend.Launch) { l.Args = []backend.Buffer{src, nil} },
		"a foreign argument": func(l *backend.Launch) { l.Args = []backend.Buffer{nobody{}, dst} },
		"no parameters":      func(l *backend.Launch) { l.Params = nil },
		"few parameters":     func(l *backend.Launch) { l.Params = l.Params[:12] },
		"many parameters":    func(l *backend.Launch) { l.Params = make([]byte, 20) },
	} {
		l := good
		change(&l)
		refuseRun(t, r, what, l)
	}
	equalWords(t, "output of refused launches", read(t, dst, 64), ramp(64))
	r.works(t)
}

func largeGrid(t *testing.T, r *rig) {
	k, src, dst := r.load(t, "step"), r.upload(t, ramp(64)), r.alloc(t, 256)
	for i, m := range r.caps.MaxGroups {
		l := stepLaunch(k, src, dst, step{n: 64})
		if m+1 == 0 {
			continue // every grid fits
		}
		l.Groups[i] = m + 1
		refuseRun(t, r, "a grid too large", l, backend.ErrUnsupported)
	}
	r.works(t)
}

func allOrNothing(t *testing.T, r *rig) {
	k, src, dst := r.load(t, "step"), r.upload(t, ramp(64)), r.upload(t, ramp(64))
	good := stepLaunch(k, src, dst, step{n: 64, mul: 3})
	bad := good
	bad.Params = nil
	_, err := r.dev.Run(t.Context(), good, good, bad)
	checkError(t, err, "Run with a wrong last launch")
	equalWords(t, "output of a refused run", read(t, dst, 64), ramp(64))
}

func foreign(t *testing.T, r *rig) {
	other, err := r.drv.Open(t.Context(), r.info)
	if err != nil {
		t.Fatalf("Open of the same device a second time: %v", err)
	}
	defer other.Close()
	o := &rig{r.drv, r.info, other, other.Caps()}
	k, src, dst := r.load(t, "step"), r.upload(t, ramp(64)), r.alloc(t, 256)
	s := step{n: 64, mul: 3}
	refuseRun(t, r, "another device's input", stepLaunch(k, o.upload(t, ramp(64)), dst, s))
	refuseRun(t, r, "another device's output", stepLaunch(k, src, o.alloc(t, 256), s))
	refuseRun(t, r, "another device's kernel", stepLaunch(o.load(t, "step"), src, dst, s))
	r.works(t)
	o.works(t)
}

func cancelledRun(t *testing.T, r *rig) {
	k, src, dst := r.load(t, "step"), r.upload(t, ramp(64)), r.upload(t, ramp(64))
	_, err := r.dev.Run(cancelled(), stepLaunch(k, src, dst, step{n: 64, mul: 3}))
	checkError(t, err, "cancelled Run", cancelled().Err())
	equalWords(t, "output of a cancelled run", read(t, dst, 64), ramp(64))
	r.works(t)
}
