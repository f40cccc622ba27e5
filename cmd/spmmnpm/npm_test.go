//go:build unix && !js

// The package in Node, on the CPU, and in Chromium, on WebGPU: the same checks (testdata/check.js).
//
// SPMM_REQUIRE_BROWSER: the browser must be there. SPMM_REQUIRE_NODE: Node must be.

package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spmmrun/spmm/tools/browser/devtools"
)

// build makes a folder that has the package where programs look for it, and the checks.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	to := filepath.Join(dir, "node_modules", "spmm")
	out, err := exec.Command("go", "run", "-buildmode=pie", "./build", "-root", "../..", "-o", to).CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	check, err := os.ReadFile(filepath.Join("testdata", "check.js"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "check.mjs"), check, 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPackage(t *testing.T) {
	dir := build(t)
	t.Run("files", func(t *testing.T) { testFiles(t, filepath.Join(dir, "node_modules", "spmm")) })
	t.Run("node", func(t *testing.T) { testNode(t, dir) })
	t.Run("browser", func(t *testing.T) { testBrowser(t, dir) })
}

// testFiles compares what package.json lists with what is there, and what index.d.ts declares with what index.js has.
func testFiles(t *testing.T, dir string) {
	text := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var p struct {
		Name, Version string
		Files         []string
	}
	if err := json.Unmarshal([]byte(text("package.json")), &p); err != nil || p.Name != "spmm" ||
		!regexp.MustCompile(`^\d+\.\d+\.\d+`).MatchString(p.Version) {
		t.Errorf("%+v, %v", p, err)
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range there {
		always := slices.Contains([]string{"package.json", "README.md", "LICENSE"}, f.Name())
		if slices.Contains(p.Files, f.Name()) == always {
			t.Errorf("package.json lists %v, and there is %s", p.Files, f.Name())
		}
	}
	if len(there) != len(p.Files)+3 {
		t.Errorf("%d files, want %d", len(there), len(p.Files)+3)
	}
	methods := regexp.MustCompile(`(?m)^\t(?:async )?([a-z]\w*)\(`)
	declared, has := map[string]bool{}, map[string]bool{"constructor": true}
	for _, m := range methods.FindAllStringSubmatch(text("index.d.ts"), -1) {
		declared[m[1]] = true
	}
	for _, m := range methods.FindAllStringSubmatch(text("index.js"), -1) {
		has[m[1]] = true
	}
	for name := range has {
		if !declared[name] && name != "constructor" {
			t.Errorf("index.d.ts does not declare %s", name)
		}
	}
	for name := range declared {
		if !has[name] {
			t.Errorf("index.js has no %s", name)
		}
	}
	if len(declared) < 5 {
		t.Errorf("index.d.ts declares %v", declared)
	}
}

// script checks the device of a name, and calls a function with its kind, or what was wrong.
const script = `import { open } from %q; import { check } from %q;
check(open, %q).then((kind) => %[4]s("right on " + kind), (e) => %[4]s("wrong: " + e.stack));`

func testNode(t *testing.T, dir string) {
	if _, err := exec.LookPath("node"); err != nil {
		if os.Getenv("SPMM_REQUIRE_NODE") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no node")
	}
	if err := os.WriteFile(filepath.Join(dir, "run.mjs"),
		fmt.Appendf(nil, script, "spmm", "./check.mjs", "auto", "console.log"), 0o666); err != nil {
		t.Fatal(err)
	}
	// As version 18 is, which has no crypto by itself, and as later ones are.
	for _, before := range []string{"delete globalThis.crypto;", ""} {
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
		cmd := exec.CommandContext(ctx, "node", "--input-type=module", "-e", before+` await import("./run.mjs")`)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		stop()
		if err != nil || strings.TrimSpace(string(out)) != "right on cpu" {
			t.Errorf("after %q: %v, %s", before, err, out)
		}
	}
}

func testBrowser(t *testing.T, dir string) {
	command := []string{"../../tools/browser/chromium"}
	if os.Getenv("SPMM_REQUIRE_BROWSER") == "" {
		command = append(command, "--cached")
	}
	b, err := devtools.Start(t.Context(), command...)
	if e := (*devtools.StartError)(nil); errors.As(err, &e) && e.Status == 3 && len(command) == 2 {
		t.Skipf("no browser: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	files := http.FileServer(http.Dir(dir))
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			files.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; "+
			"connect-src 'self'")
		fmt.Fprintf(w, `<!doctype html><title>waiting</title><script type="importmap">{"imports": `+
			`{"spmm": "/node_modules/spmm/index.js"}}</script><script type="module">%s</script>`,
			fmt.Sprintf(script, "spmm", "/check.mjs", r.URL.Query().Get("device"), "((text) => { document.title = text; })"))
	}))
	defer site.Close()
	for _, device := range []string{"webgpu", "cpu"} {
		p, err := b.Open(func(method string, params json.RawMessage) {
			if method == "Runtime.exceptionThrown" {
				t.Errorf("the page throws %s", params)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Call("Page.navigate", map[string]any{"url": site.URL + "/?device=" + device}, nil); err != nil {
			t.Fatal(err)
		}
		title := "waiting"
		for end := time.Now().Add(3 * time.Minute); title == "waiting" || title == ""; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				break
			}
			if p.Eval("document.title", &title) != nil { // while the page loads
				title = ""
			}
		}
		if title != "right on "+device {
			t.Errorf("on %s: %s", device, title)
		}
	}
}
