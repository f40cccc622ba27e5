//go:build js

// WebGPU as the browser has it, for what is the same in all builds: browser.js's functions, called from Go. It works in
// a page and in a worker.

package webgpu

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"strings"
	"syscall/js"
	"time"

	"github.com/spmmrun/spmm/backend"
)

//go:embed browser.js
var browserJS string

// ref is a place in browser.js's table.
type ref int

const none ref = 0

// program is a compiled kernel.
type program struct{ ref ref }

// adapter is the GPU that the browser shows.
type adapter struct{ info backend.Info }

// launchBytes is the size of one launch in the batch; browser.js describes its contents.
const launchBytes = 7 * 4

// gpu is an open device.
type gpu struct {
	js      js.Value
	settled js.Func
	stepped chan struct{} // has a value when the step on its way, which is no run, is done
	ran     chan struct{} // and when the run is
	waiting bool          // for a run
	ended   [2]failure    // how the last step and the last run ended
	failed  failure       // what take returns
	took    time.Duration
	batch   []uint32
	batchJS js.Value // what the batch is copied to
	chunkJS js.Value // what small writes are copied to
	large   js.Value // the class of arrays that large writes are copied to
}

// chunk is the largest number of bytes that are written through a kept array.
const chunk = 1 << 16

var errNoWebGPU = fmt.Errorf("webgpu: this browser has no WebGPU, or shows it only on pages of https: and of localhost: %w", backend.ErrUnavailable)
var errNoAdapter = fmt.Errorf("webgpu: this browser has WebGPU and shows no GPU: turn its hardware acceleration on, or update the GPU's driver: %w", backend.ErrUnavailable)

// adapters lists the one that the browser prefers; it shows no others.
func adapters() ([]adapter, error) {
	navigator := js.Global().Get("navigator") // Node before version 21 has none
	if !navigator.Truthy() || !navigator.Get("gpu").Truthy() {
		return nil, errNoWebGPU
	}
	gpu := navigator.Get("gpu")
	a := promised(gpu.Call("requestAdapter", map[string]any{"powerPreference": "high-performance"}))
	if !a.Truthy() {
		return nil, errNoAdapter
	}
	return []adapter{{describe(a)}}, nil
}

// promised waits for a promise; a failed one is undefined.
func promised(p js.Value) js.Value {
	c := make(chan js.Value, 1)
	kept := js.FuncOf(func(_ js.Value, v []js.Value) any { c <- v[0]; return nil })
	broken := js.FuncOf(func(js.Value, []js.Value) any { c <- js.Undefined(); return nil })
	defer kept.Release()
	defer broken.Release()
	p.Call("then", kept, broken)
	return <-c
}

// describe says what the browser tells. Most keep the GPU's name to themselves.
func describe(a js.Value) backend.Info {
	text := func(name string) string {
		if v := a.Get("info").Get(name); v.Type() == js.TypeString {
			return v.String()
		}
		return ""
	}
	vendor := text("vendor")
	info := backend.Info{
		Backend: "webgpu",
		Name:    cmp.Or(oneLine(text("description")), oneLine(vendor+" "+text("architecture")), "a GPU without a name"),
		Vendor:  oneLine(vendor),
		Driver:  browserName(js.Global().Get("navigator").Get("userAgent").String()),
		Kind:    "virtual",
	}
	if a.Get("info").Get("isFallbackAdapter").Truthy() || a.Get("isFallbackAdapter").Truthy() ||
		strings.Contains(text("architecture"), "swiftshader") {
		info.Kind = "cpu"
	}
	return info
}

// open opens the adapter; take says what went wrong.
func open(adapter) *gpu {
	g := &gpu{stepped: make(chan struct{}, 1), ran: make(chan struct{}, 1), large: js.Global().Get("Uint8Array")}
	g.settled = js.FuncOf(func(_ js.Value, v []js.Value) any {
		run := v[0].Int()
		g.ended[run] = failure{}
		if kind := v[1].Int(); kind != 0 {
			g.ended[run] = failure{failureKind(kind), v[3].String()}
		}
		if run == 0 {
			g.stepped <- struct{}{}
		} else {
			g.took = time.Duration(v[2].Float())
			g.ran <- struct{}{}
		}
		return nil
	})
	g.batchJS, g.chunkJS = g.large.New(batchSize*launchBytes), g.large.New(chunk)
	steps := js.Global().Get("spmmWebGPU") // a page that forbids eval has loaded it
	if steps.IsUndefined() {
		steps = js.Global().Call("eval", browserJS)
	}
	g.js = steps.Invoke(g.settled, g.batchJS, g.chunkJS)
	names := []any{"maxBufferSize", "maxStorageBufferBindingSize", "maxStorageBuffersPerShaderStage",
		"maxComputeWorkgroupStorageSize",
		"maxComputeInvocationsPerWorkgroup", "maxComputeWorkgroupSizeX", "maxComputeWorkgroupSizeY",
		"maxComputeWorkgroupSizeZ",
		"maxComputeWorkgroupsPerDimension"}
	g.js.Call("open", names)
	g.finish()
	return g
}

