// Runwasm runs a program for js/wasm in a browser, as tools/browser/run says:
//
//	SPMM_WASM_EXEC=…/wasm_exec.js runwasm BROWSER FLAGS... -- PROGRAM ARGS...
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spmmrun/spmm/tools/browser/devtools"
)

//go:embed worker.js
var worker []byte

const page = `<!doctype html><meta charset=utf-8><script>
const w = new Worker("worker.js");
w.onmessage = e => out(JSON.stringify(e.data));
w.onerror = e => out(JSON.stringify({fd: 2, text: e.message + "\n", exit: 2}));
</script>`

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		if e := (*devtools.StartError)(nil); errors.As(err, &e) && e.Status > 0 {
			os.Exit(e.Status)
		}
		os.Exit(2)
	}
	os.Exit(status)
}

func run(args []string) (status int, err error) {
	i := slices.Index(args, "--")
	if i < 1 || i == len(args)-1 {
		return 0, errors.New("usage: runwasm BROWSER FLAGS... -- PROGRAM ARGS...")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	site, err := serve(args[i+1], args[i+2:])
	if err != nil {
		return 0, err
	}
	defer site.Close()
	b, err := devtools.Start(ctx, args[:i]...)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	exit := make(chan int, 1)
	p, err := b.Open(func(method string, params json.RawMessage) { relay(method, params, exit) })
	if err != nil {
		return 0, err
	}
	if err := p.Call("Runtime.addBinding", map[string]any{"name": "out"}, nil); err != nil {
		return 0, err
	}
	if err := p.Call("Page.navigate", map[string]any{"url": "http://" + site.Addr().String() + "/"}, nil); err != nil {
		return 0, err
	}
	select {
	case status = <-exit:
		return status, nil
	case <-p.Ended():
		return 0, errors.New("the browser ended before the program")
	}
}

// serve gives the browser the program, what starts it, and its arguments and environment.
func serve(program string, args []string) (net.Listener, error) {
	if _, err := os.Stat(program); err != nil {
		return nil, err
	}
	env := map[string]string{}
	for _, e := range os.Environ() {
		if name, value, _ := strings.Cut(e, "="); strings.HasPrefix(name, "SPMM_") || name == "GODEBUG" {
			env[name] = value
		}
	}
	start, err := json.Marshal(map[string]any{"argv": append([]string{"js"}, args...), "env": env})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	text := func(kind string, body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Write(body)
		}
	}
	file := func(kind, path string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			http.ServeFile(w, r, path)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/{$}", text("text/html", []byte(page)))
	mux.Handle("/worker.js", text("text/javascript", worker))
	mux.Handle("/start.json", text("application/json", start))
	mux.Handle("/main.wasm", file("application/wasm", program))
	mux.Handle("/wasm_exec.js", file("text/javascript", os.Getenv("SPMM_WASM_EXEC")))
	go http.Serve(l, mux)
	return l, nil
}

// relay writes what the program writes, and passes on its exit status.
func relay(method string, params json.RawMessage, exit chan<- int) {
	end := func(status int) {
		select {
		case exit <- status:
		default: // it has ended already
		}
	}
	switch method {
	case "Runtime.bindingCalled":
		var event struct{ Payload string }
		var said struct {
			FD   int
			Text string
			Exit *int
		}
		if json.Unmarshal(params, &event) != nil || json.Unmarshal([]byte(event.Payload), &said) != nil {
			return
		}
		switch said.FD {
		case 1:
			os.Stdout.WriteString(said.Text)
		case 2:
			os.Stderr.WriteString(said.Text)
		}
		if said.Exit != nil {
			end(*said.Exit)
		}
	case "Runtime.exceptionThrown":
		fmt.Fprintf(os.Stderr, "browser: %s\n", params)
		end(2)
	case "Inspector.targetCrashed":
		fmt.Fprintln(os.Stderr, "browser: the page crashed (is there memory left?)")
		end(2)
	}
}
