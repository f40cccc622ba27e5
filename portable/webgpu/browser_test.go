//go:build js

// What happens when a browser loses the GPU under a running program.

package webgpu_test

import (
	"context"
	"errors"
	"syscall/js"
	"testing"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
)

// A device that somebody else destroys is lost as one is whose driver starts anew.
func TestLost(t *testing.T) {
	adapter := js.Global().Get("GPUAdapter")
	if adapter.IsUndefined() {
		open(t) // says why, or fails if one is required
		return
	}
	own := adapter.Get("prototype").Get("requestDevice")
	var opened js.Value
	js.Global().Set("keepDevice", js.FuncOf(func(_ js.Value, v []js.Value) any { opened = v[0]; return nil }))
	js.Global().Call("eval", `{const own = GPUAdapter.prototype.requestDevice;
GPUAdapter.prototype.requestDevice = async function (d) {
	const v = await own.call(this, d); keepDevice(v); return v;
}}`)
	defer adapter.Get("prototype").Set("requestDevice", own)

	t.Run("idle", func(t *testing.T) {
		d := open(t)
		k := backendtest.Load(t, d, wgsl(setOne, 1))
		b := backendtest.Alloc(t, d, 64)
		opened.Call("destroy")
		time.Sleep(10 * time.Millisecond) // the browser tells it in a callback
		staysLost(t, d, k, b)
		opensAgain(t, d)
	})
	t.Run("at work", func(t *testing.T) {
		d, k, b, l := longLaunch(t, 100)
		p, err := d.Start(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		opened.Call("destroy")
		for range 2 {
			if _, err := p.Wait(t.Context()); !errors.Is(err, backend.ErrDeviceLost) {
				t.Errorf("Wait: error %v", err)
			}
		}
		staysLost(t, d, k, b)
		opensAgain(t, d)
	})
	t.Run("after a cancelled run", func(t *testing.T) {
		d, k, b, l := longLaunch(t, 100)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := d.Run(ctx, l); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("cancelled Run: error %v", err)
		}
		opened.Call("destroy")
		staysLost(t, d, k, b)
	})
}