func (g *gpu) limits() limits {
	l := g.js.Get("limits")
	number := func(name string) int64 { return int64(min(l.Get(name).Float(), 1<<62)) }
	u32 := func(name string) uint32 { return uint32(min(number(name), 1<<32-1)) }
	return limits{
		shared: u32("maxComputeWorkgroupStorageSize"), invocations: u32("maxComputeInvocationsPerWorkgroup"),
		groups: u32("maxComputeWorkgroupsPerDimension"),
		local: [3]uint32{u32("maxComputeWorkgroupSizeX"), u32("maxComputeWorkgroupSizeY"),
			u32("maxComputeWorkgroupSizeZ")},
		binding:      min(number("maxStorageBufferBindingSize"), number("maxBufferSize")),
		arguments:    int(number("maxStorageBuffersPerShaderStage")),
		uniformAlign: int(number("minUniformBufferOffsetAlignment")),
		dot4:         g.js.Get("dot4").Bool(),
	}
}

// setClock has nothing to do: timestamps are nanoseconds.
func (g *gpu) setClock(*device) error { return nil }

// fail keeps a failure for take: the first, but for a loss.
func (g *gpu) fail(f failure) {
	if f.kind != nothing && (g.failed.kind == nothing || f.kind == lost) {
		g.failed = f
	}
}

// take returns the first failure since the last call; a loss, from then on.
func (g *gpu) take() failure {
	f := g.failed
	if f.kind != lost {
		g.failed = failure{}
	}
	return f
}

// dead reports whether the device is lost.
func (g *gpu) dead() bool { return g.failed.kind == lost }

// finish waits for the step on its way, which is no run.
func (g *gpu) finish() {
	<-g.stepped
	g.fail(g.ended[0])
}

// finishRun is called when the run on its way is done.
func (g *gpu) finishRun() {
	g.waiting = false
	g.fail(g.ended[1])
}

// close frees the device; nothing may be running on it.
func (g *gpu) close() {
	g.js.Call("close")
	g.settled.Release()
}

func (g *gpu) buffer(use int, bytes int64) ref {
	b := ref(g.js.Call("buffer", use, bytes).Int())
	g.finish()
	if g.failed.kind != nothing {
		g.freeBuffer(b)
		return none
	}
	return b
}

func (g *gpu) freeBuffer(b ref) { g.js.Call("freeBuffer", int(b)) }

// write copies p to a buffer, whose last word may be partly padding that nobody owns. What goes wrong is told by what
// is awaited next.
func (g *gpu) write(b ref, off int64, p []byte) {
	if len(p) <= chunk {
		js.CopyBytesToJS(g.chunkJS, p)
		g.js.Call("write", int(b), off, len(p))
		return
	}
	a := g.large.New((len(p) + 3) &^ 3)
	js.CopyBytesToJS(a, p)
	g.js.Call("write", int(b), off, len(p), a)
}

// flush has the device do what was written, so that the copy of it is freed.
func (g *gpu) flush() {
	g.js.Call("flush")
	g.finish()
}

func (g *gpu) read(b ref, off int64, staging ref, p []byte) {
	g.js.Call("read", int(b), off, int(staging), len(p))
	g.finish()
	if g.failed.kind == nothing {
		js.CopyBytesToGo(p, g.js.Get("mapped"))
	}
	g.js.Call("unmap", int(staging))
}

// load compiles WGSL.
func (g *gpu) load(b *backend.Binary, paramBytes int) *program {
	k := g.js.Call("load", string(b.Code), b.Entry, b.Args, b.ReadOnly, paramBytes).Int()
	g.finish()
	return &program{ref(k)}
}

func (g *gpu) freeProgram(k *program) { g.js.Call("drop", int(k.ref)) }

// group makes a bind group.
func (g *gpu) group(k *program, buffers []ref, params ref, paramBytes int) ref {
	args := []any{int(k.ref), int(params), paramBytes}
	for _, b := range buffers {
		args = append(args, int(b))
	}
	return ref(g.js.Call("group", args...).Int())
}

func (g *gpu) freeGroup(group ref) { g.js.Call("drop", int(group)) }

// reset empties the batch.
func (g *gpu) reset() { g.batch = g.batch[:0] }

// append adds a launch to the batch; offset is that of its parameters, -1 if it has none.
func (g *gpu) append(k *program, group ref, offset int, groups [3]uint32) {
	params := uint32(1)
	if offset < 0 {
		params, offset = 0, 0
	}
	g.batch = append(g.batch, uint32(k.ref), uint32(group), params, uint32(offset), groups[0], groups[1], groups[2])
}

// run submits the batch.
func (g *gpu) run() {
	js.CopyBytesToJS(g.batchJS, backend.Bytes(g.batch))
	g.waiting = true
	g.js.Call("run", len(g.batch)*4/launchBytes)
}

// running reports whether what was submitted is not known to be done.
func (g *gpu) running() bool { return g.waiting && !g.dead() }

// await waits for what was submitted.
func (g *gpu) await(ctx context.Context) error {
	if !g.running() {
		return nil
	}
	select {
	case <-g.ran:
		g.finishRun()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// look reports whether what was submitted is done. It gives the browser some time to say so.
func (g *gpu) look() bool {
	if !g.waiting {
		return true
	}
	t := time.NewTimer(time.Millisecond)
	defer t.Stop()
	select {
	case <-g.ran:
		g.finishRun()
	case <-t.C:
	}
	return !g.waiting
}

// coarse is how finely browsers tell a device's time.
const coarse = 100 * time.Microsecond

// worked returns how long the device worked on the last submission; 0, not known, if that is too short to be told.
func (g *gpu) worked(bool) time.Duration {
	if g.took < 10*coarse {
		return 0
	}
	return g.took
}
