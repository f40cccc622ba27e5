//go:build js

// Spmmweb is the program behind the page in site: the conformance suite and products of matrices on the browser's GPU.
// It runs in a worker, which speaks to the page by messages: a message asks for one job, and those that come back tell
// what becomes of it. Build makes the folder that a web server shows.
package main

import (
	"context"
	"encoding/json"
	"sync"
	"syscall/js"
	"time"
)

// request is a request of the page.
type request struct {
	do    string // "suite", "multiply" or "stop"
	value js.Value
}

// text returns a string of the request, "" if it is not there.
func (r request) text(name string) string {
	if v := r.value.Get(name); v.Type() == js.TypeString {
		return v.String()
	}
	return ""
}

// number returns a number of the request, 0 if it is not there.
func (r request) number(name string) int {
	if v := r.value.Get(name); v.Type() == js.TypeNumber {
		return int(v.Float())
	}
	return 0
}

// bytes returns an ArrayBuffer of the request.
func (r request) bytes(name string) []byte {
	a := js.Global().Get("Uint8Array").New(r.value.Get(name))
	b := make([]byte, a.Length())
	js.CopyBytesToGo(b, a)
	return b
}

// answer is a message to the page: what it is about, and that.
type answer map[string]any

// post sends an answer.
func post(what string, a answer) {
	a["what"] = what
	text, err := json.Marshal(a)
	if err != nil {
		text, _ = json.Marshal(answer{"what": "error", "error": err.Error()})
	}
	js.Global().Call("postMessage", string(text))
}

// worker does one job at a time.
type worker struct {
	mu   sync.Mutex
	stop context.CancelFunc // of the job at hand, nil if there is none
}

func main() {
	w := &worker{}
	js.Global().Set("onmessage", js.FuncOf(func(_ js.Value, v []js.Value) any {
		data := v[0].Get("data")
		r := request{value: data}
		r.do = r.text("do")
		go w.serve(r)
		return nil
	}))
	post("ready", answer{})
	select {}
}

// serve begins a job, or stops the one at hand.
func (w *worker) serve(r request) {
	jobs := map[string]func(context.Context, request) error{"suite": suite, "multiply": multiply}
	w.mu.Lock()
	if r.do == "stop" {
		if w.stop != nil {
			w.stop()
		}
		w.mu.Unlock()
		return
	}
	job := jobs[r.do]
	if job == nil || w.stop != nil {
		w.mu.Unlock()
		post("error", answer{"error": "another job is running: stop it first"})
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.mu.Unlock()
	err := job(ctx, r)
	stopped := ctx.Err() != nil
	stop()
	w.mu.Lock()
	w.stop = nil
	w.mu.Unlock()
	switch {
	case stopped:
		post("stopped", answer{})
	case err != nil:
		post("error", answer{"error": err.Error()})
	}
}

// progress tells the page how far a job is, ten times a second at most.
type progress struct{ last time.Time }

func (p *progress) at(done, all int, step string) {
	if now := time.Now(); now.Sub(p.last) > 100*time.Millisecond || done == 0 || done == all {
		p.last = now
		post("progress", answer{"done": done, "all": all, "step": step})
		time.Sleep(0) // lets messages from the page come through
	}
}
